#!/usr/bin/env python3
"""Round trips: `tenon optimize` writes ONNX, and ONNX Runtime must give for it what it gives for the model as it was.

  run.py --tenon BUILD/bin/tenon [--node DIR] [--cases DIR] [--networks CACHE] [--random PROGRAM [--seed S] [--count N]]
         [--levels 0 3] [--opsets default own newest 17 13 9 7] [--only NAME ...] [--jobs 2] [--json OUT] [--keep DIR]

Each model goes, at each level (`--set level=L`) and each operator set, through `tenon optimize`, through the checker of onnx (full) and
through ONNX Runtime; names, types and metadata must have stayed, and outputs be equal: every one within rtol 1e-3 and
atol 1e-4 * min(1, largest |output|) (16-bit floats: some steps of their last place), or no farther off than ONNX Runtime's own
outputs are when inputs move by a rounding error. Of random operators types and shapes are compared. A model that ONNX Runtime does
not run as it is has nothing to be compared with and is counted as such. In another operator set than the model's, what ONNX Runtime
gives for the model with that number in its place counts too: its kernels for two operator sets differ here and there, and
where it has none at all the trip counts as lacking. With --again (at the default operator set) the written
file goes through a second time: it loads, has no more nodes, each kind of its fused operators again, and gives the same.

Operator sets: a number; default (tenon's choice), own (the model's), newest (28). A model may be refused in an operator set
older than its own, if the message names what stands against it. Exit code: 0 all hold, 1 some do not, 77 (CTest: skipped)
without onnxruntime.
"""
import argparse
import collections
import importlib.util
import json
import multiprocessing
import os
import sys
import tempfile
import threading

SKIPPED, OLDEST, NEWEST = 77, 7, 28
GOOD = ("same", "older", "lacking", "original")


def serve(pipe, arguments):
    """A worker: models in, records out. ONNX Runtime may crash; then only this process is gone."""
    import judge
    with tempfile.TemporaryDirectory() as folder:
        while True:
            model = pipe.recv()
            if model is None:
                return
            records = []
            try:
                original = judge.Original(model)
            except judge.Refused as e:
                pipe.send([judge.Record(model.name, "", "", "original", str(e))])
                continue
            except Exception as e:  # what it reads was made elsewhere
                pipe.send([judge.Record(model.name, "", "", "original", f"{type(e).__name__}: {judge.first_line(e)}")])
                continue
            seen = set()
            for level in arguments.levels:
                for wanted in arguments.opsets:
                    opset = {"default": 0, "own": max(OLDEST, original.opset), "newest": NEWEST}.get(wanted) if not wanted.isdigit() else int(wanted)
                    if (level, opset) in seen:
                        continue
                    seen.add((level, opset))
                    again = arguments.again and not opset
                    try:
                        record = judge.trip(arguments.tenon, original, model, level, opset, folder, again, arguments.timeout,
                                            arguments.optimised, arguments.external)
                    except Exception as e:
                        record = judge.Record(model.name, level, opset, "file", f"{type(e).__name__}: {judge.first_line(e)}")
                    records.append(record)
                    if arguments.keep and record.status not in GOOD and os.path.exists(os.path.join(folder, "trip.onnx")):
                        os.replace(os.path.join(folder, "trip.onnx"), os.path.join(arguments.keep, f"{model.name}-{level}-{opset}.onnx".replace(" ", "-")))
            pipe.send(records)


def drive(models, total, arguments, records, lock):
    """One worker after another: a new one when one is gone."""
    worker = pipe = None
    while True:
        with lock:
            model = next(models, None)
        if model is None:
            break
        if worker is None:
            pipe, end = multiprocessing.Pipe()
            worker = multiprocessing.Process(target=serve, args=(end, arguments), daemon=True)
            worker.start()
            end.close()
        pipe.send(model)
        try:
            found = [tuple(r) for r in pipe.recv()]
        except EOFError:
            worker.join()
            found = [(model.name, "", "", "crash", f"the process of ONNX Runtime ended with {worker.exitcode}")]
            worker = None
        with lock:
            records += found
            total[1] += 1
            if total[1] % 200 == 0:
                print(f"... {total[1]} of {total[0]} models", flush=True)
            for record in found:
                if record[3] not in GOOD:
                    print(f"FAIL {record[3]:8} {record[0]} level {record[1]} opset {record[2]}: {record[4][:400]}", flush=True)
    if worker is not None:
        pipe.send(None)
        worker.join()


