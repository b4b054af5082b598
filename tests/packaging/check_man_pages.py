"""Checks the manual pages: one for the program and one for every verb, every option of --help in them, and no word of
complaint from `man`, where that is installed.

    check_man_pages.py --tenon build/bin/tenon --pages build/share/man/man1
"""

import argparse
import os
import re
import shutil
import subprocess
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--tenon", required=True)
parser.add_argument("--pages", required=True)
args = parser.parse_args()


def help_of(*verb):
    return subprocess.run([args.tenon, *verb, "--help"], check=True, capture_output=True, text=True).stdout


def verbs_of(text):
    found = text.split("Subcommands:\n")
    return re.findall(r"^  ([a-z][a-z-]*) ", found[1], flags=re.MULTILINE) if len(found) == 2 else []


def options_of(text):
    return set(re.findall(r"^  (?:-\w,)?(--[\w-]+)", text, flags=re.MULTILINE))


faults = []
program = help_of()
verbs = verbs_of(program)
if not verbs:
    sys.exit("tenon --help names no verb")
expected = {"tenon.1"} | {f"tenon-{verb}.1" for verb in verbs}
found = {name for name in os.listdir(args.pages)}
faults += [f"{name} is missing" for name in sorted(expected - found)]
faults += [f"{name} belongs to no verb" for name in sorted(found - expected)]
for name in sorted(expected & found):
    path = os.path.join(args.pages, name)
    with open(path, encoding="utf-8") as file:
        page = file.read()
    plain = page.replace("\\-", "-")
    verb = name[len("tenon-"):-len(".1")]
    text = program if name == "tenon.1" else help_of(verb)
    wanted = options_of(text)
    for nested in verbs_of(text) if verb else []:
        wanted |= options_of(help_of(verb, nested))
    for option in sorted(wanted):
        if option not in plain:
            faults.append(f"{name} does not tell of {option}")
    for section in (".SH NAME", ".SH SYNOPSIS", '.SH "EXIT STATUS"', '.SH "SEE ALSO"'):
        if section not in page:
            faults.append(f"{name} has no {section}")
    if shutil.which("man"):
        environment = dict(os.environ, MANROFFSEQ="", MANWIDTH="100", LC_ALL="C.UTF-8")
        shown = subprocess.run(["man", "--warnings=w", "-E", "UTF-8", "-l", path], capture_output=True, text=True,
                               env=environment)
        if shown.returncode != 0 or shown.stderr.strip() or "NAME" not in shown.stdout:
            faults.append(f"man says of {name}: {shown.stderr.strip() or 'nothing readable'}")
if faults:
    sys.exit("\n".join(faults))
print(f"{len(expected)} pages, each with its verb's options")
