#!/bin/sh
# Builds and tests the plugin. TENON_PREFIX: where Tenon is installed (/usr).
set -eu
cd "$(dirname "$0")"
cmake -S . -B build -G Ninja -DCMAKE_PREFIX_PATH="${TENON_PREFIX:-/usr}"
cmake --build build
ctest --test-dir build --output-on-failure
