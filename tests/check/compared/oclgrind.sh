#!/bin/sh
# Runs each kernel of kernels.cl under Oclgrind (Debian's package oclgrind) and prints what it finds: for
# docs/checking-compared.md. Usage: oclgrind.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/kernels.cl" "$work"
cd "$work"

# kernel, threads, threads per work-group, arguments in oclgrind-kernel's form
run() {
  name=$1
  printf 'kernels.cl\n%s\n%s 1 1\n%s 1 1\n' "$name" "$2" "$3" > "$name.sim"
  shift 3
  printf '%s\n' "$@" >> "$name.sim"
  echo "== $name"
  oclgrind-kernel --data-races --uninitialized "$name.sim" 2>&1 | grep -v '^$' | head -8 || true
}

run past_the_end 64 32 '<size=256 fill=0>'
run local_past 64 64 '<size=256 fill=0>'
run private_past 64 64 '<size=256 range=0:1:63 int>' '<size=256 fill=0>'
run no_barrier 128 128 '<size=512 float range=0:1:127>' '<size=512 fill=0>'
run groups_race 64 32 '<size=4 fill=0>'
run never_set 64 64 '<size=256 float range=0:1:63>' '<size=256 fill=0>'
run missed_barrier 64 64 '<size=256 fill=0>'
run overflow 64 64 '<size=256 int range=0:1:63>' '<size=512 fill=0>'
run misaligned 16 16 '<size=128 fill=0>' '<size=64 fill=0>'
run unwritten 64 64 '<size=256 fill=0>'
