#!/bin/sh
# Tests the course on another Python, such as 3.13, which must be installed: in an environment of its
# own below build/, the fast tests, the self-test of the machine and each solution's check.
set -eu
cd "$(dirname "$0")/.."
# pyenv's commands answer for a chosen version only.
if command -v pyenv >/dev/null && version=$(pyenv latest "$1" 2>/dev/null); then
    export PYENV_VERSION="$version"
fi
export UV_PYTHON="$1" UV_PYTHON_DOWNLOADS=never UV_PROJECT_ENVIRONMENT="$PWD/build/python-$1"
WITH_ORACLE=1 tools/setup.sh
export PATH="$UV_PROJECT_ENVIRONMENT/bin:$PATH" OPAL_PREFIX="$UV_PROJECT_ENVIRONMENT"
export HVDCOURSE_STATE="$PWD/build/state"
python --version
hvdcourse doctor
python -m pytest tests -m "not ranks" -n 2
python -c "from hvdcourse.checks.manifest import EXERCISES; print(*(e.name for e in EXERCISES))" |
    xargs -n 1 -P 2 hvdcourse check --folder solutions
