#!/usr/bin/env python3
"""Runs the cases against one tenon and decides: enough of them pass, and none of the rest is dangerous.

  gate.py --tenon build/bin/tenon [--at-least 50]

A case may fail by a clear refusal. It may not crash, hang, run out of memory, end without a message or outputs, give a
wrong answer, or accept what is invalid. Exit code: 0 holds, 1 does not, 77 (CTest: skipped) without numpy.
"""
import argparse
import importlib.util
import json
import os
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DANGEROUS = ("crash", "timeout", "memory", "silent", "wrong", "accepted")
SKIPPED = 77


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tenon", required=True)
    p.add_argument("--at-least", type=int, default=50)
    p.add_argument("--timeout", type=float, default=60, help="seconds for one case")
    a = p.parse_args()
    if importlib.util.find_spec("numpy") is None:
        print(f"skipped: {sys.executable} has no numpy; scripts/bootstrap --dev makes a .venv that has it")
        return SKIPPED
    if not os.access(a.tenon, os.X_OK):
        p.error(f"{a.tenon} is no program; build it first (make build)")
    tenon = shlex.quote(os.path.abspath(a.tenon))
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        p = subprocess.run([sys.executable, os.path.join(HERE, "run.py"), "--timeout", str(a.timeout), "--json", report,
                            "--cmd", tenon + " run {model} --inputs {inputs} --outputs {outputs}",
                            "--opt-cmd", tenon + " optimize {model} -o {optimized}"])
        if not os.path.exists(report):
            print(f"gate: run.py wrote no report (exit {p.returncode})")
            return 1
        with open(report) as f:
            results = json.load(f)["results"]
    good = sum(r["status"].startswith("pass") for r in results)
    bad = [r for r in results if r["status"] in DANGEROUS]
    for r in bad:
        print(f"gate: {r['case']}: {r['status']}: {r['note']}")
    print(f"gate: {good} of {len(results)} pass, want at least {a.at_least}; {len(bad)} dangerous, want none")
    return 0 if good >= a.at_least and not bad else 1


if __name__ == "__main__":
    sys.exit(main())
