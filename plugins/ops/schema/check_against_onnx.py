#!/usr/bin/env python3
"""Compares the program's operators of ai.onnx with the Python package onnx.

    tenon ops --json > ops.json
    python3 check_against_onnx.py ops.json

Names, versions, operands, results, attributes and defaults must agree; prints every difference, and which operators of
onnx the program has not. Exit code 1 when something differs.
"""
import json
import sys

import numpy
import onnx.defs

OPSET = 28
OTHERS = {"SimplifiedLayerNormalization"}  # no operator of ONNX: exporters write it without a domain


def default_of(attribute):
    value = attribute.default_value
    if value is None or not value.type:
        return None
    return {1: value.f, 2: value.i, 3: value.s.decode()}.get(value.type)


def differences(ours, schema):
    if ours["since_version"] != schema.since_version:
        yield f"since version {ours['since_version']}, onnx {schema.since_version}"
    if schema.deprecated:
        return
    for what, theirs in (("inputs", schema.inputs), ("outputs", schema.outputs)):
        names, wanted = [p["name"] for p in ours[what]], [p.name for p in theirs]
        if names != wanted:
            yield f"{what} {names}, onnx {wanted}"
    attributes = {a["name"]: a for a in ours["attributes"]}
    for name, theirs in schema.attributes.items():
        if theirs.type.name in ("GRAPH", "SPARSE_TENSOR"):
            continue
        mine = attributes.pop(name, None)
        if mine is None:
            yield f"attribute {name} is missing"
            continue
        if mine["required"] != theirs.required:
            yield f"attribute {name}: required {mine['required']}, onnx {theirs.required}"
        wanted = default_of(theirs)
        found = mine.get("default")
        same = numpy.float32(found) == numpy.float32(wanted) if isinstance(wanted, float) and found is not None else found == wanted
        if not same:
            yield f"attribute {name}: default {found!r}, onnx {wanted!r}"
    for name in attributes:
        yield f"attribute {name} is not in onnx"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        ours = {op["op"]: op for op in json.load(file) if "::" not in op["op"] and op["op"] not in OTHERS}
    newest = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version <= OPSET:
            if schema.name not in newest or newest[schema.name].since_version < schema.since_version:
                newest[schema.name] = schema
    count = 0
    for name, op in sorted(ours.items()):
        if name not in newest:
            print(f"{name}: onnx has no such operator")
            count += 1
            continue
        for text in differences(op, newest[name]):
            print(f"{name}: {text}")
            count += 1
    missing = sorted(set(newest) - set(ours))
    print(f"{len(ours)} operators compared, {count} differences; not defined: {', '.join(missing)}")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
