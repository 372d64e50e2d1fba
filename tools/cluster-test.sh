#!/bin/sh
# Runs the tests on several hosts and on Slurm. Where they cannot run it says why; in CI that fails.
set -eu
cd "$(dirname "$0")/.."

status=0
reason=$(tools/cluster-packages.sh) || status=$?
if [ "$status" = 0 ]; then
    reason=$(python -c 'from hvdcourse.cluster import cluster; print(cluster.missing() or "")')
elif [ "$status" != 3 ]; then
    exit "$status"
fi
if [ -n "$reason" ]; then
    echo "make cluster-test is skipped: $reason"
    [ -z "${CI:-}" ] || exit 1
    exit 0
fi
hvdcourse cluster down # What a run that was killed has left.
exec python -m pytest tests/on_hosts "$@"
