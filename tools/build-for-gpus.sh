#!/bin/sh
# Sets up .venv anew for GPUs: TensorFlow with CUDA's libraries, and Horovod compiled against their NCCL.
# Later calls of tools/setup.sh keep it. CUDA_HOME names another toolkit than /usr/local/cuda, and
# HOROVOD_BUILD_CUDA_CC_LIST other compute capabilities than those of this machine's GPUs.
set -eu
cd "$(dirname "$0")/.."
cuda=${CUDA_HOME:-/usr/local/cuda}
[ -x "$cuda/bin/nvcc" ] || {
    echo "error: $cuda/bin/nvcc is missing: install the CUDA toolkit 12 or 13, or name its folder in CUDA_HOME" >&2
    exit 1
}
# 9.0 is written as 90. Where there is no GPU, as in a container's build: A100 and H100.
of_this_machine=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d . | sort -u | paste -sd, || true)
export HOROVOD_BUILD_CUDA_CC_LIST="${HOROVOD_BUILD_CUDA_CC_LIST:-${of_this_machine:-80,90}}"

rm -rf .venv
tools/setup.sh --no-group cpu --group gpu --no-install-package horovod
nvidia=$(echo "$PWD"/.venv/lib/python3*/site-packages/nvidia)
nccl=$nvidia/nccl
ln -sf libnccl.so.2 "$nccl/lib/libnccl.so" # The name by which linkers look for it.
# TensorFlow 2.21 looks into the folders of CUDA's other libraries, and not into this one's; without
# it, it says "Cannot dlopen some GPU libraries" and uses no GPU.
ln -sf ../../cusolver/lib/libcusolver.so.11 "$nvidia/cusparse/lib/"
export HOROVOD_GPU_OPERATIONS=NCCL HOROVOD_NCCL_HOME="$nccl"
export HOROVOD_CUDA_HOME="$cuda" CUDAToolkit_ROOT="$cuda" PATH="$cuda/bin:$PATH"
# Without uv's cache: it does not tell a build for GPUs from another one.
tools/setup.sh --no-cache
# What compiles need not load: a name that TensorFlow no longer has is missed here only.
.venv/bin/python -c "
import hvdcourse, horovod.tensorflow as hvd
version = hvd.nccl_built()
raise SystemExit(None if version else 'error: Horovod was built without NCCL')"
echo "Horovod is built for GPUs, with NCCL."
