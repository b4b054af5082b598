#!/bin/sh
# Whole networks and the given cases, against the built program. The networks are compared with ONNX Runtime, which
# (with numpy and onnx) lives in the .venv that `scripts/bootstrap --dev` makes.
set -eu
cd "$(dirname "$0")/../.."

python=.venv/bin/python
tenon=${TENON:-${BUILD:-build}/bin/tenon}
export PYTHONDONTWRITEBYTECODE=1

if ! "$python" -c 'import numpy, onnx, onnxruntime' 2>/dev/null; then
    scripts/bootstrap --dev
fi
if [ ! -x "$tenon" ]; then
    echo "20-networks: $tenon is missing; run \`make build\` first" >&2
    exit 2
fi

"$python" tests/cases/gate.py --tenon "$tenon" --at-least 50
"$python" tests/networks/run.py --quick --tenon "$tenon"
