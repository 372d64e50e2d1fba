#!/bin/sh
# Tries the book, the slides and the first lesson in headless Chromium. In CI it installs Chromium,
# and fails where it cannot.
set -eu
cd "$(dirname "$0")/.."
if [ -n "${CI:-}" ] && ! command -v chromium >/dev/null; then
    apt-get update -q
    apt-get install -q -y --no-install-recommends chromium fonts-dejavu-core
fi
if ! command -v chromium >/dev/null; then
    echo "make browser-test is skipped: chromium is missing; on Debian: apt-get install chromium"
    exit 0
fi
exec .venv/bin/python -m pytest tests/browser -p no:cacheprovider
