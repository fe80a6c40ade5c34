"""The blocks of commands of a page in Markdown, and whether what they print is what the page shows."""
import dataclasses
import math
import re
import subprocess


@dataclasses.dataclass
class Command:
    text: str         # Of one line or more.
    shown: list[str]  # The lines that the page shows below it. Empty if it shows none.


@dataclasses.dataclass
class Block:
    heading: str   # That it stands under.
    line: int      # Of its first line in the page, from 1.
    language: str  # As the fence says, "" if it does not. "indented" without a fence.
    text: str

    def commands(self):
        if self.language == "console":
            return list(console_commands(self.text))
        return [Command(text, []) for text in split_commands(self.text.splitlines())]


def blocks_of(page):
    """The blocks of a page: between fences, or indented by four spaces after a blank line."""
    lines = page.splitlines()
    heading, at, blank = "", 0, True
    while at < len(lines):
        line = lines[at]
        fence = re.match(r"```(\w*)$", line)
        if fence:
            end = lines.index("```", at + 1)
            yield Block(heading, at + 2, fence[1], "\n".join(lines[at + 1:end]) + "\n")
            at = end
        elif line.startswith("    ") and blank:
            end = at
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end]):
                end += 1
            text = "\n".join(one[4:] for one in lines[at:end]).rstrip("\n") + "\n"
            # A blank line parts two blocks if what follows is no longer indented, else it is of the block.
            yield Block(heading, at + 1, "indented", text)
            at = end - 1
        elif line.startswith("#"):
            heading = line.lstrip("# ")
        blank = not lines[at]
        at += 1


def is_whole(text):
    """Whether a shell would run the text, or wait for more lines."""
    if text.endswith("\\"):
        return False
    checked = subprocess.run(["bash", "-n", "-c", text], capture_output=True, text=True, check=False)
    return checked.returncode == 0 and not checked.stderr  # It warns of a here-document without an end.


def split_commands(lines):
    """The commands in the lines of a block, each of as many lines as it takes."""
    commands, begun = [], []
    for line in lines:
        begun.append(line)
        text = "\n".join(begun)
        if text.strip() and is_whole(text):
            commands.append(text.strip("\n"))
            begun = []
    assert not "".join(begun).strip(), f"a command without an end: {begun}"
    return commands


def console_commands(text):
    """The commands after "$ ", with further lines after "> ", and what the page shows below each."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        first, *rest = part.splitlines()
        further = 0
        while further < len(rest) and rest[further].startswith("> "):
            further += 1
        yield Command("\n".join([first, *(line[2:] for line in rest[:further])]), rest[further:])


NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])")
TIMES = re.compile(r"in \S+ s, \S+ rows/s")  # Of an append.


def are_alike(printed, shown, distance=1e-4):
    """Whether two texts have the same words and about the same numbers: 0.2 % or the distance apart at most.

    So a page holds on CPUs on which the last digits of an answer differ.
    """
    texts = [TIMES.sub("in T", text) for text in (printed, shown)]
    words = [" ".join(NUMBER.sub("N", text).split()) for text in texts]
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in texts]
    return words[0] == words[1] and all(
        math.isclose(a, b, rel_tol=2e-3, abs_tol=distance) for a, b in zip(*numbers))


def difference(printed, shown):
    """What of the shown lines was not printed, or the reverse. "" if they are alike. "..." stands for any lines."""
    printed, shown = ("\n".join(lines).rstrip().split("\n") for lines in (printed, shown))
    at, skipping = 0, False
    for line in shown:
        if line == "...":
            skipping = True
            continue
        while skipping and at < len(printed) and not are_alike(printed[at], line):
            at += 1
        if at == len(printed):
            return f"the page shows, but this was not printed: {line}"
        if not are_alike(printed[at], line):
            return f"the page shows: {line}\nthis was printed: {printed[at]}"
        at, skipping = at + 1, False
    if at < len(printed) and not skipping:
        return f"the page does not show: {printed[at]}"
    return ""
