// The CUDA stream on which TensorFlow computes. Horovod 0.28.1 built for GPUs calls this function of
// TensorFlow's, which TensorFlow 2.21 no longer has.
#include <cuda_runtime_api.h>

#include "xla/stream_executor/stream.h"

namespace stream_executor::gpu {
cudaStream_t AsGpuStreamValue(Stream* stream) {
  return static_cast<cudaStream_t>(stream->platform_specific_handle().stream);
}
}  // namespace stream_executor::gpu
