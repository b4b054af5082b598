#!/usr/bin/env bash
# What is installed and packaged, looked at from outside the tree: a prefix that was moved after it was installed; programs
# that embed libtenon, built by every compiler there is; the .deb packages and the archive that CPack makes.
#   BUILD    the build tree (build)
set -euo pipefail
cd "$(dirname "$0")/../.."

build=$(realpath "${BUILD:-build}")
tree=$PWD
if [ ! -e "$build/bin/tenon" ] || [ ! -e "$build/lib/libtenon.so" ]; then
  echo "16-packages: $build/bin/tenon or lib/libtenon.so is missing; run \`make build\` first" >&2
  exit 2
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
quietly() { "$@" >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; echo "16-packages: failed: $*" >&2; exit 1; }; }
fail() { echo "16-packages: $*" >&2; exit 1; }
# No variable of this shell's may help.
bare() { env -i PATH=/usr/bin:/bin HOME="$scratch/home" "$@"; }
mkdir "$scratch/home"
cp models/digits/digits.onnx models/digits/samples.npz "$scratch/"
cp -r examples/embed "$scratch/embed"
rm -rf "$scratch/embed/build"

# embed PREFIX NAME [cmake option...]: configures, builds and runs examples/embed against what is installed there.
embed() {
  local prefix=$1 name=$2
  shift 2
  quietly bare cmake -S "$scratch/embed" -B "$scratch/$name" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" "$@"
  quietly bare cmake --build "$scratch/$name" -j 2
  bare "$scratch/$name/embed_c" "$scratch/digits.onnx" >"$scratch/$name/c.out" || fail "$name/embed_c failed"
  bare "$scratch/$name/embed_cpp" "$scratch/digits.onnx" >"$scratch/$name/cpp.out" || fail "$name/embed_cpp failed"
  grep -q '^input  image: float32\[batch,1,8,8\]$' "$scratch/$name/c.out"
  [ "$(grep -c '^thread .: 25 runs, largest difference' "$scratch/$name/cpp.out")" = 4 ] || fail "$name: not four threads"
  grep -q "$prefix/lib/tenon/plugins/libops.so" "$scratch/$name/cpp.out" || fail "$name took its plugins from elsewhere"
}

echo "--- a prefix that was moved"
quietly cmake --install "$build" --prefix "$scratch/installed"
mv "$scratch/installed" "$scratch/moved here"
prefix="$scratch/moved here"
# A build tree inside the source tree leaves no trace in the binaries either.
named_folders=("$scratch/installed")
[ "$build" != "$tree/build" ] || named_folders+=("$tree/")
for named in "${named_folders[@]}"; do
  if grep -rlF -- "$named" "$prefix" >"$scratch/log"; then cat "$scratch/log" >&2; fail "these files name $named"; fi
done
bare "$prefix/bin/tenon" doctor || fail "doctor finds faults in a fresh installation"
bare "$prefix/bin/tenon" run "$scratch/digits.onnx" --inputs "$scratch/samples.npz" -q >/dev/null
readelf -d "$prefix/lib/libtenon.so.1" >"$scratch/log"
grep -q 'RUNPATH.*\[$ORIGIN\]' "$scratch/log" || fail "libtenon's RUNPATH is not \$ORIGIN alone"
grep -q 'SONAME.*\[libtenon.so.1\]' "$scratch/log" || fail "libtenon's soname is not libtenon.so.1"
[ -e "$prefix/share/man/man1/tenon-run.1" ] || fail "there are no manual pages"
for compilers in "gcc g++" "clang clang++"; do
  read -r c cxx <<<"$compilers"
  command -v "$c" >/dev/null && command -v "$cxx" >/dev/null || continue
  for standard in 17 20; do
    echo "-- examples/embed with $cxx, C++$standard"
    embed "$prefix" "embed-$c-$standard" -DCMAKE_C_COMPILER="$c" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_CXX_STANDARD=$standard
  done
