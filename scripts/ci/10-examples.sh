#!/usr/bin/env bash
# What a newcomer and a vendor do, against the built tree: the SDK installed and each example plugin built with plain
# CMake against it, run and looked at as its README says; plugins that are bad in every way; the README's commands as written.
#   BUILD    the build tree (build)
#   FIXTURES the bad plugins that the tests build ($BUILD/tests/plugins)
set -euo pipefail
cd "$(dirname "$0")/../.."

build=$(realpath "${BUILD:-build}")
fixtures=${FIXTURES:-$build/tests/plugins}
for needed in "$build/bin/tenon" "$fixtures/libgood.so"; do
  if [ ! -e "$needed" ]; then
    echo "10-examples: $needed is missing; run \`make build\` first" >&2
    exit 2
  fi
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export TENON_CACHE_DIR="$scratch/cache"  # nothing remembered from other runs
checks="python3 $PWD/scripts/ci/example_checks.py"

echo "--- install, and build each example outside the tree"
cmake --install "$build" --prefix "$scratch/installed" >"$scratch/log" || { cat "$scratch/log"; exit 1; }
# A tree that moves as a whole: what is built against it must not know where it was made.
mv "$scratch/installed" "$scratch/moved"
tenon="$scratch/moved/bin/tenon"
export PATH="$scratch/moved/bin:$PATH"
# A host without `tenon plugins check` cannot run the tests that call it.
left_out=
"$tenon" plugins --help | grep -q "^  check " || left_out="--exclude-regex ^conformance$"
mkdir "$scratch/examples"
for cmake_list in $(grep -l tenon_add_plugin examples/*/CMakeLists.txt); do
  example=$(basename "$(dirname "$cmake_list")")
  lines=$(find "examples/$example" -path '*/build*' -prune -o \( -name '*.[ch]pp' -o -name CMakeLists.txt -o -path '*/rules/*.json' \) -print0 |
    xargs -0 cat | grep -cvE '^\s*(//|# |$)')
  if [ "$lines" -ge 200 ]; then
    echo "10-examples: examples/$example has $lines lines of code; an example has fewer than 200" >&2
    exit 1
  fi
  mkdir "$scratch/examples/$example"
  git ls-files -z --cached --others --exclude-standard "examples/$example" | xargs -0 cp --parents -t "$scratch"
  echo "-- $example"
  (
    cd "$scratch/examples/$example"
    cmake -S . -B build -G Ninja -DCMAKE_PREFIX_PATH="$scratch/moved"
    cmake --build build -j 2
    ctest --test-dir build --output-on-failure $left_out
  ) >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
  # What its README shows behind building.
  grep -q '<!-- ci -->' "examples/$example/README.md" || continue
  $checks readme "examples/$example/README.md" "$scratch/shown-$example"
  for commands in "$scratch/shown-$example"/*.sh; do
    if ! (cd "$scratch/examples/$example" && timeout 300 bash -euo pipefail "$commands") >"$scratch/log" 2>&1; then
      cat "$commands" "$scratch/log" >&2
      echo "10-examples: these commands of examples/$example/README.md failed" >&2
      exit 1
    fi
  done
done

echo "--- their numbers"
operator="$scratch/examples/operator/model.graph --random --seed 5"
with_operator="$operator --plugin $scratch/examples/operator/build/libsoft_clamp.so"
"$tenon" run $with_operator --outputs "$scratch/expected.npz" --json >"$scratch/report.json"
$checks report "$scratch/report.json" kernels.soft_clamp=1
# Without its kernel, the operator's meaning in plain operators runs.
"$tenon" run $with_operator --set 'kernels.deny=["com.acme.*"]' --outputs "$scratch/out.npz" --json >"$scratch/report.json"
$checks outputs "$scratch/out.npz" "$scratch/expected.npz"
$checks report "$scratch/report.json" kernels.soft_clamp=0
(
  cd "$scratch/examples/frontend"
  "$tenon" run models/iris.model --plugin build/libliblinear.so --inputs models/samples.npz --outputs "$scratch/out.npz" -q
  $checks outputs "$scratch/out.npz" models/expected.npz
)
(
  cd "$scratch/examples/rule_pack"
  run="run model.graph --plugin build/libsquared_relu.so --random --seed 5 --json --outputs"
  "$tenon" $run "$scratch/plain.npz" --set switches.AcmeSquaredRelu=off >"$scratch/report.json"
  $checks report "$scratch/report.json" rules.AcmeSquaredRelu.applied=0 kernels.squared_relu=0
  "$tenon" $run "$scratch/out.npz" >"$scratch/report.json"
  $checks report "$scratch/report.json" rules.AcmeSquaredRelu.matched=2 rules.AcmeSquaredRelu.applied=2 kernels.squared_relu=2
  $checks outputs "$scratch/out.npz" "$scratch/plain.npz"
)
(
  cd "$scratch/examples/pass"
  run="run pipeline.json --plugin build/libredundant_clip.so --random --seed 5 --json --outputs"
  "$tenon" $run "$scratch/plain.npz" --set pipeline=[] >/dev/null
  "$tenon" $run "$scratch/out.npz" >"$scratch/report.json"
  $checks report "$scratch/report.json" rules.drop_redundant_clip.matched=4 rules.drop_redundant_clip.applied=2
  $checks outputs "$scratch/out.npz" "$scratch/plain.npz"
)

echo "--- installed beside the built-in plugins, it is found by its name and through ONNX"
cmake --install "$scratch/examples/operator/build" --prefix "$scratch/moved" >/dev/null
"$tenon" plugins list >"$scratch/list"
grep -q '^soft_clamp  *1\.0\.0' "$scratch/list"
"$tenon" optimize "$scratch/examples/operator/model.graph" --plugin soft_clamp -o "$scratch/model.onnx" >/dev/null
"$tenon" run "$scratch/model.onnx" --plugin soft_clamp --random --seed 5 --outputs "$scratch/out.npz" -q
$checks outputs "$scratch/out.npz" "$scratch/expected.npz"

echo "--- a device of an example's: nodes over it and the host, the host's numbers"
run_toy=("$tenon" run "$scratch/examples/toy_device/pipeline.json" --random --shape x:3,4)
"${run_toy[@]}" --device cpu --outputs "$scratch/on_host.npz" --json >"$scratch/report.json"
$checks report "$scratch/report.json" devices.toy=0 copies=0
"${run_toy[@]}" --outputs "$scratch/out.npz" --json >"$scratch/report.json"
$checks report "$scratch/report.json" devices.toy=4 devices.cpu=1 copies=4 kernels.toy=4
$checks outputs "$scratch/out.npz" "$scratch/on_host.npz"
"${run_toy[@]}" --device auto --outputs "$scratch/out.npz" --json >"$scratch/report.json"
$checks report "$scratch/report.json" devices.toy=0 devices.cpu=5 copies=0
"${run_toy[@]}" --set devices.pin.sum=cpu --outputs "$scratch/out.npz" --json >"$scratch/report.json"
$checks report "$scratch/report.json" devices.toy=3 devices.cpu=2 copies=4
$checks outputs "$scratch/out.npz" "$scratch/on_host.npz"
"${run_toy[@]}" --outputs "$scratch/out.npz" >"$scratch/said"
grep -q '^devices  cpu 1 node, toy 4 nodes; 4 copies of ' "$scratch/said"
"$tenon" explain "$scratch/examples/toy_device/pipeline.json" --node softmax --shape x:3,4 >"$scratch/explained"
grep -q 'on toy: no kernel for Softmax' "$scratch/explained"
# Every check of a plugin, with those that call the device.
"$tenon" plugins check "$scratch/examples/toy_device/build/libtoy.so" >"$scratch/log" || { cat "$scratch/log"; exit 1; }
grep -q '^4\.29  *passed' "$scratch/log"

echo "--- bad plugins: one clear line each, and the run goes on"
mkdir "$scratch/bad"
head -c 3000 "$fixtures/libgood.so" >"$scratch/bad/libcut_short.so"
{ head -c 200 "$fixtures/libgood.so"; head -c 20000 /dev/zero | tr '\0' 'x'; } >"$scratch/bad/libcorrupt.so"
echo "not a library" >"$scratch/bad/libtext.so"
cp "$fixtures"/lib{wrong_major,missing_symbol,missing_dependency,undefined_symbol,throws_in_constructor,throws_in_open,crashes_on_load,crashes_in_open,exits_on_load}.so "$scratch/bad/"
bad=$(cd "$scratch/bad" && ls lib*.so)
{
  echo '{"schema": "tenon.pipeline/1", "model": "examples/operator/model.graph",'
  echo ' "plugins": ["onnx", "ops", "fusion", "rules", "memory", "tensors", "soft_clamp"'
  for library in $bad; do echo "   , {\"path\": \"bad/$library\", \"required\": false}"; done
  echo ' ]}'
} >"$scratch/bad.json"
"$tenon" run "$scratch/bad.json" --random --seed 5 --outputs "$scratch/out.npz" --json >"$scratch/report.json" 2>"$scratch/said" || { cat "$scratch/said"; exit 1; }
$checks outputs "$scratch/out.npz" "$scratch/expected.npz"
for library in $bad; do
  line=$(grep -F "/$library: refused: " "$scratch/said" || true)
  if [ "$(grep -c . <<<"$line")" != 1 ] || ! grep -q ' -- ' <<<"$line"; then
    echo "10-examples: expected one line with a reason and a remedy about $library, found: ${line:-nothing}" >&2
    exit 1
  fi
  echo "${line##*/bad/}"
