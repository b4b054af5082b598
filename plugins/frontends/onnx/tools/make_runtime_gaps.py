#!/usr/bin/env python3
"""Writes runtime_gaps.inc: what ONNX Runtime 1.32 has no kernel for although ONNX allows it, of what can be written otherwise.

Needs the packages `onnx` (1.23 for opset 28) and `onnxruntime` (1.32). Two kinds of rows, by operator and operator sets:

  an integer type of the first operand, with the wider one that the kernel takes in its place (Relu: perhaps none, it is a Max)
  none: no kernel for any type, and no function that would be inlined

A kernel fits a schema when it begins with that version, or ends in it or later; one that is open at its end fits none that
came later. 16-bit floats are not listed: ONNX Runtime casts float16 itself, and no model in bfloat16 shall be full of casts.
"""
import collections
import os

import onnx.defs
import onnxruntime.capi.onnxruntime_pybind11_state as runtime

FLOOR, NEWEST, OPEN = 7, 28, 2147483647
BITS = {"int8": (8, True), "int16": (16, True), "int32": (32, True), "int64": (64, True), "uint8": (8, False), "uint16": (16, False), "uint32": (32, False)}
# Where the bits of the narrow type matter, or the result is rounded in it.
BY_BITS = {"BitShift", "BitCast", "BitwiseNot", "Resize", "Upsample", "QuantizeLinear", "DequantizeLinear", "Cast", "CastLike"}


def holds(wide, narrow):
    (w, w_signed), (n, n_signed) = BITS[wide], BITS[narrow]
    return w > n and (w_signed or not n_signed)


def rows():
    kernels = collections.defaultdict(list)
    for k in runtime.get_all_opkernel_def():
        if k.provider == "CPUExecutionProvider" and k.domain == "":
            kernels[k.op_name].append((k.version_range, k.type_constraints))
    versions = collections.defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and not schema.deprecated and schema.inputs:
            versions[schema.name].append(schema)
    for op in sorted(versions):
        schemas = sorted(versions[op], key=lambda s: s.since_version)
        for i, schema in enumerate(schemas):
            last = schemas[i + 1].since_version - 1 if i + 1 < len(schemas) else NEWEST
            if last < FLOOR:
                continue
            since, variable = schema.since_version, schema.inputs[0].type_str
            fitting = [types for (a, b), types in kernels[op] if a == since or (a < since and b != OPEN and b >= since)]
            span = (max(FLOOR, since), last)
            if not fitting:
                if not (schema.has_function or schema.has_context_dependent_function):
                    yield op, *span, None, None
                continue
            if op in BY_BITS or any(variable not in types for types in fitting):
                continue
            have = {t[7:-1] for types in fitting for t in types[variable]}
            for narrow in sorted({t[7:-1] for t in schema.inputs[0].types} - have):
                wide = [w for w in ("int32", "int64") if narrow in BITS and w in have and holds(w, narrow)]
                if wide or (op == "Relu" and narrow in BITS):
                    yield op, *span, narrow, wide[0] if wide else None


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runtime_gaps.inc")
    with open(path, "w", encoding="utf-8") as f:
        f.write("// Made by tools/make_runtime_gaps.py; do not edit.\n// clang-format off\n")
        for op, first, last, narrow, wide in rows():
            f.write('{"%s", %d, %d, %s, %s},\n' % (op, first, last, "TN_" + narrow.upper() if narrow else "TN_DTYPE_NONE",
                                                   "TN_" + wide.upper() if wide else "TN_DTYPE_NONE"))


if __name__ == "__main__":
    main()
