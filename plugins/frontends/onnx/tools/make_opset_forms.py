#!/usr/bin/env python3
"""Writes opset_forms.inc: from which operator set on today's form of each ai.onnx operator can be written.

Needs the `onnx` package (1.23 for opset 28). For each operator it walks from the newest schema back to the one in
force at opset 13 and notes what each step added:

  'b' base       the operator itself, or a default or meaning that changed: older sets cannot say the node at all
  'a' attribute  an attribute that older sets do not have
  'i' input      an operand position that older sets do not have
  't' type       an element type of the first operand (of the result, for operators without operands)
  'v' version    a version of the definition (for operators that this program does not know and cannot rewrite)
"""
import os

import onnx.defs

FLOOR, NEWEST = 13, 28
# Same attributes and operands, other meaning: scale and bias of a group until 20, of a channel since; the axis
# of a DFT without that operand was 1, and is the last but one.
MEANING = {"GroupNormalization": 21, "DFT": 20}
TYPES = {"float": "TN_FLOAT32", "double": "TN_FLOAT64", "float16": "TN_FLOAT16", "bfloat16": "TN_BFLOAT16",
         "int8": "TN_INT8", "int16": "TN_INT16", "int32": "TN_INT32", "int64": "TN_INT64", "uint8": "TN_UINT8",
         "uint16": "TN_UINT16", "uint32": "TN_UINT32", "uint64": "TN_UINT64", "bool": "TN_BOOL", "string": "TN_STRING",
         "int4": "TN_INT4", "uint4": "TN_UINT4", "int2": "TN_INT2", "uint2": "TN_UINT2",
         "float8e4m3fn": "TN_FLOAT8_E4M3FN", "float8e4m3fnuz": "TN_FLOAT8_E4M3FNUZ", "float8e5m2": "TN_FLOAT8_E5M2",
         "float8e5m2fnuz": "TN_FLOAT8_E5M2FNUZ", "float8e8m0": "TN_FLOAT8_E8M0", "float4e2m1": "TN_FLOAT4_E2M1"}


def element_types(schema):
    formals = list(schema.inputs) or list(schema.outputs)
    if not formals:
        return set()
    allowed = formals[0].types or {formals[0].type_str}
    return {t for t in (name.replace("tensor(", "").rstrip(")") for name in allowed) if t in TYPES}


def default_of(attribute):
    value = attribute.default_value
    return value.SerializeToString() if value and value.name else b""


def main():
    history = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version <= NEWEST:
            history.setdefault(schema.name, {})[schema.since_version] = schema
    rows = []
    for name in sorted(history):
        versions = sorted(history[name])
        below = [v for v in versions if v <= FLOOR]
        kept = ([below[-1]] if below else []) + [v for v in versions if v > FLOOR]
        newest = history[name][kept[-1]]
        if newest.deprecated:
            continue
        base = kept[0] if kept[0] > FLOOR else 0
        attributes, inputs, types = {}, {}, {}
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
                break
            for a in newest.attributes:
                if a not in older.attributes:
                    attributes.setdefault(a, since)
            for i in range(len(older.inputs), len(newest.inputs)):
                inputs.setdefault(i, since)
            for t in element_types(newest) - element_types(older):
                types.setdefault(t, since)
        base = max(base, MEANING.get(name, 0))
        if base:
            rows.append((name, "b", "", "TN_DTYPE_NONE", base))
        rows += [(name, "a", a, "TN_DTYPE_NONE", v) for a, v in sorted(attributes.items())]
        rows += [(name, "i", "", str(i), v) for i, v in sorted(inputs.items())]
        rows += [(name, "t", "", TYPES[t], v) for t, v in sorted(types.items())]
        rows += [(name, "v", "", "TN_DTYPE_NONE", v) for v in versions]
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "opset_forms.inc"), "w") as out:
        out.write("// Made by tools/make_opset_forms.py; do not edit.\n// clang-format off\n")
        for name, kind, text, value, since in rows:
            out.write('{"%s", \'%s\', "%s", %s, %d},\n' % (name, kind, text, value, since))


main()
