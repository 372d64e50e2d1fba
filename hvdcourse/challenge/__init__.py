"""The judge of lesson 7: it runs a program in every way that counts, and gives it a score.

Lesson 7 and the command call ``judge.challenge``. It makes the runs, keeps what they left as
``evidence``, and lets each of the ``parts`` look at it, with the ``measures``. It may import
``checks``, for the evidence and the exercises, and ``launch``, which runs programs.
"""
