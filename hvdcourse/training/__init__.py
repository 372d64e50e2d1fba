"""What training scripts are made of: networks, optimizers, callbacks, checkpoints, feeding.

Learners' scripts and studies import it. It may import ``rank``, to report, and what is below it.
"""
