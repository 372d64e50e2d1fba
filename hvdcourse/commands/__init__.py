"""The ``hvdcourse`` command: it parses what was typed, calls the room that does it, and prints.

Nothing imports this room but the command itself. It may import every other room.
"""
