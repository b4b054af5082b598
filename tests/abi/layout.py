"""The boundary's layout as its headers and a compiler have it, against the one kept in layout/.

  layout.py [--cc gcc clang ...]     compares; exit code 0 the same, 1 changed, 77 a module or every compiler is missing
  layout.py --write                  writes layout/ anew, unless what is frozen would change

One text file a header: constants, enumerators, the offset, size and type of each field, the parameters of each function
pointer, on a 64-bit machine. A header is frozen when no id of an interface in it has ".draft" or a frozen one includes it
(core.h is): then fields may be added at the end of structs that begin with `uint32_t size`, and constants may be added; nothing else
may change. A draft may change in any way, but not unnoticed. Each compiler named must find the same.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE = os.path.normpath(os.path.join(HERE, "..", "..", "plugin_api", "include"))
KEPT = os.path.join(HERE, "layout")


def headers():
    return sorted(f for f in os.listdir(os.path.join(INCLUDE, "tenon", "abi")) if f.endswith(".h"))


def includes_all(folder):
    unit = os.path.join(folder, "all.c")
    with open(unit, "w") as f:
        f.writelines(f"#include <tenon/abi/{h}>\n" for h in headers())
    return unit


def constants():
    """{header: [line]} of the macros that stand for text or a number."""
    found = {h: [] for h in headers()}
    for header in headers():
        for line in open(os.path.join(INCLUDE, "tenon", "abi", header), encoding="utf-8"):
            m = re.match(r'#define (TN_\w+)\s+("[^"]*"|-?\w+)\s*(?:/[*].*)?$', line)
            if m and not m.group(1).endswith("_H"):
                found[header].append(f"constant {m.group(1)} {m.group(2)}")
    return found


def type_text(die):
    """The C name of DIE's type."""
    if "DW_AT_type" not in die.attributes:
        return "void"
    target = die.get_DIE_from_attribute("DW_AT_type")
    name = target.attributes.get("DW_AT_name")
    tag = target.tag
    if tag in ("DW_TAG_typedef", "DW_TAG_base_type"):
        return {"long unsigned int": "unsigned long", "long int": "long"}.get(name.value.decode(), name.value.decode())
    if tag in ("DW_TAG_structure_type", "DW_TAG_enumeration_type", "DW_TAG_union_type"):
        return name.value.decode() if name else "{" + "; ".join(type_text(c) for c in target.iter_children()) + "}"
    if tag == "DW_TAG_const_type":
        inner = type_text(target)
        return inner + " const" if inner.endswith(("*", ")")) else "const " + inner
    if tag == "DW_TAG_pointer_type":
        pointee = target.get_DIE_from_attribute("DW_AT_type") if "DW_AT_type" in target.attributes else None
        if pointee is not None and pointee.tag == "DW_TAG_subroutine_type":
            taken = [type_text(p) for p in pointee.iter_children()]
            return f"{type_text(pointee)} (*)({', '.join(taken) or 'void'})"
        return type_text(target) + "*"
    if tag == "DW_TAG_array_type":
        bound = next(target.iter_children()).attributes
        count = bound["DW_AT_count"].value if "DW_AT_count" in bound else bound["DW_AT_upper_bound"].value + 1
        return f"{type_text(target)}[{count}]"
    raise ValueError(f"no text for {tag}")


def read(cc):
    """{header: [line]} as the compiler CC lays it out."""
    from elftools.elf.elffile import ELFFile
    with tempfile.TemporaryDirectory() as folder:
        unit, made = includes_all(folder), os.path.join(folder, "all.o")
        subprocess.run([cc, "-std=c11", "-g", "-gdwarf-4", "-fno-eliminate-unused-debug-types", "-I", INCLUDE, "-c", unit, "-o", made], check=True)
        found = constants()
        with open(made, "rb") as f:
            dwarf = ELFFile(f).get_dwarf_info()
            for cu in dwarf.iter_CUs():
                program = dwarf.line_program_for_CU(cu).header
                for die in cu.get_top_DIE().iter_children():
                    if "DW_AT_decl_file" not in die.attributes:
                        continue
                    file = program["file_entry"][die.attributes["DW_AT_decl_file"].value - 1]
                    if file.dir_index and program["include_directory"][file.dir_index - 1].decode().endswith("tenon/abi"):
                        found[file.name.decode()] += described(die)
        return {h: sorted_blocks(lines) for h, lines in found.items()}


