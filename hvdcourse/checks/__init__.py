"""The checks of the exercises: one module an exercise, one function a step."""
