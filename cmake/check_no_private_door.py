#!/usr/bin/env python3
"""Fails when a built-in plugin has a private door into the host, or the host one into a plugin or the SDK.

Three checks, all findings at once:
  1. no file under plugins/, sdk/, plugin_api/ or examples/ includes core/ by any spelling, none under core/ includes
     plugins/ or the SDK, and plugin_api includes nothing of ours but itself;
  2. no object of a plugin was compiled from a header under core/ (what the compiler itself recorded), and no
     plugin's compile command has the repository's root or core/ on its include path;
  3. every lib*.so among the built plugins defines exactly one dynamic symbol, tenon_plugin_entry.
"""
import argparse
import json
import os
import re
import subprocess
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]')
SOURCE_SUFFIXES = (".h", ".hpp", ".c", ".cpp", ".cc", ".inc", ".ipp")


def is_below(path, folder):
    return os.path.commonpath([os.path.abspath(path), folder]) == folder


# Who may not include what: the folder of the file, then folders and spelled beginnings.
FORBIDDEN = (
    ("plugins", ("core",), ("core/",), "a plugin includes tenon/sdk and tenon/abi only"),
    ("examples", ("core",), ("core/",), "a plugin includes tenon/sdk and tenon/abi only"),
    ("sdk", ("core", "plugins"), ("core/", "plugins/"), "the SDK includes tenon/abi only"),
    ("plugin_api", ("core", "plugins", "sdk"), ("core/", "plugins/", "tenon/sdk/"), "the boundary includes itself only"),
    ("core", ("plugins", "sdk"), ("plugins/", "tenon/sdk/"), "the host includes tenon/abi only"),
)


def check_includes(source):
    for top, folders, beginnings, remedy in FORBIDDEN:
        closed = [os.path.join(source, folder) for folder in folders]
        for folder, _, files in os.walk(os.path.join(source, top)):
            for name in files:
                if not name.endswith(SOURCE_SUFFIXES):
                    continue
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8", errors="replace") as text:
                    for number, line in enumerate(text, 1):
                        found = INCLUDE.match(line)
                        if not found:
                            continue
                        spelled = found.group(1)
                        resolved = os.path.normpath(os.path.join(folder, spelled))
                        if spelled.startswith(beginnings) or any(is_below(resolved, other) for other in closed):
                            yield f"{os.path.relpath(path, source)}:{number}: includes '{spelled}'; {remedy}"


def check_compile_commands(source, build):
    path = os.path.join(build, "compile_commands.json")
    if not os.path.exists(path):
        yield f"{path}: not found; configure with CMAKE_EXPORT_COMPILE_COMMANDS=ON"
        return
    with open(path, encoding="utf-8") as text:
        commands = json.load(text)
    forbidden = {source, os.path.join(source, "core")}
    plugins = os.path.join(source, "plugins")
    for command in commands:
        if not is_below(command["file"], plugins):
            continue
        words = command["command"].split()
        for position, word in enumerate(words):
            folder = None
            if word.startswith("-I") and len(word) > 2:
                folder = word[2:]
            elif word in ("-I", "-isystem", "-iquote", "-idirafter") and position + 1 < len(words):
                folder = words[position + 1]
            if folder is None:
                continue
            folder = os.path.abspath(os.path.join(command["directory"], folder))
            if folder in forbidden or is_below(folder, os.path.join(source, "core")):
                yield (f"{os.path.relpath(command['file'], source)}: compiled with include folder '{folder}'; "
                       "a plugin must not see the host's sources")


def check_dependencies(source, build):
    """What the compiler recorded in each object's dependency file, as Ninja keeps it."""
    if not os.path.exists(os.path.join(build, "build.ninja")):
        return
    listing = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    core = os.path.join(source, "core")
    target = None
    for line in listing.splitlines():
        if line and not line.startswith(" "):
            target = line.split(":")[0]
        elif line.strip() and target and target.startswith("plugins/"):
            header = os.path.abspath(os.path.join(build, line.strip()))
            if is_below(header, core):
                yield f"{target}: was compiled from {os.path.relpath(header, source)}; a plugin must not see core/"


def check_exports(plugins, nm):
    names = sorted(os.listdir(plugins)) if os.path.isdir(plugins) else []
    libraries = [name for name in names if name.endswith(".so")]
    if not libraries:
        yield f"{plugins}: holds no lib*.so; expected the built plugins, so build before testing"
    for name in libraries:
        listing = subprocess.run([nm, "-D", "--defined-only", os.path.join(plugins, name)],
                                 capture_output=True, text=True, check=True).stdout
        symbols = [line.split()[-1] for line in listing.splitlines() if line.strip()]
        if symbols != ["tenon_plugin_entry"]:
            yield (f"{name}: defines dynamic symbols {symbols[:8]} ({len(symbols)} in all); expected tenon_plugin_entry "
                   "alone: build it with tenon_add_plugin")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--plugins", required=True)
    parser.add_argument("--nm", default="nm")
    arguments = parser.parse_args()
    source = os.path.abspath(arguments.source)
    build = os.path.abspath(arguments.build)
    findings = [*check_includes(source), *check_compile_commands(source, build), *check_dependencies(source, build),
                *check_exports(arguments.plugins, arguments.nm)]
    for finding in findings:
        print(finding)
    print(f"no private door: {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
