"""Finds the places of a C++ source where a small change should break a test.

A mutation is one changed line. Comments, strings, includes, assertions and declarations of types
are left alone: a change there breaks nothing, or does not compile.
"""
import re
from dataclasses import dataclass

# Operators stand between spaces in formatted code, so that `<` of a template is not one of them.
_SWAPS = [
    ("comparison", " < ", " <= "), ("comparison", " <= ", " < "), ("comparison", " > ", " >= "),
    ("comparison", " >= ", " > "), ("comparison", " == ", " != "), ("comparison", " != ", " == "),
    ("sign", " + ", " - "), ("sign", " - ", " + "), ("sign", " += ", " -= "),
    ("sign", " -= ", " += "), ("logic", " && ", " || "), ("logic", " || ", " && "),
    ("min and max", "std::min(", "std::max("), ("min and max", "std::max(", "std::min("),
]
_LEFT_ALONE = re.compile(
    r"^\s*(#|//|\*|static_assert|using |namespace|template|class |struct |enum |friend |public:|private:|return;)"
    r"|SOFTLOOKUP_D?CHECK|MakeError|Log\(|= default|= delete|operator|HWY_UNROLL|virtual ")
_NUMBER = re.compile(r"(?<![\w.'])(\d+)(?![\w.'])")
_BOOLEAN = re.compile(r"\b(true|false)\b")
# A call or an assignment that fills its line.
_STATEMENT = re.compile(r"^(\s+)(?!return\b|break|continue|case |default|delete |else\b|for |while |if |const |auto |"
                        r"std::\w+<[^=]*> \w+;)[\w:.\->\[\]*()&]+ ?(\(.*\)|[-+*/|&]?= .*|\+\+|--);$")
_CHECK = re.compile(r"^(\s+)(if \(.*\) return\b.*;|SOFTLOOKUP_RETURN_IF_ERROR\((.*)\);)$")


@dataclass(frozen=True)
class Mutation:
    path: str
    line: int  # From 1.
    kind: str
    before: str
    after: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.kind}: {self.before.strip()}  ->  {self.after.strip() or '(nothing)'}"


def _blanked(line):
    """The line with its strings and its comment blanked, every character in its place."""
    line = re.sub(r'"(\\.|[^"\\])*"', lambda m: '"' + "_" * (len(m.group()) - 2) + '"', line)
    return re.sub(r"//.*", lambda m: " " * len(m.group()), line)


def _changes(line):
    code = _blanked(line)
    for kind, old, new in _SWAPS:
        for at in (m.start() for m in re.finditer(re.escape(old), code)):
            yield kind, line[:at] + new + line[at + len(old):]
    for match in _NUMBER.finditer(code):
        yield "constant", line[:match.start()] + str(int(match.group()) + 1) + line[match.end():]
    for match in _BOOLEAN.finditer(code):
        other = "false" if match.group() == "true" else "true"
        yield "constant", line[:match.start()] + other + line[match.end():]
    check = _CHECK.match(code.rstrip())
    if check:
        inner = check.group(3)
        yield "dropped check", check.group(1) + (f"(void)({line[check.start(3):check.end(3)]});" if inner else ";")
    elif _STATEMENT.match(code.rstrip()):
        kind = "dropped sync" if "Sync" in code else "dropped statement"
        yield kind, code[:len(code) - len(code.lstrip())] + ";"


def mutations_of(path, text):
    """All mutations of a source, in the order of its lines."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or _LEFT_ALONE.search(_blanked(line)):
            continue
        found += [Mutation(path, number, kind, line, after) for kind, after in _changes(line)]
    return found


def apply(mutation, text):
    lines = text.split("\n")
    if lines[mutation.line - 1] != mutation.before:
        raise ValueError(f"{mutation.path}:{mutation.line} has changed since it was read")
    lines[mutation.line - 1] = mutation.after
    return "\n".join(lines)
