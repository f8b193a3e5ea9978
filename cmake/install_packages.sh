#!/bin/sh
# Installs the Debian packages that the list names and that are missing. Usage: install_packages.sh [--optional] LIST
# --optional: where that is not possible, says so and succeeds.
set -eu
optional=""
[ "$1" != --optional ] || { optional=yes; shift; }
missing=""
for package in $(sed 's/#.*//' "$1"); do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" -ne 0 ] && [ -n "$optional" ]; then
    echo "Tests that use these Debian packages are skipped:$missing"
    exit 0
elif [ "$(id -u)" -ne 0 ]; then
    echo "smelt needs these Debian packages:$missing" >&2
    echo "Install them as root: apt-get install$missing" >&2
    exit 1
fi
echo "Installing$missing"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086
if ! { apt-get update && apt-get install -y --no-install-recommends $missing; } > "$log" 2>&1; then
    [ -z "$optional" ] || { echo "Tests that use these Debian packages are skipped: apt-get could not install$missing"; exit 0; }
    cat "$log" >&2
    exit 1
fi
