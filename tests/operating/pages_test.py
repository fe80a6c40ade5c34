#!/usr/bin/python3
"""Do the commands that pages print work as they stand?  pages_test.py SERVER ROOT TOOL [PAGE...]

Gives every command of README.md and of docs/*.md to a shell, in the order of the page, in an empty directory and beside
a server of its own; then once more, in another directory and beside another server. What a console block shows below a
command must be what it prints, and a picture of docs/images that the commands draw must be the picture that they draw.
A block that is none of commands, or a command that cannot run here, stands in a list below with the reason.

A page ends with its first command that fails. No command may wait for longer than SECONDS.

What is not as printed: the addresses and directories of SUBSTITUTES are those of the test, and load tests are short.
Needs python3-numpy and openssl.
"""
import contextlib
import glob
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import numpy as np

from page_blocks import are_alike, blocks_of, difference

SECONDS = 30         # Longest time of a command, and until a server is ready.
STOP_SECONDS = 10    # Longest time until a server has stopped.
PAGES_SECONDS = 200  # After which no page begins, so that failures are told before ctest ends the test.

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
    ("docs/security.md", '{"time":', "lines of the audit log"),
]

# Commands that are not run: in which page ("" for any), how they begin, and why.
NOT_RUN = [
    ("", r"(.*\| )?docker ", "needs a Docker engine; tests/image builds the image and runs compose"),
    ("", r"apt-get ", "installs or downloads packages: needs root or the network"),
    ("", r"systemctl ", "needs systemd"),
    ("", r"cmake ", "builds for minutes; scripts/test has built what is tested here"),
    ("", r"scripts/", "installs packages, builds and runs all tests"),
    ("", r"build/release/bin/softlookup-bench ", "measures for minutes; tests/benchmarks runs its modes"),
    ("docs/performance.md", r"(NODE_PATH=\S+ )?tests/benchmarks/", "measures for minutes, on downloaded data"),
    ("docs/operating.md", r"softlookup --server localhost:7471 ", "asks the server of docker compose"),
    ("docs/tutorial.md", r"dpkg-deb -x ", "unpacks what apt-get has downloaded"),
    ("docs/tutorial.md", r"python3 - <<'END'\nimport numpy as np\ndata = ", "reads what apt-get has downloaded"),
]

# Headings at which a page goes on in a new terminal, beside a new server without data.
NEW_TERMINALS = {("README.md", "Ask")}

SECOND = r"127\.0\.0\.1:7481"  # Where pages have a second server, beside the one that the tool asks.

# What stands for something else on the machine of a reader. {} are filled in by Terminal.
SUBSTITUTES = [
    (r"0\.0\.0\.0:7471", "127.0.0.1:0"),
    (SECOND, "127.0.0.1:{second_port}"),
    (r"softlookup\.example:7471", "localhost:{port}"),
    (r"softlookup\.example", "localhost"),
    (r"/srv/softlookup", "{directory}/srv"),
    (r"/etc/softlookup", "{directory}/etc"),
    (r"/root/softlookup-tls", "{directory}/root"),
    (r"/var/(lib|log)/softlookup", r"{directory}/\1"),
    (r"-g softlookup\b", "-g {group}"),  # The group that the package makes.
]

# The tool with load tests that end soon, on few rows. Their exit codes 8 and 9 are verdicts on figures, such as "this
# client was the bottleneck", so they are no failures here.
FUNCTIONS = """
softlookup() {
  if [[ $1 != loadtest ]]; then command softlookup "$@"; return; fi
  local -A short=([--duration]=0.1 [--warm-up]=0 [--rate]=200 [--rows]=500)
  local arguments=() code=0
  while (($#)); do
    if [[ -n ${short[$1]:-} ]]; then arguments+=("$1" "${short[$1]}"); shift 2; else arguments+=("$1"); shift; fi
  done
  [[ " ${arguments[*]} " == *" --duration "* ]] || arguments+=(--duration 0.1)
  [[ " ${arguments[*]} " == *" --warm-up "* ]] || arguments+=(--warm-up 0)
  command softlookup "${arguments[@]}" || code=$?
  [[ $code == [89] ]] || return $code
}
"""


