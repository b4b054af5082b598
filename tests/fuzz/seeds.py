#!/usr/bin/env python3
"""Writes seeds for the fuzz targets, OUT/<target>/..., from what the project has: models of the cases and examples,
rule files and each rule alone, manifests, the texts in the tests. --onnx adds node tests of the onnx package (a folder
of NAME/model.onnx), the smallest of each operator; --tenon prints the graphs' text forms.

The kept corpus (tests/fuzz/corpus) was minimised from these and from what fuzzing added: scripts/nightly/fuzz.sh.
"""
import argparse
import glob
import io
import json
import os
import re
import subprocess
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LARGEST = 12000  # bytes of one seed


class Folder:
    def __init__(self, path):
        self.path = path
        self.count = 0
        os.makedirs(path, exist_ok=True)

    def add(self, data):
        if not 0 < len(data) <= LARGEST:
            return
        with open(os.path.join(self.path, f"{self.count:05d}"), "wb") as file:
            file.write(data)
        self.count += 1


def read(path):
    with open(path, "rb") as file:
        return file.read()


def raw_strings(path):
    """The contents of C++ raw strings: what the tests feed the readers with."""
    text = read(path).decode()
    for match in re.finditer(r'R"(\w*)\((.*?)\)\1"', text, re.DOTALL):
        yield match.group(2).encode()


def models(onnx_folder):
    paths = glob.glob(f"{ROOT}/tests/cases/*/model.onnx")
    by_kind = {}
    for path in glob.glob(f"{onnx_folder}/*/model.onnx") if onnx_folder else []:
        # test_add_bcast and test_add_uint8 are of one kind; three of each are enough to mutate.
        kind = "_".join(os.path.basename(os.path.dirname(path)).split("_")[1:3])
        by_kind.setdefault(kind, []).append(path)
    for kind in by_kind.values():
        paths += sorted(kind, key=os.path.getsize)[:3]
    return [path for path in paths if os.path.getsize(path) <= LARGEST]


def npy(header, body=b"", major=1):
    head = header.encode()
    size = len(head).to_bytes(2 if major == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([major, 0]) + size + head + body


def tensor_files():
    """Each with the byte before it that picks the format: 0 .npy, 1 .npz, 2 .pb."""
    arrays = []
    for kind, width in [("<f4", 4), ("<f8", 8), ("<i8", 8), (">i4", 4), ("|b1", 1), ("<f2", 2), ("|u1", 1), ("<V2", 2), ("<c8", 8), ("<U3", 12), ("|S4", 4)]:
        for shape, count in [("()", 1), ("(2,)", 2), ("(2, 3)", 6), ("(0, 4)", 0)]:
            for order in ("False", "True"):
                header = f"{{'descr': '{kind}', 'fortran_order': {order}, 'shape': {shape}, }}"
                arrays.append(npy(header + " " * (-(len(header) + 11) % 64) + "\n", b"\1" * (width * count)))
    arrays.append(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", b"\0" * 8, 2))
    arrays.append(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", b"\0" * 8, 3))
    for array in arrays:
        yield b"\0" + array
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        for names in (["x.npy"], ["x.npy", "y.npy"], ["s[0].npy", "s[1].npy", "a.npy"]):
            memory = io.BytesIO()
            with zipfile.ZipFile(memory, "w", method) as archive:
                for number, name in enumerate(names):
                    archive.writestr(name, arrays[number * 3])
            yield b"\1" + memory.getvalue()
    for path in glob.glob(f"{ROOT}/plugins/tensors/testdata/*.npz") + glob.glob(f"{ROOT}/tests/cases/*/*.npz"):
        yield b"\1" + read(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("--onnx", help="folder of onnx's node tests")
    parser.add_argument("--tenon", help="the program")
    arguments = parser.parse_args()
    folder = {name: Folder(os.path.join(arguments.out, name)) for name in ("onnx", "npz", "manifest", "rules", "text")}

    found = models(arguments.onnx)
    for path in found:
        folder["onnx"].add(read(path))
    for data in tensor_files():
        folder["npz"].add(data)
    for path in glob.glob(f"{arguments.onnx}/*/test_data_set_0/*.pb") if arguments.onnx else []:
        if os.path.getsize(path) < 120:
            folder["npz"].add(b"\2" + read(path))

    for path in glob.glob(f"{ROOT}/rules/*.json") + glob.glob(f"{ROOT}/examples/*/rules/*.json"):
        folder["rules"].add(read(path))
        text = re.sub(r"^\s*//.*$", "", read(path).decode(), flags=re.MULTILINE)
        for rule in json.loads(text)["rules"]:
            folder["rules"].add(json.dumps({"schema": "tenon.rules/1", "rules": [rule]}).encode())
    for path in glob.glob(f"{ROOT}/examples/*/*.graph"):
        folder["text"].add(read(path))
    tests = glob.glob(f"{ROOT}/**/*_test.cpp", recursive=True)
    for path in tests:
        for text in raw_strings(path):
            if b'"rule"' in text or b'"pattern"' in text:
                folder["rules"].add(text)
            elif text.lstrip().startswith(b"graph"):
                folder["text"].add(text)
            elif b"tenon.pipeline" in text or text.lstrip().startswith(b"{"):
                folder["manifest"].add(text)
    for path in glob.glob(f"{ROOT}/schemas/default.json") + glob.glob(f"{ROOT}/examples/**/pipeline.json", recursive=True):
        folder["manifest"].add(read(path))
    for path in glob.glob(f"{ROOT}/docs/*.md"):
        for block in re.findall(r"```json\n(.*?)```", read(path).decode(), re.DOTALL):
            folder["manifest"].add(block.encode())
            folder["rules"].add(block.encode())
    base = b'{"schema": "tenon.pipeline/1", "plugins": ["onnx"], "model": {"path": "m.onnx"}}'
    for setting in ("runtime.threads=2", "precision.mode=strict", "level=1", 'pipeline=["fold"]', "kernels.deny=[\"a*\"]", "model.shapes.x=[1,2]"):
        folder["manifest"].add(base + b"\0" + setting.encode())
    for switches in ("ConvBnAct:on\nclean:off\n", "ConvBnAct=1\nclean=0\n", '{"Switch": {"GraphFusion": {"ConvBnAct": "off", "ALL": "on"}}}', "ALL:off;clean:on"):
        folder["manifest"].add(b"#" + switches.encode())

    for path in found if arguments.tenon else []:
        done = subprocess.run([arguments.tenon, "run", path, "--stop-after", "infer", "-q"], capture_output=True)
        if done.returncode == 0:
            folder["text"].add(done.stdout)
    for name, one in folder.items():
        print(f"{name}: {one.count}")


if __name__ == "__main__":
    main()
