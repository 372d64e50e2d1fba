// Horovod 0.28.1 includes XLA's builder by the path that it had until TensorFlow 2.19.
#pragma once
#include "xla/hlo/builder/xla_builder.h"

// A build for GPUs also asks for the name that XLA had for Abseil's StatusOr.
namespace xla {
using ::absl::StatusOr;
}
