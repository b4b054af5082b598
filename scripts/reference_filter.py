"""Gives a header's comments the marks that Doxygen looks for: scripts/reference_filter.py HEADER, as its input filter.

The headers have plain comments, `/* ... */` and `// ...`, which read best in an editor. The first one is about the file, one that
begins its line is about what follows, one behind code on a line is about what stands before it.
"""

import re
import sys

COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|/\*.*?\*/|//[^\n]*', re.DOTALL)


def escaped(text):
    text = re.sub(r"[\\@#%]", lambda match: "\\" + match.group(), text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def block(text, mark):
    """A /* */ comment with the mark of its kind; its lines keep their place, so that warnings do too."""
    return f"/{mark}" + escaped(text[2:-2].lstrip("*")) + "*/"


def filtered(source):
    out, at, first = [], 0, True
    lines_of_file = re.match(r"(?://[^\n]*\n)+", source)
    if lines_of_file:  # a C++ header that begins with // lines
        lines = [escaped(line[2:]) for line in lines_of_file.group().rstrip("\n").split("\n")]
        out.append("/** @file\n" + "\n".join(lines) + " */\n")
        at, first = lines_of_file.end(), False
    for match in COMMENT.finditer(source, at):
        text = match.group()
        if text.startswith('"'):
            continue
        out.append(source[at : match.start()])
        at = match.end()
        line_begin = source.rfind("\n", 0, match.start()) + 1
        before = source[line_begin : match.start()].strip()
        rest = source[match.end() : source.find("\n", match.end())].strip()
        if text.startswith("//"):
            out.append("///" + escaped(text[3:]) if text.startswith("///") else "//" + text[2:])
        elif first and not before:
            out.append(block(text, "** @file\n"))
        elif not before and not rest:
            out.append(block(text, "**"))
        elif before and not rest and not before.startswith("#"):
            out.append(block(text, "**<"))
        else:
            out.append(text)
        first = first and bool(text.startswith('"'))
    out.append(source[at:])
    return "".join(out)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        sys.stdout.write(filtered(file.read()))
