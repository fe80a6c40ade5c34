#!/usr/bin/python3
"""Do the commands that pages print work as they stand?  pages_test.py SERVER ROOT TOOL

Runs every block of commands of a page, one after another, in an empty directory and against a fresh server; then once
more, in another directory and against another server.
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

# Pages of which every block of commands stands on those before it alone.
PAGES = ("docs/concepts.md",)
# What the commands of a page begin with. Other blocks are formulas and tables.
PROGRAMS = ("softlookup ", "printf ", "echo ")


def command_blocks(page):
    """The blocks of a page, lines that begin with four spaces, that are commands."""
    blocks = re.findall(r"(?:^ {4}.*\n)+", page, re.MULTILINE)
    blocks = ["".join(line[4:] + "\n" for line in block.splitlines()) for block in blocks]
    return [block for block in blocks if block.startswith(PROGRAMS)]


class Server:
    """A server without a data directory, on a free port."""

    def __enter__(self):
        self.process = subprocess.Popen(
            [SERVER, "--ephemeral", "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--log-level", "error"],
            stdout=subprocess.PIPE, text=True)
        self.address = re.search(r"grpc=(\S+)", self.process.stdout.readline())[1]
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class PagesTest(unittest.TestCase):
    def run_page(self, path):
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            blocks = command_blocks(file.read())
        self.assertGreater(len(blocks), 3, "the page's commands were not found")
        with Server() as server, tempfile.TemporaryDirectory() as directory:
            environment = os.environ | {"PATH": os.path.dirname(TOOL) + os.pathsep + os.environ["PATH"],
                                        "SOFTLOOKUP_SERVER": server.address}
            for block in blocks:
                ran = subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=directory, env=environment,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
                self.assertEqual(ran.returncode, 0, f"{path}:\n{block}{ran.stdout}")

    def test_commands_work_as_printed_and_once_more(self):
        for path in PAGES:
            for _ in range(2):
                self.run_page(path)


if __name__ == "__main__":
    SERVER, ROOT, TOOL = (os.path.abspath(path) for path in sys.argv[1:4])
    del sys.argv[1:]
    unittest.main()