done
# The same from the remembered scan, and as an error where the manifest requires the plugin.
"$tenon" run "$scratch/bad.json" --random --seed 5 --outputs "$scratch/out.npz" --json 2>&1 >/dev/null | cmp - "$scratch/said"
code=0
"$tenon" run "$scratch/bad.json" --random --plugin "$scratch/bad/libmissing_symbol.so" 2>"$scratch/said" >/dev/null || code=$?
[ "$code" = 2 ] || { echo "10-examples: a required plugin that is refused gave exit code $code, expected 2" >&2; exit 1; }
grep -q 'error .*libmissing_symbol.so: refused: has no symbol tenon_plugin_entry' "$scratch/said"
# Lying in a plugin folder, but named by no manifest, they change nothing and are not even looked at.
TENON_PLUGIN_PATH="$scratch/bad" "$tenon" run $with_operator --outputs "$scratch/out.npz" >/dev/null 2>"$scratch/said"
if grep -q refused "$scratch/said"; then cat "$scratch/said" >&2; exit 1; fi

echo "--- the README's commands, as written"
mkdir "$scratch/readme"
git ls-files -z --cached --others --exclude-standard README.md examples models rules schemas scripts | xargs -0 cp --parents -t "$scratch/readme"
ln -s "$build" "$scratch/readme/build"
$checks readme README.md "$scratch/commands"
for commands in "$scratch"/commands/*.sh; do
  echo "-- $(grep -m1 . "$commands")"
  if ! (cd "$scratch/readme" && timeout 300 bash -euo pipefail "$commands") >"$scratch/log" 2>&1; then
    cat "$commands" "$scratch/log" >&2
    echo "10-examples: these commands of README.md failed" >&2
    exit 1
  fi
done
echo "--- the tutorial, as written, in one shell"
mkdir "$scratch/tutorial"
ln -s "$build" "$scratch/tutorial/build"
$checks readme docs/tutorial.md "$scratch/steps"
if ! (cd "$scratch/tutorial" && { echo "ctest() { command ctest \"\$@\" $left_out; }" && cat "$scratch"/steps/*.sh; } | HOME="$scratch/tutorial" timeout 600 bash -euo pipefail) >"$scratch/log" 2>&1; then
  cat "$scratch/log" >&2
  echo "10-examples: the commands of docs/tutorial.md failed" >&2
  exit 1
fi
echo "--- the README's two commands"
# `make test` is a stage of its own, `make demo` wants the tree's own build.
if [ "$build" = "$PWD/build" ]; then make demo; else scripts/demo --tenon "$build/bin/tenon"; fi >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
echo "-- make demo"
$checks links README.md docs/*.md examples/README.md examples/*/README.md
$checks manifest schemas/pipeline.schema.json docs/manifest.md
"$tenon" ops --json >"$scratch/ops.json"
$checks operators "$scratch/ops.json" docs/onnx.md
echo "10-examples: all as it should be"
