"""What starts a rank: it starts, watches, ends and collects the processes of a run, from outside.

``run.run`` and ``elastic.run_elastic`` are what everybody calls. Processes are started by their
module's name, and not imported by what starts them. It may import ``rank`` and what is below it.
"""
