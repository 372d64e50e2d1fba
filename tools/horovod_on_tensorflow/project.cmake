# Changes Horovod's targets after all of its own CMake files (DEFER), which stay as they were released.

# Headers that Horovod includes, and that TensorFlow 2.20 and 2.21 have elsewhere in their wheels.
function(find_headers)
  get_target_property(folders tensorflow INCLUDE_DIRECTORIES)
  foreach(folder ${folders})
    foreach(part external/highwayhash external/farmhash_archive/src)
      if(EXISTS "${folder}/${part}")
        target_include_directories(tensorflow SYSTEM PRIVATE "${folder}/${part}")
      endif()
    endforeach()
  endforeach()
  target_include_directories(tensorflow SYSTEM PRIVATE "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/include")
endfunction()

# Many sources in one compilation read the same long headers once: half of the time.
function(compile_fewer_files)
  # Horovod has two copies of Gloo; the one for C++ 17 is linked to a TensorFlow of today.
  set_target_properties(gloo PROPERTIES EXCLUDE_FROM_ALL TRUE)
  set_target_properties(compatible17_gloo PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
  # It brings names that others have, too.
  set_property(SOURCE "${CMAKE_SOURCE_DIR}/third_party/compatible17_gloo/gloo/allreduce_local.cc"
    TARGET_DIRECTORY compatible17_gloo PROPERTY SKIP_UNITY_BUILD_INCLUSION TRUE)
  # Two sources bring names that others have, too, so each is a group of its own. Outside of a group
  # CMake would compile them last, and the longer one would run alone, with the other cores idle.
  set_target_properties(tensorflow PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources tensorflow SOURCES)
  set(number 0)
  foreach(source ${sources})
    math(EXPR number "(${number} + 1) % 3")
    set(group "${number}")
    if(source MATCHES "/(xla_)?mpi_ops.cc$")
      get_filename_component(group "${source}" NAME_WE)
    endif()
    set_property(SOURCE "${source}" TARGET_DIRECTORY tensorflow PROPERTY UNITY_GROUP "${group}")
  endforeach()
endfunction()

function(add_gpu_stream)
  target_sources(tensorflow PRIVATE "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/gpu_stream.cc")
endfunction()

cmake_language(DEFER CALL find_headers)
# A build for GPUs keeps Horovod's own way of compiling.
if(DEFINED ENV{HOROVOD_GPU_OPERATIONS})
  cmake_language(DEFER CALL add_gpu_stream)
else()
  cmake_language(DEFER CALL compile_fewer_files)
endif()
