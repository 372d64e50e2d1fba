"""What this machine has: cores, GPUs, a container's limits, links, processes, signals, variables.

Everything above may ask it. It imports the ground alone.
"""
