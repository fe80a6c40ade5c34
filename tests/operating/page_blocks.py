"""The blocks of commands of a page in Markdown, and whether what they print is what the page shows."""
import dataclasses
import decimal
import re
import subprocess


@dataclasses.dataclass
class Command:
    text: str         # Of one line or more.
    shown: list[str]  # The lines that the page shows below it. Empty if it shows none.


@dataclasses.dataclass
class Block:
    before: str    # The text between the block before it and this one.
    line: int      # Of its first line in the page, from 1.
    language: str  # As the fence says, "" if it does not. "indented" without a fence.
    text: str

    def commands(self):
        if self.language == "console":
            return list(console_commands(self.text))
        return [Command(text, []) for text in split_commands(self.text.splitlines())]


def blocks_of(page):
    """The blocks of a page: between fences, or indented by four spaces after a blank line or a heading.

    Raises AssertionError at what Markdown takes for a block and this does not.
    """
    lines = page.splitlines()
    before, at, fresh = [], 0, True
    while at < len(lines):
        line = lines[at]
        assert not line.startswith("\t"), f"line {at + 1} begins with a tab"
        fence = re.match(r"( *)(```|~~~)(.*)$", line)
        if fence:
            indent, mark, language = fence.groups()
            assert re.fullmatch(r"\w*", language), f"line {at + 1}: a fence of which the language is {language!r}"
            closing = indent + mark
            assert closing in lines[at + 1:], f"line {at + 1}: a fence without an end"
            end = lines.index(closing, at + 1)
            text = "".join(one.removeprefix(indent) + "\n" for one in lines[at + 1:end])
            yield Block("\n".join(before), at + 2, language, text)
            before, at, fresh = [], end + 1, True
        elif line.startswith("    ") and fresh:
            end = at
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            text = "\n".join(one[4:] for one in lines[at:end]).rstrip("\n") + "\n"
            # A blank line parts two blocks if what follows is no longer indented, else it is of the block.
            yield Block("\n".join(before), at + 1, "indented", text)
            before, at, fresh = [], end, True
        else:
            before.append(line)
            fresh = not line.strip() or line.startswith("#")
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
    above, *parts = re.split(r"^\$ ", text, flags=re.MULTILINE)
    assert not above, f"lines above the first command: {above}"
    for part in parts:
        first, *rest = part.splitlines()
        further = 0
        while further < len(rest) and rest[further].startswith("> "):
            further += 1
        yield Command("\n".join([first, *(line[2:] for line in rest[:further])]), rest[further:])


NUMBER = r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
NUMBER_OF_TEXT = re.compile(rf"(?<![\w.]){NUMBER}(?!\w)")  # Not that of a name, such as the 2 of l2.
NUMBER_OF_PICTURE = re.compile(NUMBER)                     # Also that of a letter of a path, such as the 2 of L2.
TIMES = re.compile(r"in \S+ s, \S+ rows/s")                # Of an append.
SHARE = decimal.Decimal("1e-4")


def are_close(one, other):
    """Whether two integers are equal, or two decimals a unit of their last digit apart at most, or SHARE of their size.

    So a page holds on CPUs on which the last digits of an answer differ.
    """
    one, other = decimal.Decimal(one), decimal.Decimal(other)
    finer, coarser = sorted(number.as_tuple().exponent for number in (one, other))
    if finer >= 0:
        return one == other
    unit = decimal.Decimal(1).scaleb(finer) if coarser < 0 else 0
    return abs(one - other) <= max(unit, SHARE * abs(one))


def have_same_words(one, other, number, close):
    """Whether the texts are the same but for their numbers, and close() holds for each two of these."""
    words = [" ".join(number.sub("N", text).split()) for text in (one, other)]
    numbers = [number.findall(text) for text in (one, other)]
    return words[0] == words[1] and all(close(a, b) for a, b in zip(*numbers))


def are_alike(printed, shown):
    """Whether two texts have the same words and close numbers. The times of appends differ."""
    return have_same_words(TIMES.sub("in T", printed), TIMES.sub("in T", shown), NUMBER_OF_TEXT, are_close)


def are_like_pictures(one, other):
    """Whether two SVG files show about the same: elements 0.2 pixels apart at most, and texts that are alike."""
    one, other = (re.split(r"(<[^>]*>)", picture) for picture in (one, other))  # Texts and elements by turns.
    return len(one) == len(other) and all(
        have_same_words(a, b, NUMBER_OF_PICTURE, lambda x, y: abs(float(x) - float(y)) <= 0.2)
        if a.startswith("<") else are_alike(a, b) for a, b in zip(one, other))


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
