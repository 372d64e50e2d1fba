# Builds Horovod 0.28.1 for TensorFlow 2.21, in half of the usual time. tools/setup.sh names this file in
# CMAKE_TOOLCHAIN_FILE, which CMake reads before Horovod's own files:
# https://cmake.org/cmake/help/latest/envvar/CMAKE_TOOLCHAIN_FILE.html

# Horovod asks for debug information (-g) that nobody of this course reads.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -DNDEBUG" CACHE STRING "")
set(CMAKE_PROJECT_horovod_INCLUDE "${CMAKE_CURRENT_LIST_DIR}/project.cmake")
