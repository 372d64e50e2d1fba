"""Records what the optimizers of tensorflow-addons do, which ended with TensorFlow 2.15.

PYTHONPATH=.:tests uv run --isolated --no-project --python 3.11 --with tensorflow-cpu==2.15.1 \\
    --with tensorflow-addons==0.23.0 python tests/training/record_addons.py
"""

import json
from pathlib import Path

import tensorflow_addons
from optimizer_runs import CASES, RATE, recorded_problem, trained

# Those of addons differ.
DEFAULTS = {"beta_1": 0.9, "beta_2": 0.98, "epsilon": 1e-6}

records = []
for sparse, cases in ((False, CASES), (True, [CASES[1], CASES[6]])):
    for optimizer_class, case in cases:
        name, options = optimizer_class.__name__, {**DEFAULTS, **case}
        optimizer = getattr(tensorflow_addons.optimizers, name)(RATE, **options)
        values = trained(optimizer, *recorded_problem(sparse), dtype="float32")
        numbers = {layer: value.tolist() for layer, value in values.items()}
        records.append({"optimizer": name, "sparse": sparse, "options": options, "values": numbers})
text = ",\n".join(json.dumps(record) for record in records)
Path(__file__).with_name("addons.json").write_text(f"[\n{text}\n]\n")
