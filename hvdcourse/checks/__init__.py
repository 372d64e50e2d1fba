"""What judges an exercise: ``check.check`` runs the learner's script on real ranks and looks at it.

``manifest`` lists the exercises, ``exercises/`` has a module for each, and ``exercise`` and
``evidence`` are what they are written in. A check returns a ``verdict``, which ``display`` shows.
``stages`` makes what learners edit from the solutions; ``class_files`` reads the progress of many
learners, and ``classroom`` counts it. Lessons and the command call it. It may import ``launch``,
``training`` and what is below them.
"""
