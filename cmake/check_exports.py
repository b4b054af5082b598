"""Checks that libtenon exports what its header declares and nothing else.

    check_exports.py [--nm NM] --header tenon.h libtenon.so
"""

import argparse
import re
import subprocess
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--nm", default="nm")
parser.add_argument("--header", required=True)
parser.add_argument("library")
args = parser.parse_args()

with open(args.header, encoding="utf-8") as file:
    text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
declared = set(re.findall(r"^TENON_API [^;(]*?\b(tenon_\w+)\(", text, flags=re.MULTILINE))
lines = subprocess.run([args.nm, "-D", "--defined-only", args.library], check=True, capture_output=True, text=True).stdout
exported = {}
for line in lines.splitlines():
    kind, name = line.split()[-2:]
    exported[name.split("@")[0]] = kind
# The version's own name stands among the symbols, as an absolute one.
exported = {name for name, kind in exported.items() if not (kind == "A" and re.fullmatch(r"tenon_\d+\.\d+", name))}
faults = [f"exports {name}, which the header does not declare" for name in sorted(exported - declared)]
faults += [f"does not export {name}, which the header declares" for name in sorted(declared - exported)]
if not declared:
    faults.append(f"{args.header} declares no function")
if faults:
    sys.exit("\n".join(f"{args.library}: {fault}" for fault in faults))
print(f"{len(exported)} symbols, all of them declared")