done
# An installation without a component says so.
rm -r "$scratch/embed-gcc-17"
mv "$prefix/lib/cmake/Tenon/TenonRuntimeTargets.cmake" "$scratch/kept"
if bare cmake -S "$scratch/embed" -B "$scratch/embed-gcc-17" -DCMAKE_PREFIX_PATH="$prefix" >"$scratch/log" 2>&1; then
  fail "a missing component was found"
fi
tr -s ' \n' ' ' <"$scratch/log" | grep -q "has no component 'Runtime'" || { cat "$scratch/log" >&2; fail "not told what is missing"; }
mv "$scratch/kept" "$prefix/lib/cmake/Tenon/TenonRuntimeTargets.cmake"
# Without CMake. pkg-config splits at blanks, so this one wants a prefix without.
ln -s "$prefix" "$scratch/prefix"
export PKG_CONFIG_PATH="$scratch/prefix/lib/pkgconfig"
# shellcheck disable=SC2046
quietly cc -std=c11 "$scratch/embed/embed.c" -o "$scratch/embed_pc" $(pkg-config --cflags --libs tenon) -Wl,-rpath,"$prefix/lib"
bare "$scratch/embed_pc" "$scratch/digits.onnx" >/dev/null
[ -d "$(pkg-config --variable=plugindir tenon-sdk)" ] || fail "tenon-sdk.pc names no plugin folder"

echo "--- a lock file holds a manifest to its plugins"
mkdir "$scratch/locked"
cp "$prefix"/lib/tenon/plugins/libfusion.* "$scratch/locked/"
cat >"$scratch/locked/pipeline.json" <<'END'
{"schema": "tenon.pipeline/1", "model": "../digits.onnx", "inputs": "../samples.npz", "rules": [], "pipeline": ["canonicalize"],
 "plugins": ["onnx", "ops", "memory", "tensors", {"path": "libfusion.so"}, {"name": "not_there", "required": false}]}
END
tenon() { bare "$prefix/bin/tenon" "$@"; }
quietly tenon plugins lock "$scratch/locked/pipeline.json"
mv "$scratch/locked" "$scratch/locked elsewhere"  # a lock file moves with its manifest
manifest="$scratch/locked elsewhere/pipeline.json"
quietly tenon run "$manifest" -q
quietly tenon doctor "$manifest"
tenon plugins list "$manifest" --json >"$scratch/list.json"
[ "$(grep -c '"state": "loaded"' "$scratch/list.json")" = 5 ] || fail "plugins list does not show what the manifest loads"
echo >>"$scratch/locked elsewhere/libfusion.so"
code=0
tenon run "$manifest" -q >"$scratch/log" 2>&1 || code=$?
found=$(sha256sum "$scratch/locked elsewhere/libfusion.so" | cut -d' ' -f1)
expected=$(sha256sum "$prefix/lib/tenon/plugins/libfusion.so" | cut -d' ' -f1)
[ "$code" = 2 ] || fail "a plugin that is not the locked one gave exit code $code, expected 2"
for said in M332 "$scratch/locked elsewhere/libfusion.so has the sha256 $found" "expects $expected" "tenon plugins lock"; do
  grep -qF -- "$said" "$scratch/log" || { cat "$scratch/log" >&2; fail "the message does not say: $said"; }
done
code=0
tenon doctor "$manifest" >"$scratch/log" || code=$?
[ "$code" = 1 ] && grep -q '^error *lock file' "$scratch/log" || fail "doctor does not see the stale lock file"
quietly tenon run "$manifest" -q --set lock=false
quietly tenon plugins lock "$manifest"
quietly tenon run "$manifest" -q

echo "--- packages"
command -v dpkg-deb >/dev/null && generators='TGZ;DEB' || generators=TGZ
(cd "$scratch" && quietly cpack --config "$build/CPackConfig.cmake" -G "$generators" -B "$scratch/packages")
mkdir "$scratch/archive"
tar -xzf "$scratch"/packages/tenon-*.tar.gz -C "$scratch/archive" --strip-components 1
bare "$scratch/archive/bin/tenon" doctor || fail "doctor finds faults in the archive"
embed "$scratch/archive" embed-archive
if [ "$generators" = TGZ ]; then
  echo "16-packages: there is no dpkg-deb; the .deb packages are not looked at"
  exit 0
