#!/bin/sh
# Runs the first lesson in headless Chromium; installs Chromium where that is possible.
set -eu
cd "$(dirname "$0")/.."
if ! command -v chromium >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing Chromium"
    { apt-get update -q && apt-get install -q -y --no-install-recommends chromium fonts-dejavu-core; } \
        >build-chromium.log 2>&1 || cat build-chromium.log
    rm -f build-chromium.log
fi
if ! command -v chromium >/dev/null; then
    echo "browser-test was NOT run: there is no chromium on PATH, and it cannot be installed here."
    exit 0
fi
exec .venv/bin/python -m pytest tests/browser -p no:cacheprovider
