#!/usr/bin/env bash
# A project of each kind that `tenon plugins new` knows, and one from a msopgen description: generated, built and tested
# from an installed prefix without the source tree. Prints the seconds that each takes.
#   BUILD  the build tree (build)
set -euo pipefail
cd "$(dirname "$0")/../.."

build=$(realpath "${BUILD:-build}")
if [ ! -e "$build/bin/tenon" ]; then
  echo "12-plugin-kinds: $build/bin/tenon is missing; run \`make build\` first" >&2
  exit 2
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export TENON_CACHE_DIR="$scratch/cache" HOME="$scratch"
cmake --install "$build" --prefix "$scratch/installed" >"$scratch/log" || { cat "$scratch/log"; exit 1; }
mv "$scratch/installed" "$scratch/moved"  # a tree that moves as a whole
cp tests/plugins/msopgen.json "$scratch/"
tenon="$scratch/moved/bin/tenon"
cd "$scratch"

# Its answer to a kind that is none names all there are.
kinds=$({ "$tenon" plugins new some --kind none 2>&1 || true; } | sed -n 's/.*there are //p' | tr -d ',')
[ "$(wc -w <<<"$kinds")" -ge 6 ] || { echo "12-plugin-kinds: expected six kinds or more, found: $kinds" >&2; exit 1; }

# A host without `tenon plugins check` cannot run the test that calls it.
left_out=
"$tenon" plugins --help | grep -q "^  check " || left_out="--exclude-regex ^conformance$"

make_one() {  # name, arguments of `plugins new`
  local name=$1 begin=$EPOCHREALTIME
  shift
  if ! {
    "$tenon" plugins new "$name" "$@" &&
      (cd "$name" && sed -i "s/--output-on-failure/& $left_out/" ci.sh && TENON_PREFIX="$scratch/moved" ./ci.sh) &&
      (cd "$name" && cpack -G TGZ --config build/CPackConfig.cmake -B packages && tar -tzf packages/*.tar.gz | grep "lib/tenon/plugins/lib$name.plugin.json")
  } >"$scratch/log" 2>&1; then
    cat "$scratch/log" >&2
    echo "12-plugin-kinds: the project of $name ($*) does not do" >&2
    exit 1
  fi
  if grep -rlE '@[A-Z_]+@' --include=* --exclude-dir=build --exclude-dir=packages "$name"; then
    echo "12-plugin-kinds: $name has a placeholder that was not filled in" >&2
    exit 1
  fi
  echo "$name: $(python3 -c "print(round($EPOCHREALTIME - $begin, 1))") s"
}

for kind in $kinds; do make_one "my_$kind" --kind "$kind"; done
make_one described --kind kernel --from msopgen.json --id org.example.described --vendor "Example"

# What is installed is found by its name, and all of them live side by side.
plugins=()
for kind in $kinds; do
  cmake --install "my_$kind/build" --prefix "$scratch/moved" >/dev/null
  plugins+=(--plugin "my_$kind")
done
"$tenon" run my_kernel/model.graph "${plugins[@]}" --random -q >/dev/null
echo "12-plugin-kinds: all as it should be"
