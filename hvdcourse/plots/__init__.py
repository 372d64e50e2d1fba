"""What the notebooks draw: runs, studies, elastic jobs and the links of a machine, in one style.

Notebooks import it, and tools/figures its ``palette``. It reads results, and starts nothing;
``interactive`` is what learners play with. It may import ``launch``, ``training`` and what is
below them.
"""
