#!/bin/sh
# What a JupyterHub starts for each learner, as that learner: the first time it copies what learners
# edit, and links the rest; then it starts JupyterLab there. The course itself is only read.
set -eu
course=$(cd "$(dirname "$0")/../.." && pwd)
copy="$HOME/hvdcourse"

if ! [ -e "$copy" ]; then
    # Whole or not at all: a start that was interrupted begins anew.
    rm -rf "$copy.partial"
    mkdir "$copy.partial"
    cp -R "$course/notebooks" "$course/source_code" "$copy.partial/"
    chmod -R u+w "$copy.partial"
    for shared in README.md CONTRIBUTING.md LICENSE book hvdcourse images solutions tools; do
        ln -s "$course/$shared" "$copy.partial/"
    done
    mv "$copy.partial" "$copy"
fi

cd "$copy"
export HVDCOURSE_COPY="$copy" PATH="$course/.venv/bin:$PATH" OPAL_PREFIX="$course/.venv"
# Terminals: a login shell, the default below a hub, would forget this PATH.
exec jupyterhub-singleuser --ServerApp.root_dir="$copy" \
    --ServerApp.terminado_settings="shell_command=['/bin/bash']" \
    --LabApp.app_settings_dir="$course/tools/jupyterlab" "$@"
