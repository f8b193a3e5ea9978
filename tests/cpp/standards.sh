#!/bin/sh
# Compiles the C++ headers, by way of the example, with each compiler in C++17 and C++20, all warnings being errors.
# Usage: standards.sh SOURCES COMPILER…
set -eu
sources=$1
shift
for compiler in "$@"; do
    for standard in 17 20; do
        "$compiler" -x c++ -std=c++$standard -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$sources/include" \
            "$sources/examples/custom_kernel.cpp"
    done
done
