"""Converts, ahead of time, what every training of Horovod has AutoGraph convert."""

from collections.abc import Callable


def horovods_functions() -> dict[bool, list[Callable]]:
    """Return Horovod's functions that come into graphs, by whether the user's code asks for it."""
    import horovod.tensorflow as hvd
    from horovod.common.basics import HorovodBasics
    from horovod.common.process_sets import ProcessSet
    from horovod.tensorflow import functions, mpi_ops

    settings = ("any", "", "", hvd.Compression.none, False, hvd.Average, 1.0, None)
    grads = hvd._make_cached_allreduce_grads_fn(*settings, hvd.global_process_set)
    group = functions._make_broadcast_group_fn()
    in_graphs = [
        grads.python_function,
        hvd._DistributedGradientTape.gradient,
        hvd.DistributedGradientTape,
        hvd._allreduce_cond,
        hvd.allreduce,
        hvd._executing_eagerly,
        hvd.Compression.none.compress,
        hvd.Compression.none.decompress,
        mpi_ops._allreduce,
        mpi_ops.broadcast,
        mpi_ops._normalize_name,
        mpi_ops.handle_average_backwards_compatibility,
        ProcessSet.included,
        ProcessSet.size,
        HorovodBasics.rank,
        HorovodBasics.rocm_built,
        HorovodBasics._process_set_size,
    ]
    return {True: [grads.python_function, group.python_function], False: in_graphs}


def convert_horovod() -> None:
    """Convert them: it would take each rank more than a second.

    A conversion rewrites Python source and computes nothing. Where another TensorFlow or Horovod
    has other names for it, an error is raised, and the ranks do it themselves.
    """
    from tensorflow.python.autograph.core.converter import ConversionOptions, ProgramContext
    from tensorflow.python.autograph.impl.api import _convert_actual

    for asked_for_by_user, found in horovods_functions().items():
        options = ConversionOptions(True, asked_for_by_user, optional_features=())
        for function in found:
            _convert_actual(function, ProgramContext(options))
