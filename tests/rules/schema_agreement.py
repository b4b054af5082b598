"""The schema for editors and the validator of the engine say the same of rule files, whole ones and broken ones.

Good files are broken at random places, each is given to both: what the schema refuses, the engine refuses; what the
engine refuses for its structure (a key, a kind, a range, something missing), the schema refuses too. Names, operators
and expressions are the engine's alone. Leaves with 77, "skipped", where the module jsonschema is not there.
"""
import copy
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    print("the Python module jsonschema is not installed")
    sys.exit(77)

STRUCTURE = {"E201", "E202", "E203"}
VALUES = [None, True, False, 0, 1, -1, 2.5, 2.0, 65, 1000000, "", "x", "a b", "...", "_", "X?", "origin", [], {}, ["x"], {"x": 1}, [1], "...x"]
KEYS = ["op", "in", "out", "attrs", "optional", "const", "why", "min", "max", "x", "$schema", "any_of", "id", "rule", "repeat", "absent"]


def without_comments(text):
    return re.sub(r"^\s*//.*$", "", text, flags=re.M)


def spots(value, path=()):
    """Every place in a tree."""
    found = [path]
    if isinstance(value, dict):
        for key in value:
            found += spots(value[key], path + (key,))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            found += spots(item, path + (i,))
    return found


def mutate(root, rng):
    root = copy.deepcopy(root)
    for _ in range(rng.choice([1, 1, 1, 2])):
        path = rng.choice(spots(root))
        if not path:
            continue
        parent = root
        for step in path[:-1]:
            parent = parent[step]
        here, kind = path[-1], rng.randrange(6)
        if kind == 0:
            del parent[here]
        elif kind == 1:
            parent[here] = copy.deepcopy(rng.choice(VALUES))
        elif kind == 2 and isinstance(parent, dict):
            parent[rng.choice(KEYS)] = copy.deepcopy(rng.choice(VALUES))
        elif kind == 3 and isinstance(parent, dict):
            parent[rng.choice(KEYS)] = parent.pop(here)
        elif kind == 4 and isinstance(parent, list):
            parent.insert(here, copy.deepcopy(rng.choice(VALUES)))
        elif kind == 5 and isinstance(parent[here], (list, dict)):
            parent[here].clear()
        else:
            parent[here] = copy.deepcopy(rng.choice(VALUES))
    return root


def engine_codes(program, file):
    done = subprocess.run([program, "rules", "check", "--format", "json", str(file)], capture_output=True, text=True)
    if done.returncode not in (0, 2):
        raise SystemExit(f"{file}: exit code {done.returncode}\n{done.stderr}")
    said = json.loads(done.stdout)
    return [(f["code"], f["where"], f["text"]) for f in said["findings"] if f["severity"] == "error"]


def main():
    program, source, count = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    schema = jsonschema.Draft202012Validator(json.loads((source / "schemas/rule.schema.json").read_text()))
    seeds = []
    for file in sorted((source / "rules").glob("*.json")) + sorted((source / "tests/rules/examples").glob("*.json")):
        tree = json.loads(without_comments(file.read_text()))
        rules = tree["rules"] if isinstance(tree, dict) and "rules" in tree else [tree]
        seeds += rules if len(rules) > 1 else [tree]
    rng, wrong, both, refused = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 5), 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for i in range(count):
            tree = rng.choice(seeds) if i % 20 else {"schema": "tenon.rules/1", "rules": [rng.choice(seeds)]}
            if i % 3 or i < 3 * len(seeds) and i % 2:
                tree = mutate(tree, rng)
            file = pathlib.Path(folder) / "rule.json"
            file.write_text(json.dumps(tree))
            errors = sorted(schema.iter_errors(tree), key=str)
            found = engine_codes(program, file)
            structure = [f for f in found if f[0] in STRUCTURE]
            refused += bool(errors)
            both += bool(errors) == bool(found)
            if (errors and not found) or (structure and not errors):
                wrong += 1
                print(f"--- {json.dumps(tree)}\nschema: {[(e.json_path, e.message[:160]) for e in errors[:3]]}\nengine: {found[:3]}")
    print(f"{count} files, {refused} refused by the schema, {wrong} judged differently")
    return 1 if wrong or not refused else 0


if __name__ == "__main__":
    sys.exit(main())
