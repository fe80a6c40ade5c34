#!/usr/bin/python3
"""Do the commands that pages print work as they stand?  pages_test.py SERVER ROOT TOOL [--part K/N | PAGE...]

Gives every command of README.md and of docs/*.md to a shell, in the order of the page, in an empty directory and beside
a server of its own; then once more, in another directory and beside another server. What a console block shows below a
command must be what it prints, and a picture of docs/images that the commands draw must be the picture that they draw.
A block that is none of commands, or a command that cannot run here, stands in a list below with the reason.

K/N is every Nth page, from the Kth on; the first part also runs the tests of this test. A page ends with its first
command that fails. No command may take longer than SECONDS of page_terminal.py. The files and processes of the test are
gone at its end, also if it fails or gets a SIGTERM.

What is not as printed: the addresses and directories of SUBSTITUTES are those of the test, and load tests are short.
Needs python3-numpy and openssl.
"""
import argparse
import glob
import os
import re
import signal
import sys
import tempfile
import time
import unittest
from unittest import mock

import numpy as np

import page_terminal
from page_blocks import are_like_pictures, blocks_of, difference
from page_terminal import Product, Terminal

PAGES_SECONDS = 200  # After which no command begins, so that failures are told before ctest ends the test.

# Languages of blocks that hold commands, and of others with the reason why those are not run.
LANGUAGES = {"", "bash", "console", "indented", "sh"}
OTHER_LANGUAGES = {"cpp": "a part of a program; tests/examples builds whole ones",
                   "pycon": "Python; tests/python/docs_test.py runs it", "python": "likewise, or a part of a program",
                   "output": "what a block of Python prints"}

# Blocks that hold no command: how they begin, in which page, and what they are.
NO_COMMANDS = [
    ("docs/ARCHITECTURE.md", "bytes -> ", "the way of a call through the files"),
    ("docs/concepts.md", "abs(y - y') <=", "a formula"),
    ("docs/concepts.md", "lse = ", "a formula"),
    ("docs/loadtest.md", "open loop, 2,500/s", "what a load test prints, whose figures differ from run to run"),
    ("docs/loadtest.md", "p99>20ms ", "conditions of --fail-if"),
    ("docs/logs.md", "2026-", "a line of the log"),
    ("docs/metrics.md", "scrape_configs:", "a part of a file of Prometheus"),
    ("docs/recall.md", "probe = ", "a formula"),
    ("docs/recall.md", "query = ", "a formula"),
    ("docs/recall.md", "state = ", "a formula"),
    ("docs/recall.md", "target          = ", "a formula"),
    ("docs/security.md", '{"time":', "lines of the audit log"),
]

# Commands that are not run: in which page ("" for any), how they begin, and why.
NOT_RUN = [
    ("docs/cluster.md", r"(etcd|etcdctl|softlookup-server|softlookup cluster|softlookup --server 10\S+) ",
     "needs an etcd on three machines; tests/integration/replica_test.cc has a real one beside the server"),
    ("", r"(.*\| )?docker ", "needs a Docker engine; tests/image builds the image and runs compose"),
    ("", r"apt-get ", "installs or downloads packages: needs root or the network"),
    ("", r"systemctl ", "needs systemd"),
    ("", r"cmake ", "builds for minutes; scripts/test has built what is tested here"),
    ("", r"client/python/", "builds packages; tests/python does"),
    ("", r"scripts/", "installs packages, builds and runs all tests"),
    ("", r"build/release/bin/softlookup-bench ", "measures for minutes; tests/benchmarks runs its modes"),
    ("docs/console.md", r"softlookup console", "serves until it is interrupted; tests/console uses it in a browser"),
    ("docs/performance.md", r"(NODE_PATH=\S+ )?tests/benchmarks/", "measures for minutes, on downloaded data"),
    ("docs/operating.md", r"softlookup --server localhost:7471 ", "asks the server of docker compose"),
    ("docs/tutorial.md", r"dpkg-deb -x ", "unpacks what apt-get has downloaded"),
    ("docs/tutorial.md", r"python3 - <<'END'\nimport numpy as np\ndata = ", "reads what apt-get has downloaded"),
]

# Text above a block that goes on in a new terminal, without the variables so far and beside a new server without data.
NEW_TERMINAL = "In a new terminal, "


def make_vectors(terminal):
    """README.md's files of the reader's own."""
    random = np.random.RandomState(1)
    for name, array in (("keys", random.normal(size=(200, 128))), ("queries", random.normal(size=(3, 128))),
                        ("values", np.eye(10)[random.randint(10, size=200)])):
        np.save(os.path.join(terminal.work, f"{name}.npy"), array.astype(np.float32))


