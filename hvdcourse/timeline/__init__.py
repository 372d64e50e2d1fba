"""Horovod's timeline: reads the file, and finds where the time of each training step went.

Lesson 5, ``plots`` and the exercise ``timeline`` import it. It imports the ground alone. All times
are milliseconds since Horovod started. See
https://horovod.readthedocs.io/en/stable/timeline_include.html
"""
