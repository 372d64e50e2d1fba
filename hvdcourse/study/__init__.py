"""Grids of trainings that can be trusted, conditions x seeds: their runs, records and tables.

Lesson 4 and the command call it. It starts ranks by ``launch``, and may import ``training`` and
what is below it. ``worker`` is what those ranks run.
"""