class Server:
    """A server that a shell has started, and that is ready."""

    def __init__(self, script, environment):
        """Raises AssertionError if the server does not start in time."""
        self.process = subprocess.Popen(["bash", "-c", script], env=environment, stdout=subprocess.PIPE, text=True)
        begun = select.select([self.process.stdout], [], [], SECONDS)[0]
        ready = begun and re.search(r"grpc=(\S+):(\d+)", self.process.stdout.readline())
        if not ready:
            self.process.kill()
            self.stop()
            raise AssertionError(f"the server did not start, or was not ready within {SECONDS} s:\n{script}")
        self.host, self.port = ready[1], ready[2]

    def stop(self):
        """Raises AssertionError if the server had to be killed."""
        self.process.terminate()  # It may have ended.
        try:
            self.process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired as error:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"a server did not stop within {STOP_SECONDS} s of SIGTERM") from error
        finally:
            self.process.stdout.close()


class Terminal:
    """A shell that is given a page's commands one by one, and the servers that they ask."""

    def __init__(self, directory):
        self.directory = directory
        self.state = os.path.join(directory, ".state")  # Keeps the variables and the directory of the shell.
        self.work = os.path.join(directory, "clone")    # Where a page begins. It looks like a clone that was built.
        self.server = self.second = None
        os.makedirs(os.path.join(self.work, "build/release/bin"))
        for name in ("docker", "docs", "examples", "scripts", "tests"):
            os.symlink(os.path.join(ROOT, name), os.path.join(self.work, name))
        for name, path in (("softlookup", TOOL), ("softlookup-server", SERVER), ("python3", sys.executable)):
            os.symlink(path, os.path.join(self.work, "build/release/bin", name))
        self.begin()

    def begin(self):
        """Forgets the variables and the servers so far."""
        self.stop()
        with open(self.state, "w", encoding="utf-8") as file:
            file.write(f"cd {self.work}\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        with contextlib.ExitStack() as all_of_them:
            for server in filter(None, (self.server, self.second)):
                all_of_them.callback(server.stop)  # Not kill(): the next server may take the same data directory.
        self.server = self.second = None

    def environment(self):
        path = os.path.join(self.work, "build/release/bin") + os.pathsep + os.environ["PATH"]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SOFTLOOKUP_")}
        return kept | {"PATH": path, "TMPDIR": self.directory, "SOFTLOOKUP_LISTEN": "127.0.0.1:0",
                       "SOFTLOOKUP_HTTP_LISTEN": "127.0.0.1:0", "SOFTLOOKUP_LOG_LEVEL": "error"}

    def of_here(self, text):
        for pattern, substitute in SUBSTITUTES:
            filled = substitute.format(directory=self.directory, group=os.getgid(),
                                       port=self.server.port if self.server else 0,
                                       second_port=self.second.port if self.second else 0)
            text = re.sub(pattern, filled, text)
        return text

    def serve(self, command):
        """Starts a server in place of those before, and has the tool ask it; or the second one, beside it."""
        beside = re.search(f"--listen {SECOND}", command)
        if not beside:
            self.stop()
        server = Server(f"source {self.state}\nexec {self.of_here(command)}", self.environment())
        if beside:
            self.second = server
            return
        self.server = server
        with open(self.state, "a", encoding="utf-8") as file:
            file.write(f"export SOFTLOOKUP_SERVER={server.host}:{server.port}\n")

    def run(self, text):
        """Runs a command. Returns its exit code, None if it did not end in time, and what it printed.

        If the page has not started a server yet, this starts one.
        """
        if not self.server:
            self.serve("softlookup-server --ephemeral")
        script = (f"source {self.state}\n{FUNCTIONS}\nset -euo pipefail\n{self.of_here(text)}\n"
                  f"{{ declare -px; printf 'cd %q\\n' \"$PWD\"; }} >{self.state}\n")
        with subprocess.Popen(["bash", "-c", script], env=self.environment(), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              start_new_session=True) as shell:
            try:
                printed = shell.communicate(timeout=SECONDS)[0]
                return shell.returncode, printed
            except subprocess.TimeoutExpired:
                os.killpg(shell.pid, signal.SIGKILL)  # The shell's commands too: they hold its output open.
                return None, shell.communicate()[0]

    def find(self, name):
        """The file of this name that commands have made, or None."""
        for folder, _, names in os.walk(self.directory):
            if name in names:
                return os.path.join(folder, name)
        return None


def make_vectors(terminal):
    """README.md's files of the reader's own."""
    random = np.random.RandomState(1)
    for name, array in (("keys", random.normal(size=(200, 128))), ("queries", random.normal(size=(3, 128))),
                        ("values", np.eye(10)[random.randint(10, size=200)])):
        np.save(os.path.join(terminal.work, f"{name}.npy"), array.astype(np.float32))


def start_service(terminal):
    """The package's service, with the settings that docs/security.md tells to take off the # of."""
    with open(os.path.join(ROOT, "server/package/softlookup.conf"), encoding="utf-8") as file:
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


class BlocksTest(unittest.TestCase):
    def test_blocks_have_their_commands_and_what_is_shown(self):
        page = ("# A\n\ntext\n    no block\n\n    one \\\n      --flag\n    two <<'END'\n    b\n    END\n\n    three\n\n"
                "## B\n```console\n$ for i in 1; do\n>   four\n> done\nshown\n\n$ five\n```\n```cpp\nint x;\n```\n")
        blocks = list(blocks_of(page))
        self.assertEqual([(block.heading, block.line, block.language) for block in blocks],
                         [("A", 6, "indented"), ("B", 16, "console"), ("B", 24, "cpp")])
        self.assertEqual([command.text for command in blocks[0].commands()],
                         ["one \\\n  --flag", "two <<'END'\nb\nEND", "three"])
        self.assertEqual([(command.text, command.shown) for command in blocks[1].commands()],
                         [("for i in 1; do\n  four\ndone", ["shown", ""]), ("five", [])])

    def test_a_block_of_which_the_end_is_missing_is_an_error(self):
        for text in ("    for i in 1; do\n", "    echo 'a\n", "    cat <<END\n    a\n"):
            with self.assertRaises(AssertionError):
                next(blocks_of("\n" + text)).commands()

    def test_outputs_are_alike_if_words_and_numbers_are(self):
        printed = ["appended 5 rows in 0.004 s, 1250 rows/s; x has 5 rows", "  0.8760  a", "b 1e-05", "[2.5, -3]"]
        shown = ["appended 5 rows in 0.001 s, 9999 rows/s; x has 5 rows", " 0.8761 a", "b 2e-05", "[2.5, -3]"]
        self.assertEqual(difference(printed, shown), "")
        for at, other in ((0, "appended 6 rows in 0.001 s, 9999 rows/s; x has 5 rows"), (1, "0.8860 a"), (1, "0.8760 b"),
                          (2, "b 1e-03"), (3, "[2.5, 3]"), (3, "[2.5]")):
            self.assertNotEqual(difference(printed, shown[:at] + [other] + shown[at + 1:]), "", other)

    def test_all_lines_are_shown_unless_dots_stand_for_them(self):
        self.assertEqual(difference(["a", "b", "c"], ["a", "...", "c"]), "")
        self.assertEqual(difference(["a", "b", "c"], ["a", "..."]), "")
        self.assertEqual(difference(["a", "c", ""], ["a", "...", "c"]), "")
        for shown in (["a", "b"], ["a", "c"], ["b", "c"], ["a", "...", "d"], ["a", "b", "c", "d"], ["...", "b"]):
            self.assertNotEqual(difference(["a", "b", "c"], shown), "", shown)


class TerminalTest(unittest.TestCase):
    def setUp(self):
        directory = self.enterContext(tempfile.TemporaryDirectory())
        self.terminal = self.enterContext(Terminal(directory))

    def test_a_command_keeps_variables_and_directory_for_the_next(self):
        self.assertEqual(self.terminal.run("export A=1; mkdir b; cd b"), (0, ""))
        self.assertEqual(self.terminal.run('echo $A "${PWD##*/}"; false'), (1, "1 b\n"))

    def test_a_command_that_does_not_end_is_ended_with_all_that_it_started(self):
        with mock.patch(f"{__name__}.SECONDS", 0.5):
            self.assertEqual(self.terminal.run("echo a; sleep 1000 & sleep 1000"), (None, "a\n"))

    def test_a_second_server_runs_beside_the_first(self):
        self.terminal.serve("softlookup-server --ephemeral")
        self.terminal.serve("softlookup-server --ephemeral --listen 127.0.0.1:7481")
        for options in ("", "--server 127.0.0.1:7481"):
            code, printed = self.terminal.run(f"softlookup {options} health")
            self.assertEqual(code, 0, printed)
        self.assertNotEqual(self.terminal.server.port, self.terminal.second.port)

    def test_a_server_that_does_not_start_is_an_error(self):
        with self.assertRaisesRegex(AssertionError, "did not start"):
            self.terminal.serve("softlookup-server --data-dir /dev/null 2>/dev/null")


class PagesTest(unittest.TestCase):
    def run_command(self, terminal, page, command):
        for path, begin, prepare in BEFORE:
            if path == page and command.text.startswith(begin):
                prepare(terminal)
        if re.match(r"(build/release/bin/)?softlookup-server (?!.*--verify)|build/release/bin/softlookup-server$",
                    command.text):
            terminal.serve(command.text)
            return
        code, printed = terminal.run(command.text)
        if code is None:
            self.fail(f"it did not end within {SECONDS} s\n{printed}")
        if code != 0:
            self.fail(f"its exit code is {code}\n{printed}")
        differs = command.shown and difference(printed.splitlines(), command.shown)
        if differs:
            self.fail(differs)

    def run_page(self, page, text, used):
        """Raises AssertionError at the first command that fails: those after it may wait for what it has not done."""
        with tempfile.TemporaryDirectory() as directory, Terminal(directory) as terminal:
            heading = ""
            for block in blocks_of(text):
                if block.heading != heading and (page, block.heading) in NEW_TERMINALS:
                    terminal.begin()
                heading = block.heading
                no_commands = [entry for entry in NO_COMMANDS if entry[0] == page and block.text.startswith(entry[1])]
                used.update(no_commands)
                if no_commands or block.language not in ("", "console", "indented"):
                    continue
                for command in block.commands():
                    not_run = [entry for entry in NOT_RUN
                               if entry[0] in ("", page) and re.match(entry[1], command.text)]
                    used.update(not_run)
                    if not_run:
                        continue
                    try:
                        self.run_command(terminal, page, command)
                    except AssertionError as error:
                        where = f"{page}, in the block at line {block.line}"
                        raise AssertionError(f"{where}:\n{command.text}\n{error}") from None
            for name in re.findall(r"\]\(images/(\S+\.svg)\)", text):
                self.check_picture(terminal, name)

    def check_picture(self, terminal, name):
        drawn = terminal.find(name)
        self.assertIsNotNone(drawn, f"no command of the page draws {name}")
        with open(drawn, encoding="utf-8") as one, \
                open(os.path.join(ROOT, "docs/images", name), encoding="utf-8") as other:
            self.assertTrue(are_alike(one.read(), other.read(), distance=0.2),
                            f"the page's commands draw another {name}")

    def test_commands_work_as_printed_and_once_more(self):
        pages = PAGES or ["README.md", *sorted(os.path.relpath(path, ROOT)
                                               for path in glob.glob(os.path.join(ROOT, "docs/*.md")))]
        used, whole = set(), []
        end = time.monotonic() + PAGES_SECONDS
        for page in pages:
            self.assertLess(time.monotonic(), end, f"no time was left to begin with {page}")
            with open(os.path.join(ROOT, page), encoding="utf-8") as file:
                text = file.read()
            with self.subTest(page):
                for _ in range(2):
                    self.run_page(page, text, used)
                whole.append(page)
        if not PAGES and whole == pages:
            self.assertEqual([entry for entry in NO_COMMANDS + NOT_RUN if entry not in used], [],
                             "exceptions that no page needs")


if __name__ == "__main__":
    SERVER, ROOT, TOOL = (os.path.abspath(path) for path in sys.argv[1:4])
    PAGES = sys.argv[4:]
    unittest.main(argv=sys.argv[:1])
