#!/usr/bin/env python3
"""Writes opset_forms.inc: from which operator set on today's form of each ai.onnx operator can be written.

Needs the `onnx` package (1.23 for opset 28). For each operator it walks from the newest schema back to the one in
force at opset 7 and notes what each step added:

  'e' existence  the operator itself
  'b' base       a default or meaning that changed: older sets have the operator, but in other forms only
  'a' attribute  an attribute that older sets do not have
  'i' input      an operand position that older sets do not have
  't' type       an element type of an operand (place 0, 1, ...) or of a result (place 100, 101, ...)
  'v' version    a version of the definition (for operators that this program does not know and cannot rewrite)

For those who read, older_attributes.inc has the attributes that today's definition does not have, each with the
last version that has it, over all operator sets.
"""
import os

import onnx.defs

FLOOR, NEWEST, FIRST_RESULT = 7, 28, 100
# Same attributes and operands, other meaning: scale and bias of a group until 20, of a channel since; the axis
# of a DFT without that operand was 1, and is the last but one; the boxes of RoiAlign were not moved by half a pixel.
MEANING = {"GroupNormalization": 21, "DFT": 20, "RoiAlign": 16}
TYPES = {"float": "TN_FLOAT32", "double": "TN_FLOAT64", "float16": "TN_FLOAT16", "bfloat16": "TN_BFLOAT16",
         "int8": "TN_INT8", "int16": "TN_INT16", "int32": "TN_INT32", "int64": "TN_INT64", "uint8": "TN_UINT8",
         "uint16": "TN_UINT16", "uint32": "TN_UINT32", "uint64": "TN_UINT64", "bool": "TN_BOOL", "string": "TN_STRING",
         "int4": "TN_INT4", "uint4": "TN_UINT4", "int2": "TN_INT2", "uint2": "TN_UINT2",
         "float8e4m3fn": "TN_FLOAT8_E4M3FN", "float8e4m3fnuz": "TN_FLOAT8_E4M3FNUZ", "float8e5m2": "TN_FLOAT8_E5M2",
         "float8e5m2fnuz": "TN_FLOAT8_E5M2FNUZ", "float8e8m0": "TN_FLOAT8_E8M0", "float4e2m1": "TN_FLOAT4_E2M1"}


def element_types(schema):
    """{place: element types}; of several places with one type variable the first only."""
    seen, places = set(), {}
    for first, formals in ((0, schema.inputs), (FIRST_RESULT, schema.outputs)):
        for place, formal in enumerate(formals):
            if formal.type_str in seen:
                continue
            if "(" not in formal.type_str:
                seen.add(formal.type_str)
            allowed = formal.types or {formal.type_str}
            places[first + place] = {t for t in (name.replace("tensor(", "").rstrip(")") for name in allowed) if t in TYPES}
    return places


def default_of(attribute):
    value = attribute.default_value
    return value.SerializeToString() if value and value.name else b""


def main():
    history = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version <= NEWEST:
            history.setdefault(schema.name, {})[schema.since_version] = schema
    rows, gone = [], []
    for name in sorted(history):
        versions = sorted(history[name])
        below = [v for v in versions if v <= FLOOR]
        kept = ([below[-1]] if below else []) + [v for v in versions if v > FLOOR]
        newest = history[name][kept[-1]]
        meant = [v for v in versions if not history[name][v].deprecated]
        older = {a: v for v in meant for a in history[name][v].attributes
                 if a not in history[name][meant[-1]].attributes}
        gone += [(name, a, v) for a, v in sorted(older.items())]
        if newest.deprecated:
            continue
        if kept[0] > FLOOR:
            rows.append((name, "e", "", 0, "TN_DTYPE_NONE", kept[0]))
        base, attributes, inputs, types = 0, {}, {}, {}
        for position in range(len(kept) - 1, 0, -1):
            older, since = history[name][kept[position - 1]], kept[position]
            changed = any(a in older.attributes and default_of(older.attributes[a]) != default_of(newest.attributes[a])
                          for a in newest.attributes)
            # An attribute that was required then and is optional now must be there; one that is gone became an input.
            changed |= any(a in newest.attributes and older.attributes[a].required and not newest.attributes[a].required
                           for a in older.attributes)
            changed |= older.min_input > newest.min_input
            if changed:
                base = max(base, since)
            for a in newest.attributes:
                if a not in older.attributes:
                    attributes.setdefault(a, since)
            for i in range(len(older.inputs), len(newest.inputs)):
                inputs.setdefault(i, since)
            before = element_types(older)
            for place, allowed in element_types(newest).items():
                for t in allowed - before.get(place, allowed):
                    types.setdefault((place, t), since)
        base = max(base, MEANING.get(name, 0))
        if base:
            rows.append((name, "b", "", 0, "TN_DTYPE_NONE", base))
        rows += [(name, "a", a, 0, "TN_DTYPE_NONE", v) for a, v in sorted(attributes.items())]
        rows += [(name, "i", "", i, "TN_DTYPE_NONE", v) for i, v in sorted(inputs.items())]
        rows += [(name, "t", "", place, TYPES[t], v) for (place, t), v in sorted(types.items())]
        rows += [(name, "v", "", 0, "TN_DTYPE_NONE", v) for v in versions]
    write("opset_forms.inc", ('{"%s", \'%s\', "%s", %d, %s, %d},\n' % row for row in rows))
    write("older_attributes.inc", ('{"%s", "%s", %d},\n' % row for row in gone))


def write(name, lines):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", name), "w") as out:
        out.write("// Made by tools/make_opset_forms.py; do not edit.\n// clang-format off\n")
        out.writelines(lines)


main()
