"""What each step of each exercise must make true: one module an exercise, one function a step.

A step is judged by what the ranks did, from their ``evidence``; the learner's source is never read.
"""