def start_service(terminal):
    """The package's service, with the settings that docs/security.md tells to take off the # of."""
    with open(os.path.join(PRODUCT.root, "server/package/softlookup.conf"), encoding="utf-8") as file:
        settings = re.sub(r'^#(?=(tls-|auth|audit-log))', "", file.read(), flags=re.MULTILINE)
    path = os.path.join(terminal.directory, "softlookup.conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write(terminal.of_here(settings))
    for name in ("lib", "log"):
        os.makedirs(os.path.join(terminal.directory, name))
    terminal.serve(f"softlookup-server --config {path}")


# What a reader does before a command, by its own means or as the text between the blocks says.
BEFORE = [
    ("README.md", "softlookup store create mine ", make_vectors),
    ("docs/security.md", "softlookup --server softlookup.example:7471 ", start_service),
]


def all_pages():
    return ["README.md", *sorted(os.path.relpath(path, PRODUCT.root)
                                 for path in glob.glob(os.path.join(PRODUCT.root, "docs/*.md")))]


def read_page(page):
    with open(os.path.join(PRODUCT.root, page), encoding="utf-8") as file:
        return file.read()


def exceptions_of_block(page, block):
    return [entry for entry in NO_COMMANDS if entry[0] == page and block.text.startswith(entry[1])]


def exceptions_of_command(page, command):
    return [entry for entry in NOT_RUN if entry[0] in ("", page) and re.match(entry[1], command.text)]


class ExceptionsTest(unittest.TestCase):
    def test_a_page_needs_each(self):
        unneeded = NO_COMMANDS + NOT_RUN
        for page in all_pages():
            for block in blocks_of(read_page(page)):
                needed = exceptions_of_block(page, block)
                if not needed and block.language not in OTHER_LANGUAGES:
                    needed = [entry for command in block.commands() for entry in exceptions_of_command(page, command)]
                unneeded = [entry for entry in unneeded if entry not in needed]
        self.assertEqual(unneeded, [])


class BlocksTest(unittest.TestCase):
    def test_blocks_have_their_commands_and_what_is_shown(self):
        page = ("# A\n\ntext\n    no block\n\n    one \\\n      --flag\n    two <<'END'\n    b\n    END\n\n    three\n\n"
                "## B\n```console\n$ for i in 1; do\n>   four\n> done\nshown\n\n$ five\n```\n```cpp\nint x;\n```\n"
                "- C\n\n  ```sh\n  six\n    seven\n  ```\n## D\n    eight\n")
        blocks = list(blocks_of(page))
        self.assertEqual([(block.before, block.line, block.language) for block in blocks],
                         [("# A\n\ntext\n    no block\n", 6, "indented"), ("## B", 16, "console"), ("", 24, "cpp"),
                          ("- C\n", 29, "sh"), ("## D", 33, "indented")])
        self.assertEqual([command.text for command in blocks[0].commands()],
                         ["one \\\n  --flag", "two <<'END'\nb\nEND", "three"])
        self.assertEqual([(command.text, command.shown) for command in blocks[1].commands()],
                         [("for i in 1; do\n  four\ndone", ["shown", ""]), ("five", [])])
        self.assertEqual([command.text for command in blocks[3].commands()], ["six", "  seven"])

    def test_what_is_no_whole_block_of_commands_is_an_error(self):
        for text in ("    for i in 1; do\n", "    echo 'a\n", "    cat <<END\n    a\n", "```\na\n", "``` a b\na\n```\n",
                     "\ta\n", "```console\na\n$ b\n```\n", "- a\n\n  ```\n  b\n```\n"):
            with self.subTest(text), self.assertRaises(AssertionError):
                next(blocks_of("\n" + text)).commands()

    def test_outputs_are_alike_if_words_and_numbers_are(self):
        printed = ["appended 5 rows in 0.004 s, 1250 rows/s; x has 5 rows", "  0.8760  a", "b 1.1e-05", "[2.5, -3]",
                   "0.876 of 1000", "123456.7"]
        shown = ["appended 5 rows in 0.001 s, 9999 rows/s; x has 5 rows", " 0.8761 a", "b 1.2e-05", "[2.50, -3]",
                 "0.877 of 1000", "123455.7"]
        self.assertEqual(difference(printed, shown), "")
        for at, other in ((0, "appended 6 rows in 0.001 s, 9999 rows/s; x has 5 rows"), (1, "0.8762 a"), (1, "0.8760 b"),
                          (2, "b 1.3e-05"), (2, "b 9.9e-05"), (3, "[2.5, 3]"), (3, "[2.5]"), (3, "[2.5, -2.9]"),
                          (4, "0.876 of 1002"), (4, "0.876 of 1001"), (5, "123400.0")):
            self.assertNotEqual(difference(printed, shown[:at] + [other] + shown[at + 1:]), "", other)

    def test_pictures_are_alike_up_to_a_fifth_of_a_pixel(self):
        picture = '<path class="line1" d="M120.1,184.4L166.1,183.7"/><text x="24.0">0.875, 400 rows</text>'
        self.assertTrue(are_like_pictures(picture, picture.replace("M120.1", "M120.2").replace("L166.1", "L166.0")))
        for old, new in (("M120.1", "M120.4"), ("L166.1,183.7", "L166.1,184.7"), ("line1", "line2"), ("L166", "C166"),
                         ("0.875", "0.877"), ("400", "401"), ("rows", "queries"), ("L166.1,183.7", "")):
            self.assertFalse(are_like_pictures(picture, picture.replace(old, new)), new)

    def test_all_lines_are_shown_unless_dots_stand_for_them(self):
        self.assertEqual(difference(["a", "b", "c"], ["a", "...", "c"]), "")
        self.assertEqual(difference(["a", "b", "c"], ["a", "..."]), "")
        self.assertEqual(difference(["a", "c", ""], ["a", "...", "c"]), "")
        for shown in (["a", "b"], ["a", "c"], ["b", "c"], ["a", "...", "d"], ["a", "b", "c", "d"], ["...", "b"]):
            self.assertNotEqual(difference(["a", "b", "c"], shown), "", shown)


class TerminalTest(unittest.TestCase):
    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory())
        self.terminal = self.enterContext(Terminal(self.directory, PRODUCT))

    def test_a_command_keeps_variables_and_directory_for_the_next(self):
        self.assertEqual(self.terminal.run("export A=1; mkdir b; cd b"), (0, ""))
        code, printed = self.terminal.run('echo $A "${PWD##*/}"; false')
        self.assertEqual((code, printed), (1, "1 b\n"))

    def test_a_command_of_which_any_part_fails_has_failed(self):
        for text in ("false && echo hi", "! true", "false &", "echo $(false)", "false | true", "(false); true",
                     "false; true", "for i in 1 2; do false; done", "echo $UNSET", "echo `no-such-program`"):
            with self.subTest(text):
                code, _ = self.terminal.run(text)
                self.assertNotIn(code, (0, None))
        for text in ("true && echo hi", "! false", "true &", "if false; then echo; fi", "false || true", "echo 'a\"$b'"):
            with self.subTest(text):
                code, printed = self.terminal.run(text)
                self.assertEqual(code, 0, printed)

    def test_a_load_test_may_miss_its_figures_but_not_give_wrong_answers(self):
        program = os.path.join(self.terminal.work, "build/release/bin/softlookup")
        for code, message, expected in ((0, "", 0), (9, "invalid: a call overflowed", 0), (7, "no server", 7),
                                        (8, "--fail-if p99>20ms: p99 is 21 ms", 0),
                                        (8, "--verify: no answer could be checked", 0),
                                        (8, "no rate was found that keeps p99<20ms", 0),
                                        (8, "1 of 32 answers was wrong: row 1", 8)):
            os.remove(program)
            with open(program, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\necho '{message}' >&2\nexit {code}\n")
            os.chmod(program, 0o755)
            self.assertEqual(self.terminal.run("softlookup loadtest"), (expected, message + "\n"))

    def test_a_command_that_does_not_end_is_ended_with_all_that_it_started(self):
        before = page_terminal.children()
        self.terminal.serve("softlookup-server --ephemeral")
        for text in ("echo a; sleep 1000 & sleep 1000", "echo a; setsid sleep 1000 & sleep 1000",
                     "echo a; cat <(sleep 1000)", "echo a; sleep 1000 & disown; exec sleep 1000"):
            with self.subTest(text), mock.patch("page_terminal.SECONDS", 1):
                self.assertEqual(self.terminal.run(text), (None, "a\n"))
                self.assertEqual(page_terminal.children() - before, {self.terminal.server.process.pid})

    def test_what_a_command_leaves_running_ends_with_it(self):
        before = page_terminal.children()
        self.assertEqual(self.terminal.run("(setsid sleep 1000 >/dev/null 2>&1 &)"), (0, ""))
        self.assertEqual(page_terminal.children() - before, {self.terminal.server.process.pid})

    def test_a_second_server_runs_beside_the_first(self):
        self.terminal.serve("softlookup-server --ephemeral")
        self.terminal.serve("softlookup-server --ephemeral --listen 127.0.0.1:7481")
        for options in ("", "--server 127.0.0.1:7481"):
            code, printed = self.terminal.run(f"softlookup {options} health")
            self.assertEqual(code, 0, printed)
        self.assertNotEqual(self.terminal.server.port, self.terminal.second.port)

    def test_a_server_that_does_not_get_ready_is_an_error_and_ends(self):
        before = page_terminal.children()
        os.mkfifo(os.path.join(self.directory, "fifo"))
        for text in ("softlookup-server --data-dir /dev/null 2>/dev/null", "bash -c 'printf grpc=; sleep 1000'",
                     f"softlookup-server --config {self.directory}/fifo"):
            with self.subTest(text), mock.patch("page_terminal.SECONDS", 1):
                with self.assertRaisesRegex(AssertionError, "did not start"):
                    self.terminal.serve(text)
                self.terminal.stop()
                self.assertEqual(page_terminal.children(), before)


class PagesTest(unittest.TestCase):
    def run_command(self, terminal, page, command):
        self.assertLess(time.monotonic(), self.end, f"no time was left for it after {PAGES_SECONDS} s")
        for path, begin, prepare in BEFORE:
            if path == page and command.text.startswith(begin):
                prepare(terminal)
        if re.match(r"(build/release/bin/)?softlookup-server (?!.*--verify)|build/release/bin/softlookup-server$",
                    command.text):
            terminal.serve(command.text)
            return
        code, printed = terminal.run(command.text)
        if code is None:
            self.fail(f"it did not end within {page_terminal.SECONDS} s\n{printed}")
        if code != 0:
            self.fail(f"its exit code is {code}\n{printed}")
        differs = command.shown and difference(printed.splitlines(), command.shown)
        if differs:
            self.fail(differs)

    def run_block(self, terminal, page, block):
        if NEW_TERMINAL in block.before:
            terminal.begin()
        if exceptions_of_block(page, block) or block.language in OTHER_LANGUAGES:
            return
        self.assertIn(block.language, LANGUAGES)
        for command in block.commands():
            if exceptions_of_command(page, command):
                continue
            try:
                self.run_command(terminal, page, command)
            except AssertionError as error:
                raise AssertionError(f"{command.text}\n{error}") from None

    def run_page(self, page, text):
        """Raises AssertionError at the first command that fails: those after it may wait for what it has not done."""
        with tempfile.TemporaryDirectory() as directory, Terminal(directory, PRODUCT) as terminal:
            for block in blocks_of(text):
                try:
                    self.run_block(terminal, page, block)
                except AssertionError as error:
                    raise AssertionError(f"{page}, in the block at line {block.line}:\n{error}") from None
            for name in re.findall(r"\]\(images/(\S+\.svg)\)", text):
                self.check_picture(terminal, name)

    def check_picture(self, terminal, name):
        drawn = terminal.find(name)
        self.assertIsNotNone(drawn, f"no command of the page draws {name}")
        with open(drawn, encoding="utf-8") as one, \
                open(os.path.join(PRODUCT.root, "docs/images", name), encoding="utf-8") as other:
            self.assertTrue(are_like_pictures(one.read(), other.read()), f"the page's commands draw another {name}")

    def test_commands_work_as_printed_and_once_more(self):
        self.end = time.monotonic() + PAGES_SECONDS
        for page in PAGES:
            text = read_page(page)
            with self.subTest(page):
                for _ in range(2):
                    self.run_page(page, text)


def main():
    global PRODUCT, PAGES
    parser = argparse.ArgumentParser(description="Do the commands that pages print work as they stand?")
    parser.add_argument("product", nargs=3, metavar=("SERVER", "ROOT", "TOOL"), type=os.path.abspath)
    parser.add_argument("pages", nargs="*", metavar="PAGE")
    parser.add_argument("--part", default="1/1", metavar="K/N", help="every Nth page, from the Kth on")
    options = parser.parse_args()
    number, count = map(int, options.part.split("/"))
    PRODUCT = Product(*options.product)
    PAGES = options.pages or all_pages()[number - 1::count]
    chosen = "PagesTest" if options.pages or number > 1 else None  # Else also the tests of this test.
    page_terminal.adopt_orphans()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # So that it ends as by Ctrl-C, and in good order.
    with tempfile.TemporaryDirectory() as tempfile.tempdir:
        try:
            unittest.main(argv=sys.argv[:1], defaultTest=chosen)
        finally:
            page_terminal.end_children()


if __name__ == "__main__":
    main()