def report(records, out):
    table = collections.defaultdict(collections.Counter)
    models = {r[0] for r in records}
    without = {r[0] for r in records if r[3] == "original"}
    for _, level, opset, status, _ in records:
        if status != "original":
            table[(level, opset)][status] += 1
    for (level, opset), counts in sorted(table.items(), key=lambda row: (str(row[0][0]), str(row[0][1]).zfill(3))):
        print(f"level {level} opset {opset or 'default':>7}: " + ", ".join(f"{n} {s}" for s, n in sorted(counts.items())))
    for text, n in collections.Counter(r[4][:100] for r in records if r[3] == "original").most_common(8 if out else 3):
        print(f"  ONNX Runtime, {n} x: {text}")
    bad = [r for r in records if r[3] not in GOOD]
    print(f"{len(models)} models, {len(without)} of which ONNX Runtime does not run as they are; "
          f"{sum(r[3] == 'same' for r in records)} trips the same, {sum(r[3] == 'older' for r in records)} refused in an older operator set, "
          f"{sum(r[3] == 'lacking' for r in records)} without a kernel of ONNX Runtime in another operator set, {len(bad)} fail")
    if out:
        with open(out, "w") as f:
            json.dump([dict(zip(("model", "level", "opset", "status", "note"), r)) for r in records], f, indent=1)
    return 1 if bad or not records else 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tenon", required=True)
    p.add_argument("--node", metavar="DIR", action="append", default=[], help="ONNX's tests, as tests/conformance/generate.py writes them")
    p.add_argument("--cases", metavar="DIR", help="bug-report cases")
    p.add_argument("--networks", metavar="CACHE", help="the cache of tests/networks/run.py")
    p.add_argument("--random", metavar="PROGRAM", help="tests/bin/random_graphs of a build")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=1000)
    p.add_argument("--only", nargs="+", metavar="NAME", help="models whose name has one of these parts (networks: these)")
    p.add_argument("--every", type=int, default=1, help="each so many models of the lists but networks")
    p.add_argument("--levels", nargs="+", type=int, default=[0, 1, 2, 3])
    p.add_argument("--opsets", nargs="+", default=["default", "own", "newest"])
    p.add_argument("--again", action="store_true", help="what is written goes through once more")
    p.add_argument("--optimised", action="store_true", help="ONNX Runtime runs the written file with its own optimisations")
    p.add_argument("--external", action="store_true", help="weights in a file of their own")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--timeout", type=float, default=300)
    p.add_argument("--keep", metavar="DIR", help="folder for written files that fail")
    p.add_argument("--json", metavar="OUT")
    a = p.parse_args()
    missing = [m for m in ("numpy", "onnx", "onnxruntime") if importlib.util.find_spec(m) is None]
    if missing:
        print(f"roundtrip: skipped, {sys.executable} has no {', '.join(missing)}; scripts/bootstrap --dev makes a .venv that has them")
        return SKIPPED
    if not os.access(a.tenon, os.X_OK):
        p.error(f"{a.tenon} is no program; build it first (make build)")
    a.tenon = os.path.abspath(a.tenon)
    if a.keep:
        os.makedirs(a.keep, exist_ok=True)
    import models
    with tempfile.TemporaryDirectory() as folder:
        found = [m for d in a.node for m in models.node_tests(d)]
        if a.cases:
            found += models.cases(a.cases)
        if a.random:
            found += models.random_graphs(os.path.abspath(a.random), a.seed, a.count, folder)
        if a.only and not a.networks:
            found = [m for m in found if any(part in m.name for part in a.only)]
        found = found[::a.every]
        if a.networks:
            found += models.networks(a.networks, a.only)
        records, lock, queue, total = [], threading.Lock(), iter(found), [len(found), 0]
        threads = [threading.Thread(target=drive, args=(queue, total, a, records, lock)) for _ in range(a.jobs)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    return report(records, a.json)


if __name__ == "__main__":
    sys.exit(main())
