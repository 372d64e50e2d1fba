# Runs after all of Horovod's own CMake files (DEFER). A build for GPUs keeps Horovod's own way.
if(CMAKE_VERSION VERSION_LESS 3.19 OR DEFINED ENV{HOROVOD_GPU_OPERATIONS})
  return()
endif()

function(compile_fewer_files)
  # Horovod has two copies of Gloo; the one for C++ 17 is linked to a TensorFlow of today.
  if(TARGET gloo AND TARGET compatible17_gloo)
    set_target_properties(gloo PROPERTIES EXCLUDE_FROM_ALL TRUE)
    # Many sources in one compilation read the same long headers once.
    set_target_properties(compatible17_gloo tensorflow PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
    # These three cannot share a compilation: they bring names that others have too.
    set_property(SOURCE "${CMAKE_SOURCE_DIR}/third_party/compatible17_gloo/gloo/allreduce_local.cc"
      TARGET_DIRECTORY compatible17_gloo PROPERTY SKIP_UNITY_BUILD_INCLUSION TRUE)
    set_property(SOURCE "${CMAKE_SOURCE_DIR}/horovod/tensorflow/mpi_ops.cc"
      "${CMAKE_SOURCE_DIR}/horovod/tensorflow/xla_mpi_ops.cc"
      TARGET_DIRECTORY tensorflow PROPERTY SKIP_UNITY_BUILD_INCLUSION TRUE)
  endif()
endfunction()
cmake_language(DEFER CALL compile_fewer_files)
