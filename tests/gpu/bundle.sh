#!/bin/sh
# Collects what the GPU test-suite needs of a build into a folder that can be carried to a machine with a GPU:
#
#     tests/gpu/bundle.sh BUILD_FOLDER FOLDER
#
# The programs and libraries are stripped; beside libsmelt lie the shared libraries they need that a plain machine may
# lack. The sources (tests/, include/) travel on their own, as do clang and LLVM's library where the build has no
# smelt-cc1. There:
#
#     python3 tests/gpu/run_suite.py FOLDER
set -eu
[ $# -eq 2 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
build=$1 out=$2
[ -x "$build/bin/smelt" ] || { echo "$build/bin/smelt does not exist: build first" >&2; exit 2; }
mkdir -p "$out/bin" "$out/lib" "$out/tests" "$out/fuzz"
out=$(cd "$out" && pwd)

copy() { # FILE FOLDER
    install -m 755 "$1" "$out/$2/"
    strip --strip-unneeded "$out/$2/$(basename "$1")"
}
copy "$build/bin/smelt" bin
copy "$build/lib/libsmelt.so.1" lib
if [ -x "$build/lib/smelt-cc1" ]; then
    copy "$build/lib/smelt-cc1" lib
else
    copy "$build/lib/libsmelt_compiler.so" lib
fi
copy "$build/fuzz/fuzz_kernels" fuzz
for program in "$build"/tests/ml_* "$build"/tests/seeds_* "$build"/tests/prelude_library "$build"/tests/measure_accuracy; do
    copy "$program" tests
done
# Of the unit tests those that take their device from outside.
for source in $(grep -lE '#include "(../device|graph)\.h"' "$(dirname "$0")"/../unit/test_*.c); do
    name=$(basename "$source" .c)
    copy "$build/tests/unit_${name#test_}" tests
done

# What they need beside the C library, which is every machine's own, and LLVM's.
for file in "$out"/bin/* "$out"/tests/* "$out"/fuzz/* "$out/lib/libsmelt.so.1"; do
    LD_LIBRARY_PATH="$out/lib" ldd "$file"
done | sed -n 's/.* => \(\/.*\) (0x.*/\1/p' | sort -u |
    grep -vF "$out/" | grep -vE '/(libc|libm|libmvec|libdl|libpthread|librt|ld-linux[^/]*|libsmelt[^/]*)\.so' |
    while read -r library; do
        install -m 755 "$library" "$out/lib/"
        strip --strip-unneeded "$out/lib/$(basename "$library")"
    done
du -sk "$out" | awk '{ printf "%.1f MiB in %s\n", $1 / 1024, $2 }'
