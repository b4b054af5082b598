#!/bin/sh
# ONNX's own tests in every mode (tests/conformance/README.md). The tests are made, once a build folder, from the onnx
# package in the .venv of `scripts/bootstrap --dev`.
set -eu
cd "$(dirname "$0")/../.."

python=.venv/bin/python
build=${BUILD:-build}
export PYTHONDONTWRITEBYTECODE=1

scripts/bootstrap --dev
if [ ! -x "$build/tests/bin/conformance" ]; then
    echo "30-conformance: $build/tests/bin/conformance is missing; run \`make build\` first" >&2
    exit 2
fi
"$python" tests/conformance/generate.py "$build/conformance-data"
"$build/tests/bin/conformance" --data "$build/conformance-data"