fi
runtime=$(echo "$scratch"/packages/tenon_*.deb)
development=$(echo "$scratch"/packages/tenon-dev_*.deb)
dpkg-deb --contents "$runtime" | awk '{print $6}' >"$scratch/runtime"
dpkg-deb --contents "$development" | awk '{print $6}' >"$scratch/development"
for file in bin/tenon lib/libtenon.so.1 libexec/tenon/tenon-scan lib/tenon/plugins/libops.so lib/tenon/plugins/libops.plugin.json \
    share/tenon/rules/ share/tenon/VERSION share/man/man1/tenon.1 share/doc/tenon/copyright; do
  grep -qxF "./usr/$file" "$scratch/runtime" || fail "$(basename "$runtime") lacks /usr/$file"
done
for file in include/tenon/tenon.h include/tenon/tenon.hpp include/tenon/abi/core.h include/tenon/sdk/plugin.hpp lib/libtenon.so \
    lib/cmake/Tenon/TenonConfig.cmake lib/pkgconfig/tenon.pc bin/tenon-sidecar; do
  grep -qxF "./usr/$file" "$scratch/development" || fail "$(basename "$development") lacks /usr/$file"
done
if grep -v '/$' "$scratch/runtime" | grep -xFf - "$scratch/development"; then fail "both packages have the files above"; fi
if grep -E '_test|\.a$|/fixture|twin' "$scratch/runtime" "$scratch/development"; then fail "the files above do not belong there"; fi
dpkg-deb --field "$runtime" Depends >"$scratch/depends"
# What the files need, as dpkg-shlibdeps found it.
for needed in libc6 libstdc++6 libfmt libspdlog libzip; do
  grep -q "$needed" "$scratch/depends" || fail "the package does not depend on $needed: $(cat "$scratch/depends")"
done
dpkg-deb --info "$runtime" postinst | grep -q ldconfig || fail "installing the package does not tell the loader of libtenon"
dpkg-deb --info "$runtime" shlibs | grep -q '^libtenon 1 tenon' || fail "the package does not say who has libtenon.so.1"
dpkg-deb --field "$development" Depends | grep -qF "tenon (= $(dpkg-deb --field "$runtime" Version))" ||
  fail "tenon-dev does not depend on its tenon"
# Installed by dpkg itself, in a root of its own: nothing of this machine's is touched but the loader's cache, which the
# package has made again. What the packages depend on is this machine's business and left out of account.
root="$scratch/root"
if [ "$(id -u)" != 0 ]; then
  for package in "$runtime" "$development"; do dpkg-deb --extract "$package" "$root"; done
  bare "$root/usr/bin/tenon" doctor || fail "doctor finds faults in what the packages hold"
  embed "$root/usr" embed-deb
  echo "16-packages: all as it should be; dpkg itself was not tried, since its scripts want root"
  exit 0
fi
mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" "$root/var/lib/dpkg/triggers"
touch "$root/var/lib/dpkg/status" "$root/var/lib/dpkg/available"
quietly dpkg --root="$root" --force-not-root --force-script-chrootless --force-depends --log="$scratch/dpkg.log" \
  -i "$runtime" "$development"
[ "$(dpkg-query --root="$root" -W -f '${db:Status-Status} ' tenon tenon-dev | tr -d '\n')" = "installed installed " ] ||
  fail "dpkg did not install both packages"
bare "$root/usr/bin/tenon" doctor || fail "doctor finds faults in what dpkg installed"
embed "$root/usr" embed-deb
quietly dpkg --root="$root" --force-not-root --force-script-chrootless --log="$scratch/dpkg.log" --remove tenon-dev tenon
[ -z "$(find "$root/usr" -type f 2>/dev/null)" ] || fail "files stay behind when the packages are removed"
echo "16-packages: all as it should be"
