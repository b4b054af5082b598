#!/bin/sh
# What `tenon optimize` writes, in ONNX Runtime: a part of ONNX's own tests, the bug-report cases and random graphs, at levels
# and operator sets (tests/roundtrip/run.py). scripts/nightly/roundtrip.sh is the whole.
#   BUILD   the build tree (build)
set -eu
cd "$(dirname "$0")/../.."

python=.venv/bin/python
build=${BUILD:-build}
export PYTHONDONTWRITEBYTECODE=1

scripts/bootstrap --dev
for needed in bin/tenon tests/bin/random_graphs; do
    if [ ! -x "$build/$needed" ]; then
        echo "50-roundtrip: $build/$needed is missing; run \`make build\` first" >&2
        exit 2
    fi
done
"$python" tests/conformance/generate.py "$build/conformance-data"
run() {
    code=0
    "$python" tests/roundtrip/run.py --tenon "$build/bin/tenon" "$@" || code=$?
    [ "$code" = 0 ] || [ "$code" = 77 ] || exit "$code"
}
run --node "$build/conformance-data/node" --every 12 --levels 3 --opsets default own newest 13 9 --again
run --cases tests/cases --levels 0 3 --opsets default own 17 --again
run --random "$build/tests/bin/random_graphs" --seed 1 --count 250 --levels 3 --opsets default newest --again
