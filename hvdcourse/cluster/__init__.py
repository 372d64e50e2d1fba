"""What makes hosts: several on one Linux machine, each with its own network, name and sshd.

Lessons 6 and 7, the command and the tests call ``cluster.hosts``. It starts nothing of a training.
It may import ``launch``, of which it takes the names of the backends alone, and what is below.
"""
