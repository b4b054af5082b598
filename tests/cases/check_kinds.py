#!/usr/bin/env python3
"""Proves kinds.tsv: every case has a line, and each line names a graph or a test that there is. Exit code 1 otherwise."""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))


def tests_of(path):
    with open(path, encoding="utf-8") as file:
        text = re.sub(r'"\s*\n\s*"', "", file.read())  # a long name stands on two lines
    return set(re.findall(r'TEST_CASE\(\s*"((?:[^"\\]|\\.)*)"', text))


def main():
    cases = {name for name in os.listdir(HERE) if os.path.exists(os.path.join(HERE, name, "case.json"))}
    covered, wrong = set(), []
    with open(os.path.join(HERE, "kinds.tsv"), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.startswith("#"):
                continue
            case, path, *name = line.rstrip("\n").split("\t")
            place = f"kinds.tsv:{number}: "
            covered.add(case)
            if case not in cases:
                wrong.append(f"{place}there is no case {case}")
            full = os.path.join(ROOT, path)
            if not os.path.exists(full):
                wrong.append(f"{place}there is no file {path}")
            elif bool(name) == path.endswith(".graph"):
                wrong.append(f"{place}{path} is {'a graph, which has no tests' if name else 'no graph; name a test in it'}")
            elif name and name[0] not in tests_of(full):
                wrong.append(f"{place}{path} has no test '{name[0]}'")
    wrong += [f"kinds.tsv: case {case} has no line" for case in sorted(cases - covered)]
    print("\n".join(wrong) or f"{len(cases)} cases, each with what covers its kind")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
