"""The data sets of the course, how they get here, and how ranks share them.

Learners' scripts, checks and studies import it. It imports the ground alone.
"""
