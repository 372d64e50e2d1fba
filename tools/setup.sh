#!/bin/sh
# Sets up .venv with exactly the packages of uv.lock. Arguments are passed on to `uv sync`. With
# WITH_ORACLE=1 also what the tests compare the optimizers with.
set -eu
cd "$(dirname "$0")/.."
uv_version=$(cat tools/uv-version)

stop() {
    echo "error: $1" >&2
    exit 1
}

for program in g++ make; do
    command -v "$program" >/dev/null ||
        stop "$program is missing. On Debian and Ubuntu: sudo apt-get install g++ make; on Fedora: sudo dnf install gcc-c++ make"
done

# uv: the one on PATH if it is no older than ours, else a private copy in .uv/.
uv=$(command -v uv || true)
found=$([ -z "$uv" ] || "$uv" --version | cut -d' ' -f2)
if [ "$(printf '%s\n' "$uv_version" "$found" | sort -V | head -n 1)" != "$uv_version" ]; then
    uv=.uv/bin/uv
    if ! [ -x "$uv" ] || [ "$("$uv" --version | cut -d' ' -f2)" != "$uv_version" ]; then
        command -v python3 >/dev/null ||
            stop "python3 is missing. On Debian and Ubuntu: sudo apt-get install python3 python3-venv"
        echo "Fetching uv $uv_version into .uv/"
        rm -rf .uv
        # A virtual environment, since many a system Python refuses `pip install`.
        python3 -m venv .uv >/dev/null 2>&1 || {
            rm -rf .uv
            stop "python3 cannot make virtual environments. On Debian and Ubuntu: sudo apt-get install python3-venv"
        }
        .uv/bin/pip install --quiet --disable-pip-version-check "uv==$uv_version" || {
            rm -rf .uv
            stop "uv could not be fetched. The first setup needs the network, or uv $uv_version on PATH"
        }
    fi
fi

environment="${UV_PROJECT_ENVIRONMENT:-.venv}"
[ -d "$environment" ] || echo "Setting up $environment. The first time Horovod is compiled, which takes minutes."
# A shell that is inside another virtual environment must not confuse uv.
unset VIRTUAL_ENV
# Horovod's build imports TensorFlow several times: the first time must leave its bytecode behind.
unset PYTHONDONTWRITEBYTECODE
# Called by make, Horovod's build would use a single core.
export MAKEFLAGS="-j$(nproc)"
# What builds Horovod for a TensorFlow of today.
export CMAKE_TOOLCHAIN_FILE="$PWD/tools/horovod_on_tensorflow/toolchain.cmake"
# What tools/build-for-gpus.sh has made stays.
if [ -e "$environment" ] && [ -n "$(find "$environment/lib" -maxdepth 4 -path '*/nvidia/nccl')" ]; then
    set -- --no-group cpu --group gpu "$@"
fi
# --inexact keeps what was added for another purpose: the browser, your own.
"$uv" sync --locked --inexact "$@" || stop "the setup failed; the reason stands above"

# It stands apart: TensorFlow imports a JAX that it finds, in each rank, which takes 0.4 s.
if [ -n "${WITH_ORACLE:-}" ]; then
    "$uv" export --quiet --locked --only-group oracle --output-file "$environment/oracle.txt" &&
        "$uv" pip install --quiet --python "$environment" --target "$environment/oracle" \
            --no-deps --requirements "$environment/oracle.txt" ||
        stop "the setup failed; the reason stands above"
fi
