#!/usr/bin/env bash
# Fuzzing for hours: builds the libFuzzer programs with clang, runs each for SECONDS_EACH of processor time with the
# kept corpus, keeps what is new and minimised, then draws GRAPHS random graphs. What fails stays in OUT.
#   SECONDS_EACH  processor seconds a target (3600)
#   GRAPHS        random graphs (100000)
#   TARGETS       "onnx npz manifest rules text"
#   BUILD         the release build tree (build)
#   OUT           crashes, logs, mismatches (build-fuzz/out)
#   KEEP=1        write the minimised corpus back to tests/fuzz/corpus
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=${SECONDS_EACH:-3600}
targets=${TARGETS:-onnx npz manifest rules text}
out=${OUT:-build-fuzz/out}
mkdir -p "$out"
out=$(realpath "$out")
failed=0

cmake --preset fuzz >"$out/configure.log"
cmake --build --preset fuzz -j "$(nproc)" >"$out/build.log" || { tail -n 30 "$out/build.log"; exit 2; }
python3 tests/fuzz/seeds.py "$out/seeds" >"$out/seeds.log"

export ASAN_OPTIONS=allocator_may_return_null=1:quarantine_size_mb=16
export LSAN_OPTIONS=suppressions=$PWD/cmake/lsan.supp:print_suppressions=0
for target in $targets; do
  work="$out/corpus/$target"
  found="$out/found/$target"
  mkdir -p "$work" "$found"
  kept=()
  for folder in "tests/fuzz/corpus/$target" "tests/fuzz/found/$target" "$out/seeds/$target"; do
    [ -d "$folder" ] && kept+=("$folder")
  done
  used=0
  # libFuzzer counts by the clock; what is promised is processor time, so it is added up over rounds.
  while [ "$used" -lt "$seconds" ]; do
    code=0
    { TIMEFORMAT="%0U %0S"; time "build-fuzz/tests/bin/fuzz_$target" -max_total_time=$((seconds - used < 600 ? seconds - used : 600)) -timeout=10 -rss_limit_mb=2048 \
      -malloc_limit_mb=1024 -max_len=16384 -print_final_stats=1 -dict="tests/fuzz/dictionaries/$target.dict" \
      -artifact_prefix="$found/" "$work" "${kept[@]}" >>"$out/$target.log" 2>&1; } 2>"$out/time" || code=$?
    read -r user system < <(tail -n 1 "$out/time")
    used=$((used + user + system + 1))
    if [ "$code" != 0 ]; then
      failed=1
      echo "fuzz: $target: something found in $found; see $out/$target.log"
      break
    fi
  done
  echo "fuzz: $target: $used s of processor time, $(awk '/number_of_executed_units/ {n += $2} END {print n + 0}' "$out/$target.log") inputs"
  if [ "${KEEP:-0}" = 1 ]; then
    mkdir -p "$out/merged/$target"
    "build-fuzz/tests/bin/fuzz_$target" -merge=1 -max_len=4096 "$out/merged/$target" "${kept[@]}" "$work" >>"$out/$target.log" 2>&1
    rm -rf "tests/fuzz/corpus/$target"
    cp -r "$out/merged/$target" "tests/fuzz/corpus/$target"
  fi
done

build=${BUILD:-build}
"$build/tests/bin/random_graphs" --seed "$(date +%s)" --count "${GRAPHS:-100000}" --out "$out" --shrink || failed=1
exit "$failed"
