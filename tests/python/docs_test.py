#!/usr/bin/python3
"""Do the programs of docs/python.md and of examples/python run, and print what the page says?
docs_test.py SERVER ROOT TOOL

Blocks of `pycon` are checked as doctest does, one after the other; a block of `python` is a program of its own, and the
block of `output` behind it is what it must print. All of them ask one server, which is new.
"""
import doctest
import os
import re
import subprocess
import sys
import unittest

from subject import ROOT, SERVER, local_server, main

PAGE = (ROOT / "docs/python.md").read_text()
BLOCKS = [
    (m[1], m[2], PAGE[: m.start()].count("\n") + 1)
    for m in re.finditer(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
]


class DocsTest(unittest.TestCase):
    def test_every_block_runs_as_the_page_says(self):
        shell, runner = {}, doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
        environment = {**os.environ, "PATH": f"{os.path.dirname(SERVER)}:{os.environ['PATH']}"}
        programs = 0
        with local_server() as server:
            environment["SOFTLOOKUP_SERVER"] = server.address
            for i, (language, text, line) in enumerate(BLOCKS):
                with self.subTest(line=line):
                    if language == "pycon":
                        text = text.replace("127.0.0.1:7471", server.address)
                        test = doctest.DocTestParser().get_doctest(
                            text, shell, f"line {line}", "docs/python.md", line
                        )
                        told = []
                        self.assertEqual(
                            runner.run(test, out=told.append, clear_globs=False).failed,
                            0,
                            "".join(told),
                        )
                        shell = test.globs
                    elif language == "python":
                        done = subprocess.run(
                            [sys.executable, "-c", text],
                            env=environment,
                            stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT,
                            text=True,
                            timeout=60,
                        )
                        output = next(t for kind, t, _ in BLOCKS[i + 1 :] if kind == "output")
                        self.assertEqual((done.stdout, done.returncode), (output, 0))
                        programs += 1
                    else:
                        self.assertEqual(language, "output")
        self.assertEqual((programs, runner.summarize(verbose=False).attempted > 30), (3, True))

    def test_the_example_is_that_of_the_page(self):
        source = (ROOT / "examples/python/digits.py").read_text().split('"""', 2)[2].lstrip("\n")
        self.assertIn(source, [text for language, text, _ in BLOCKS if language == "python"])
        self.assertLessEqual(len(source.splitlines()), 20)


if __name__ == "__main__":
    main()
