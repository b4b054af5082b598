#!/usr/bin/env python3
"""Writes ONNX's own tests as files, from the installed onnx package.

    generate.py OUT

OUT/<suite>/<test>/model.onnx, test_data_set_<k>/input_<i>.pb and output_<i>.pb, where <i> is the place among the model's
outputs or its inputs, those with an initialiser not counted. OUT/cases.txt, written last, has a line a test: its name and the
tolerances ONNX's runner compares it with. A second call finds the folder complete and does nothing.

Suites: node and simple (made by code in the package), pytorch-converted and pytorch-operator (files of the package), light
(the package has models and results; their inputs are a ramp, as in onnx/backend/test/runner).
"""
import hashlib
import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx import MapProto, OptionalProto, SequenceProto, TensorProto, numpy_helper
from onnx.backend.test.case.model import collect_testcases as collect_model_tests
from onnx.backend.test.case.node import collect_testcases as collect_node_tests
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

STAMP = "cases.txt"


def version():
    """What the files depend on: the package and this script."""
    own = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
    return f"# onnx {onnx.__version__}, generate.py {own}"


def to_proto(value, name, type_proto):
    """A value of a test as the message that ONNX's files hold for that type."""
    if isinstance(value, (TensorProto, SequenceProto, OptionalProto, MapProto)):
        proto = value
    elif type_proto.WhichOneof("value") == "optional_type":
        proto = numpy_helper.from_optional(value, name)
    elif type_proto.WhichOneof("value") == "sequence_type":
        proto = numpy_helper.from_list(value, name)
    elif isinstance(value, dict):
        proto = numpy_helper.from_dict(value, name)
    else:
        proto = numpy_helper.from_array(np.asarray(value), name)
    proto.name = name
    return proto


def write_values(folder, kind, values, declared):
    for place, (value, info) in enumerate(zip(values, declared, strict=True)):
        data = to_proto(value, info.name, info.type).SerializeToString()
        (folder / f"{kind}_{place}.pb").write_bytes(data)


def write_made_test(case, folder):
    """A test whose model and values are made by the package's code."""
    folder.mkdir(parents=True)
    onnx.save(case.model, folder / "model.onnx")
    for number, (inputs, outputs) in enumerate(case.data_sets):
        data_set = folder / f"test_data_set_{number}"
        data_set.mkdir()
        write_values(data_set, "input", inputs, case.model.graph.input)
        write_values(data_set, "output", outputs, case.model.graph.output)


def copy_test(case, folder):
    """A test that lies in the package as files."""
    shutil.copytree(case.model_dir, folder)


def write_either_test(case, folder):
    (copy_test if case.model_dir else write_made_test)(case, folder)


def write_light_test(case, folder):
    """A model of the zoo with constant weights: the package has it and its results for a ramp from 0 to 1."""
    source = Path(onnx.__file__).parent.parent / case.url
    folder.mkdir(parents=True)
    shutil.copy(source, folder / "model.onnx")
    graph = onnx.load(source).graph
    data_set = folder / "test_data_set_0"
    data_set.mkdir()
    initialised = {tensor.name for tensor in graph.initializer}
    given = [info for info in graph.input if info.name not in initialised]
    ramps = [Runner.generate_dummy_data(info, name=case.name) for info in given]
    write_values(data_set, "input", ramps, given)
    for place in range(len(graph.output)):
        shutil.copy(source.with_name(f"{source.stem}_output_{place}.pb"), data_set / f"output_{place}.pb")


def write_all(out):
    made = collect_model_tests()
    simple = {case.name: case for case in made if case.kind == "simple"}
    simple.update((case.name, case) for case in load_model_tests(kind="simple"))  # some are in the package both ways
    suites = [
        ("node", collect_node_tests(None), write_made_test),
        ("simple", simple.values(), write_either_test),
        ("pytorch-converted", load_model_tests(kind="pytorch-converted"), copy_test),
        ("pytorch-operator", load_model_tests(kind="pytorch-operator"), copy_test),
        ("light", [case for case in made if case.kind == "real"], write_light_test),
    ]
    lines = [version()]
    for suite, cases, write in suites:
        cases = sorted(cases, key=lambda case: case.name)
        for case in cases:
            write(case, out / suite / case.name)
            lines.append(f"{suite}/{case.name} {case.rtol} {case.atol}")
        print(f"{suite}: {len(cases)} tests")
    (out / STAMP).write_text("\n".join(lines) + "\n")


def is_complete(out):
    try:
        return (out / STAMP).read_text().startswith(version() + "\n")
    except FileNotFoundError:
        return False


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    out = Path(sys.argv[1]).resolve()
    if is_complete(out):
        return
    warnings.filterwarnings("ignore")  # tests provoke numpy's warnings of overflow and NaN on purpose
    out.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, then renamed: an interrupted call leaves nothing that looks complete.
    scratch = Path(tempfile.mkdtemp(prefix=out.name + ".", dir=out.parent))
    try:
        write_all(scratch)
        os.chmod(scratch, 0o755)
        shutil.rmtree(out, ignore_errors=True)
        scratch.rename(out)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
