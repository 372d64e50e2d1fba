# An "Autograder tests" cell for ring_allreduce.py, worth 4 points: one for each step that is met.
import json
import subprocess

command = ["hvdcourse", "check", "ring_allreduce", "--folder", ".", "--json"]
# Kept off stderr, since a cell that writes there gets no points.
done = subprocess.run(command, capture_output=True, text=True)
verdict = json.loads(done.stdout)
steps = verdict.get("steps", [])
print(verdict.get("error", f"{len(steps)} steps:"))
for step in steps:
    print("met:" if step["passed"] else "not yet:", "\n    ".join([step["title"], *step["seen"]]))
sum(step["passed"] for step in steps)
