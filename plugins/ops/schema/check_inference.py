#!/usr/bin/env python3
"""Compares inferred types and shapes with the Python package onnx, and with what really comes out.

    python3 check_inference.py TENON NODE_TESTS [PATTERN]

NODE_TESTS holds onnx's node tests as files: NAME/model.onnx, NAME/test_data_set_0/*.pb; PATTERN chooses some by
name. Every model loses the shapes of
its outputs and is inferred twice: as it is, and with its integer inputs as constants, which decide many shapes. A
number that differs from the real shape is an error; so is a dimension that onnx.shape_inference knows and the program
does not. Prints every difference; exit code 1 when there is one.
"""
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

import onnx
from onnx import numpy_helper, shape_inference

NAMES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool",
    10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16",
    17: "float8e4m3fn", 18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4",
    23: "float4e2m1", 24: "float8e8m0", 25: "uint2", 26: "int2",
}  # fmt: skip
INTEGERS = (2, 3, 4, 5, 6, 7, 9, 12, 13)


def read_tensor(path):
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return tensor


def stripped(path, constants):
    """The model without shapes of results, and with constants for its integer inputs if asked for."""
    model = onnx.load(path / "model.onnx")
    del model.graph.value_info[:]
    for output in model.graph.output:
        if output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")
    if constants:
        for i, value in enumerate(list(model.graph.input)):
            file = path / "test_data_set_0" / f"input_{i}.pb"
            if value.type.HasField("tensor_type") and value.type.tensor_type.elem_type in INTEGERS and file.exists():
                tensor = read_tensor(file)
                tensor.name = value.name
                model.graph.initializer.append(tensor)
                model.graph.input.remove(value)
    return model


def ours(tenon, file):
    """(types of the outputs by name, None), or (None, what was said)."""
    command = [tenon, "optimize", file, "--threads", "1", "--set", "level=0"]
    run = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120)
    if run.returncode:
        return None, (run.stderr.strip().splitlines() or ["no message"])[0]
    types, outputs = {}, {}
    for line in run.stdout.splitlines():
        if found := re.match(r'\s*output (%\S+|%"[^"]*") as "(.*)"$', line):
            if not line.startswith("    "):
                outputs[found[2]] = found[1]
        for name, type_ in re.findall(r'(%(?:[\w.]+|"[^"]*")): ((?:seq|optional)\(.*?\)+|[?\w]+\[[^\]]*\])', line):
            types.setdefault(name, type_)
    return {name: types.get(value, "?") for name, value in outputs.items()}, None


def theirs(model):
    try:
        inferred = shape_inference.infer_shapes(model, check_type=False, strict_mode=False, data_prop=True)
    except Exception:  # it refuses some of its own tests
        return {}
    return {o.name: o.type.tensor_type for o in inferred.graph.output if o.type.HasField("tensor_type")}


def check(tenon, path, constants):
    model = stripped(path, constants)
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        file.write(model.SerializeToString())
        file.flush()
        found, said = ours(tenon, file.name)
    if found is None:
        return [f"refused: {said}"]
    reference, differences = theirs(model), []
    for i, output in enumerate(model.graph.output):
        if not output.type.HasField("tensor_type"):
            continue
        mine = found.get(output.name, "?")
        file = path / "test_data_set_0" / f"output_{i}.pb"
        real = numpy_helper.to_array(read_tensor(file)).shape if file.exists() else None
        wanted = NAMES[output.type.tensor_type.elem_type]
        parts = re.match(r"([?\w]+)\[(.*)\]$", mine)
        if not parts or parts[1] != wanted:
            differences.append(f"{output.name} is {mine}; expected {wanted}")
            continue
        known = reference.get(output.name)
        shape = known.shape.dim if known is not None and known.HasField("shape") else None
        if parts[2] == "*":
            if shape is not None:
                differences.append(f"{output.name} has no rank; onnx knows {len(shape)}, really {real}")
            continue
        dims = re.findall(r"(?:[^,()']|\([^()]*(?:\([^()]*\)[^()]*)*\)|'[^']*')+", parts[2])
        if real is not None and len(dims) != len(real):
            differences.append(f"{output.name} is {mine}; really {real}")
            continue
        for k, dim in enumerate(dims):
            number = int(dim) if re.fullmatch(r"\d+", dim.strip()) else None
            if number is not None and real is not None and number != real[k]:
                differences.append(f"{output.name} is {mine}; really {real}")
            if number is None and shape is not None and len(shape) == len(dims) and shape[k].HasField("dim_value"):
                differences.append(f"{output.name} is {mine}; onnx knows axis {k}: {shape[k].dim_value}")
    return differences


def main():
    tenon, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    pattern = re.compile(sys.argv[3] if len(sys.argv) > 3 else "")
    tests = sorted(p for p in folder.iterdir() if pattern.search(p.name) and (p / "model.onnx").exists())
    jobs = [(path, constants) for path in tests for constants in (False, True)]
    count = refused = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for (path, constants), lines in zip(jobs, pool.map(lambda job: check(tenon, *job), jobs)):
            for line in lines:
                print(f"{path.name}{' (constants)' if constants else ''}: {line}")
                refused += line.startswith("refused")
                count += 1
    print(f"{len(jobs)} models inferred, {count} differences, {refused} of them refused")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