def described(die):
    name = die.attributes["DW_AT_name"].value.decode() if "DW_AT_name" in die.attributes else ""
    if die.tag == "DW_TAG_enumeration_type":
        return [f"constant {c.attributes['DW_AT_name'].value.decode()} {c.attributes['DW_AT_const_value'].value}"
                for c in die.iter_children()]
    if die.tag == "DW_TAG_structure_type" and "DW_AT_declaration" not in die.attributes:
        lines = [f"struct {name} {die.attributes['DW_AT_byte_size'].value}"]
        for field in die.iter_children():
            if field.tag != "DW_TAG_member":
                continue
            target = field.attributes
            lines.append(f"  {target['DW_AT_data_member_location'].value} {target['DW_AT_name'].value.decode()}: {type_text(field)}")
        return ["\n".join(lines)]
    if die.tag == "DW_TAG_typedef":
        text = type_text(die)
        return [] if text == name else [f"type {name} {text}"]
    return []


def sorted_blocks(lines):
    return sorted(set(lines), key=lambda block: (block.split()[0], block.split()[1]))


def frozen(kept):
    """The headers of KEPT, {header: [line]}, that are frozen, with all that they include."""
    found = set()
    for header, lines in kept.items():
        ids = [line for line in lines if re.match(r'constant TN_\w*ID "tenon[.]', line)]
        if header == "core.h" or (ids and not any(".draft/" in line for line in ids)):
            found.add(header)
    waiting = list(found)
    while waiting:
        text = open(os.path.join(INCLUDE, "tenon", "abi", waiting.pop()), encoding="utf-8").read()
        for header in re.findall(r'#include "(\w+[.]h)"', text):
            if header not in found:
                found.add(header)
                waiting.append(header)
    return found


def broken(old, new):
    """What of OLD, which is frozen, is no longer so in NEW."""
    now = {tuple(block.split()[:2]): block for block in new}
    wrong = []
    for block in old:
        name = tuple(block.split()[:2])
        if name not in now:
            wrong.append(f"{' '.join(name)} is gone")
        elif block != now[name]:
            before, after = block.split("\n"), now[name].split("\n")
            grown = name[0] == "struct" and len(before) > 1 and before[1].startswith("  0 size:") and after[1:len(before)] == before[1:]
            if not grown:
                changed = next((f"'{b.strip()}' is now '{a.strip()}'" for b, a in zip(before[1:], after[1:]) if a != b), f"'{before[0]}' is now '{after[0]}'")
                wrong.append(f"{' '.join(name)}: {changed}")
    return wrong


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--write", action="store_true")
    p.add_argument("--cc", nargs="+", default=["gcc", "clang-14"])
    a = p.parse_args()
    try:
        import elftools  # noqa: F401
    except ImportError:
        print("layout.py: needs pyelftools; scripts/bootstrap --dev installs it", file=sys.stderr)
        return 77
    compilers = [c for c in a.cc if shutil.which(c)]
    if not compilers:
        print(f"layout.py: none of {' '.join(a.cc)} is here", file=sys.stderr)
        return 77
    failures = 0

    def fail(text):
        nonlocal failures
        failures += 1
        print(f"layout.py: {text}", file=sys.stderr)

    first = read(compilers[0])
    for other in compilers[1:]:
        for header, lines in read(other).items():
            for line in set(lines) ^ set(first[header]):
                fail(f"{header}: {compilers[0]} and {other} do not agree on: {line}")
    kept = {}
    for header in first:
        path = os.path.join(KEPT, header.replace(".h", ".txt"))
        if os.path.exists(path):
            kept[header] = re.split(r"\n(?! )", open(path, encoding="utf-8").read().rstrip("\n"))
    for header in sorted(frozen(kept)):
        for what in broken(kept.get(header, []), first[header]):
            fail(f"{header} is frozen, and {what}")
    for header, new in first.items():
        path = os.path.join(KEPT, header.replace(".h", ".txt"))
        text, old_text = "\n".join(new) + "\n", "\n".join(kept.get(header, [])) + "\n"
        if failures == 0 and a.write:
            os.makedirs(KEPT, exist_ok=True)
            with open(path + ".part", "w", encoding="utf-8") as f:
                f.write(text)
            os.replace(path + ".part", path)
        elif not a.write and text != old_text:
            for line in sorted(set(text.splitlines()) ^ set(old_text.splitlines())):
                print(f"  {header}: {'now  ' if line in text.splitlines() else 'kept '}{line}", file=sys.stderr)
            fail(f"{header} is laid out otherwise than {os.path.relpath(path, HERE)} says; if that is meant, run tests/abi/layout.py --write")
    for name in sorted(os.listdir(KEPT)) if os.path.isdir(KEPT) else []:
        if name.replace(".txt", ".h") not in first:
            fail(f"layout/{name} stands for a header that is gone")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
