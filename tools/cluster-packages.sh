#!/bin/sh
# Tells whether what `make cluster-test` needs is there; with the argument `install`, installs it.
# Exit status 0: it is there; 3: it is not, for the reason on stdout; anything else is an error.
set -eu
packages="iproute2 openssh-client openssh-server slurm-wlm munge libpmix-dev"

cannot() {
    echo "$1"
    exit 3
}

[ "$(id -u)" = 0 ] || cannot "it needs root"
command -v dpkg-query >/dev/null || cannot "it needs Debian's packages ($packages)"

missing=
for package in $packages; do
    [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
        missing="$missing $package"
done
if [ -n "$missing" ]; then
    # With systemd, sshd and Slurm would start at once and at every boot: that is the owner's decision,
    # but for a machine of CI, which nobody keeps.
    if [ "${1:-}" != install ] || { [ -d /run/systemd/system ] && [ -z "${CI:-}" ]; }; then
        cannot "these packages are missing: apt-get install$missing"
    fi
    export DEBIAN_FRONTEND=noninteractive
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    # shellcheck disable=SC2086 # Every word is a package.
    { timeout 120 apt-get update && timeout 300 apt-get install --yes --no-install-recommends $missing; } \
        >"$log" 2>&1 || cannot "these packages do not install:$missing ($(tail -n 1 "$log"))"
fi
