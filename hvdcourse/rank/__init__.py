"""The inside of a rank: what runs the script there, and what it records of itself.

``launch`` starts ``main``; scripts call ``reports``. It may import ``data``, ``machine`` and the
ground.
"""
