#!/usr/bin/env python3
"""Writes schemas.inc, the table of operators of ONNX's own domains that the plugin defines, from the Python package onnx.

    python3 generate_schemas.py > schemas.inc

One line an operator at its newest version up to OPSET; schema_table.hpp explains the columns. What inference, upgrade
and decomposition do with an operator is written by hand in the family files.
"""
import collections
import sys

import onnx.defs

OPSET = 28
DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")
# Their values are maps, which the boundary does not carry.
LEFT_OUT = {"CastMap", "DictVectorizer", "ZipMap"}
# Gradient has operands for the values that its attributes name: training/gradient.cpp has its definition.
LEFT_OUT |= {"Gradient"}
SHORT = {"float": "f32", "double": "f64", "float16": "f16", "bfloat16": "bf16", "bool": "bool", "string": "str",
         "complex64": "c64", "complex128": "c128", "float8e4m3fn": "f8e4m3fn", "float8e4m3fnuz": "f8e4m3fnuz",
         "float8e5m2": "f8e5m2", "float8e5m2fnuz": "f8e5m2fnuz", "float8e8m0": "f8e8m0", "float4e2m1": "f4e2m1"}
for bits in (2, 4, 8, 16, 32, 64):
    SHORT[f"int{bits}"] = f"i{bits}"
    SHORT[f"uint{bits}"] = f"u{bits}"
# Sets that many operators share; schema_table.cpp has the same list. Used where a type variable has all of them.
SETS = [
    ("@plain", "i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 bool str c64 c128"),
    ("@number", "i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 bf16"),
    ("@float8", "f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz"),
    ("@int", "i8 i16 i32 i64 u8 u16 u32 u64"),
    ("@float", "f16 f32 f64 bf16"),
    ("@ieee", "f16 f32 f64"),
]


def element_and_kind(text):
    kinds = {"tensor": 1, "seq": 2, "optional": 3, "sparse_tensor": 1}
    outer, inner = text.split("(", 1)
    kind = kinds[outer]
    inner = inner[:-1]
    if outer == "optional":
        kind = 4 if inner.startswith("seq") else 3
    while "(" in inner:
        inner = inner.split("(", 1)[1][:-1]
    return SHORT.get(inner), kind


def type_set(strings):
    left = set()
    kinds = set()
    for text in strings:
        element, kind = element_and_kind(text)
        if element is None:  # an element type that the boundary has no number for (float6)
            continue
        left.add(element)
        kinds.add(kind)
    out = []
    for name, members in SETS:
        members = set(members.split())
        if members <= left:
            out.append(name)
            left -= members
    order = list(SHORT.values())
    out += sorted(left, key=order.index)
    text = ",".join(out)
    if kinds != {1}:
        text += "/" + "".join(str(k) for k in sorted(kinds))
    return text


def param(p, variables):
    marks = {"Single": "", "Optional": "?", "Variadic": "*"}[p.option.name]
    if p.option.name == "Variadic" and not p.is_homogeneous:
        marks = "**"
    if p.type_str in variables:
        kind = p.type_str
    else:
        kind = "=" + element_and_kind(p.type_str)[0]
    return f"{p.name}{marks}:{kind}"


def attribute(a):
    kind = a.type.name.lower()
    if kind in ("graph", "sparse_tensor"):
        return None
    default = a.default_value
    if default is not None and default.type:
        if kind == "int":
            return f"{a.name}={default.i}"
        if kind == "float":
            text = f"{default.f:.9g}"
            return f"{a.name}={text if any(c in text for c in '.e') else text + '.0'}"
        if kind == "string":
            return f"{a.name}='{default.s.decode()}'"
    return f"{a.name}{'!' if a.required else ''}:{kind}"


def main():
    history = collections.defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain in DOMAINS and schema.since_version <= OPSET and schema.name not in LEFT_OUT:
            history[schema.domain, schema.name].append(schema)
    sys.stdout.write("// Made by generate_schemas.py; do not edit.\n// clang-format off\n")
    for domain, name in sorted(history):
        versions = sorted(history[domain, name], key=lambda s: s.since_version)
        newest = versions[-1]
        shape = newest if not newest.deprecated else versions[-2]
        variables = {c.type_param_str for c in shape.type_constraints}
        inputs = " ".join(param(p, variables) for p in shape.inputs)
        outputs = " ".join(param(p, variables) for p in shape.outputs)
        types = " ".join(f"{c.type_param_str}:{type_set(c.allowed_type_strs)}" for c in shape.type_constraints)
        attrs = " ".join(t for t in (attribute(a) for a in sorted(shape.attributes.values(), key=lambda a: a.name)) if t)
        sys.stdout.write(f'{{"{domain}", "{name}", {versions[0].since_version}, {newest.since_version}, {shape.min_input}, '
                         f'"{inputs}", "{outputs}",\n "{types}", "{attrs}"}},\n')


if __name__ == "__main__":
    main()
