#!/bin/sh
# The boundary as plugins and compilers see it: its layout is the one kept in tests/abi/layout, and every header of it and
# of the SDK compiles alone in each language and by each compiler that vendors are promised.
set -eu
cd "$(dirname "$0")/../.."

export PYTHONDONTWRITEBYTECODE=1
scripts/bootstrap --dev
.venv/bin/python tests/abi/layout_test.py
.venv/bin/python tests/abi/layout.py

compile() {  # compiler, standard, language, header
    printf '#include <%s>\n#include <%s>\ntypedef int one_declaration;\n' "$4" "$4" |
        "$1" "-std=$2" -x "$3" -fsyntax-only -Wall -Wextra -Wpedantic -Werror -Iplugin_api/include -Isdk/include -
}
for header in $(cd plugin_api/include && ls tenon/abi/*.h); do
    for compiler in gcc clang-14; do compile "$compiler" c11 c "$header"; done
    for compiler in g++ clang++-14; do
        for standard in c++17 c++20; do compile "$compiler" "$standard" c++ "$header"; done
    done
done
for header in $(cd sdk/include && ls tenon/sdk/*.hpp); do
    case $header in *_test*) continue ;; esac
    for compiler in g++ clang++-14; do
        for standard in c++17 c++20; do compile "$compiler" "$standard" c++ "$header"; done
    done
done
echo "15-boundary: all as it should be"
