"""What this machine has: cores, GPUs, the limits of a container, links, and the environment.

Everything above may ask it. It imports the ground alone.
"""
