#!/usr/bin/env bash
# A minute of fuzzing whose result is the same each time: the kept corpus and all that was ever found, through every
# reader; random graphs of fixed seeds, optimised against not, and a part of them through the exporter.
# scripts/nightly/fuzz.sh looks for what is new.
#   BUILD   the build tree (build)
#   GRAPHS  how many random graphs (8000)
set -euo pipefail
cd "$(dirname "$0")/../.."

build=$(realpath "${BUILD:-build}")
programs="$build/tests/bin"
for needed in fuzz_onnx fuzz_npz fuzz_manifest fuzz_rules fuzz_text random_graphs; do
  if [ ! -x "$programs/$needed" ]; then
    echo "40-fuzz: $programs/$needed is missing; run \`make build\` first" >&2
    exit 2
  fi
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for target in onnx npz manifest rules text; do
  folders=()
  for folder in "tests/fuzz/corpus/$target" "tests/fuzz/found/$target"; do
    [ -d "$folder" ] && folders+=("$folder")
  done
  code=0
  "$programs/fuzz_$target" "${folders[@]}" >"$scratch/log" 2>&1 || code=$?
  if [ "$code" != 0 ]; then
    tail -n 40 "$scratch/log"
    echo "40-fuzz: fuzz_$target ends with $code; the last file named above is the one" >&2
    exit 1
  fi
  echo "$target: $(tail -n 1 "$scratch/log")"
done

"$programs/random_graphs" --text tests/fuzz/found/graphs/*.graph --out "$scratch"
code=0
"$programs/random_graphs" --seed 1 --count "${GRAPHS:-8000}" --out "$scratch" || code=$?
if [ "$code" != 0 ]; then
  echo "40-fuzz: repeat one by \`random_graphs --seed SEED --count 1 --shrink\`" >&2
  exit 1
fi
