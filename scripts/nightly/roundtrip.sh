#!/bin/sh
# All round trips through ONNX Runtime: ONNX's tests, the cases, the networks, random graphs; every level, many operator sets.
#   BUILD   the build tree (build)
#   CACHE   the networks (~/.cache/tenon/networks)
#   SEED    of the first random graph (1)
#   GRAPHS  random graphs (5000)
#   OUT     reports and files that fail (build/roundtrip)
set -eu
cd "$(dirname "$0")/../.."

python=.venv/bin/python
build=${BUILD:-build}
out=${OUT:-$build/roundtrip}
failed=0
export PYTHONDONTWRITEBYTECODE=1

scripts/bootstrap --dev
"$python" tests/conformance/generate.py "$build/conformance-data"
mkdir -p "$out"
run() {
    name=$1
    shift
    echo "$name:"
    "$python" tests/roundtrip/run.py --tenon "$build/bin/tenon" --json "$out/$name.json" --keep "$out/$name" "$@" || failed=1
}
run node --node "$build/conformance-data/node" --levels 0 3 --opsets default own newest 17 13 11 9 7 --again
run cases --cases tests/cases --levels 0 1 2 3 --opsets default own newest 17 13 11 9 7 --again
run random --random "$build/tests/bin/random_graphs" --seed "${SEED:-1}" --count "${GRAPHS:-5000}" --levels 0 1 2 3 --opsets default newest 17 13 --again
run networks --networks "${CACHE:-$HOME/.cache/tenon/networks}" --levels 0 1 2 3 --opsets default own newest --again --jobs 1 --timeout 900
run optimised --networks "${CACHE:-$HOME/.cache/tenon/networks}" --levels 3 --opsets default --jobs 1 --timeout 900 --optimised --external
exit $failed
