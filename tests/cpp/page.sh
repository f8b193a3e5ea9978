#!/bin/sh
# Writes a page's blocks of C++ as one program: the first stands before main, the others in it. Usage: page.sh PAGE.md
set -eu
awk -v page="$1" '
    /^```$/ && inside { inside = 0; if (++blocks == 1) print "int main() {"; next }
    /^```cpp$/ { inside = 1; print "#line " NR + 1 " \"" page "\""; next }
    inside { print }
    END { print "}" }' "$1"
