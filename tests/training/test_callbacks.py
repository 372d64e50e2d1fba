"""What the course's callback tells of a training."""

import numpy as np
import tensorflow as tf

from hvdcourse.training import callbacks


def test_a_training_whose_number_of_steps_is_not_known_beforehand_is_reported(monkeypatch):
    sent = []
    monkeypatch.setattr(callbacks, "SECONDS_BETWEEN_REPORTS", 0)
    monkeypatch.setattr(callbacks, "report_metrics", lambda **row: sent.append(row))
    signature = (tf.TensorSpec((None, 2), tf.float32), tf.TensorSpec((None,), tf.float32))
    batches = [(np.ones((4, 2)), np.ones(4))] * 3
    dataset = tf.data.Dataset.from_generator(lambda: iter(batches), output_signature=signature)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(dataset, epochs=2, callbacks=[callbacks.ReportMetrics(12)], verbose=0)
    within = [row for row in sent if not row.get("done")]
    assert [row["step"] for row in within] == [1, 2, 3] * 2
    assert not any("steps" in row for row in within)
    assert [row["epoch"] for row in sent if row.get("done")] == [1, 2]
