"""Checks that 10-examples.sh makes, with the standard library alone.

    outputs FOUND.npz EXPECTED.npz    the same names, shapes and values (rtol 1e-4, atol 1e-5)
    report REPORT.json KEY=VALUE...   fields of `tenon run --json`; a number that is absent counts as 0
    readme README.md FOLDER           every ```sh block behind a line `<!-- ci -->` becomes FOLDER/NN.sh
    links FILE.md...                  every relative link leads to something
    manifest SCHEMA.json MANIFEST.md  every key of the schema is in the page
    operators OPS.json ONNX.md        what the page's "not yet" names is not in `tenon ops --json`
"""

import array
import ast
import json
import math
import os
import re
import sys
import zipfile


def read_npz(path):
    tensors = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            data = archive.read(member)
            if data[:6] != b"\x93NUMPY":
                sys.exit(f"{path}: {member} is no .npy file")
            width = 2 if data[6] == 1 else 4
            end = 8 + width + int.from_bytes(data[8 : 8 + width], "little")
            header = ast.literal_eval(data[8 + width : end].decode())
            kinds = {"<f4": "f", "<f8": "d", "<i8": "q"}
            if header["descr"] not in kinds or header["fortran_order"]:
                sys.exit(f"{path}: {member} is {header}, expected float32, float64 or int64 in C order")
            values = array.array(kinds[header["descr"]])
            values.frombytes(data[end:])
            if math.prod(header["shape"]) != len(values):
                sys.exit(f"{path}: {member} has {len(values)} values for shape {header['shape']}")
            tensors[member.removesuffix(".npy")] = (header["shape"], values)
    return tensors


def outputs(found_path, expected_path):
    found, expected = read_npz(found_path), read_npz(expected_path)
    if found.keys() != expected.keys():
        sys.exit(f"outputs are {sorted(found)}, expected {sorted(expected)}")
    for name, (shape, values) in expected.items():
        if found[name][0] != shape:
            sys.exit(f"{name} has shape {found[name][0]}, expected {shape}")
        for i, (a, b) in enumerate(zip(found[name][1], values)):
            if not abs(a - b) <= 1e-5 + 1e-4 * abs(b):
                sys.exit(f"{name}[{i}] is {a}, expected {b}")


def report(path, *wanted):
    with open(path, encoding="utf-8") as file:
        fields = json.load(file)
    for item in wanted:
        key, _, value = item.partition("=")
        found = fields
        for part in key.split("."):
            found = found.get(part, 0) if isinstance(found, dict) else 0
        if found != int(value):
            sys.exit(f"{path}: {key} is {found}, expected {value}")


def readme(path, folder):
    os.makedirs(folder)
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    count = 0
    for i, line in enumerate(lines):
        if line.strip() != "<!-- ci -->":
            continue
        if lines[i + 1] != "```sh":
            sys.exit(f"{path}:{i + 2}: expected ```sh behind the mark, found {lines[i + 1]!r}")
        end = lines.index("```", i + 2)
        count += 1
        with open(os.path.join(folder, f"{count:02}.sh"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines[i + 2 : end]) + "\n")
    if count == 0:
        sys.exit(f"{path}: no block is marked <!-- ci -->")


def links(*paths):
    missing = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"```.*?```", "", file.read(), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
            if not re.match(r"[a-z]+:", target) and not os.path.exists(os.path.join(os.path.dirname(path), target)):
                missing.append(f"{path}: {target} does not exist")
    if missing:
        sys.exit("\n".join(missing))


def manifest(schema_path, page_path):
    with open(schema_path, encoding="utf-8") as file:
        schema = json.load(file)
    with open(page_path, encoding="utf-8") as file:
        page = file.read()
    keys = set(schema["properties"]) - {"$schema"}
    for part in schema["properties"].values():
        keys |= set(part.get("properties", {}))
    missing = sorted(key for key in keys if not re.search(rf"`(\w+\.)?{key}[`:]", page))
    if missing:
        sys.exit(f"{page_path} says nothing of {', '.join(missing)}")


def operators(ops_path, page_path):
    with open(ops_path, encoding="utf-8") as file:
        defined = {op["op"] for op in json.load(file)}
    with open(page_path, encoding="utf-8") as file:
        line = next(line for line in file if line.startswith("| other domains |"))
    left_out = set(re.findall(r"`(\w+)`", line[line.index("("):line.index(")")]))
    wrong = sorted(left_out & defined)
    if wrong or not left_out:
        sys.exit(f"{page_path} says that {', '.join(wrong) or 'nothing'} is left out; what it names must not be defined")


if __name__ == "__main__":
    {"outputs": outputs, "report": report, "readme": readme, "links": links, "manifest": manifest, "operators": operators}[sys.argv[1]](*sys.argv[2:])
