"""Predicts a step of data-parallel training: links, algorithms, fusion, cycle, stragglers.

Lesson 5, its notebook and ``hvdcourse predict`` import it. It imports the ground alone. All sizes
are bytes and all times seconds. Read ``links``, ``algorithms`` and ``step`` in this order;
``collectives`` alone follows numbers instead, from rank to rank.
"""
