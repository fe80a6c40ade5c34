#!/usr/bin/python3
"""Does an example work as its README says?  example_test.py python|node SERVER ROOT WORK_DIRECTORY

Installs what the example needs in WORK_DIRECTORY and runs it against SERVER, a binary, on a free
port. The example itself compares the answers with its own float64 arithmetic. Needs the standard
library only.
"""
import filecmp
import os
import re
import shutil
import subprocess
import sys
import unittest


def run(command, directory=None, environment=None, seconds=240):
    done = subprocess.run(command, cwd=directory, env={**os.environ, **(environment or {})},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds)
    return done.returncode, done.stdout


# What npm says where the registry cannot be reached, or only through something it does not trust.
NO_REGISTRY = re.compile(r"^npm \S+ code (E(NOTFOUND|AI_AGAIN|CONN\w+|TIMEDOUT|HOSTUNREACH|NETUNREACH|40[37]|5\d\d)"
                         r"|\w*CERT\w*|UNABLE_TO_\w+)$", re.MULTILINE)


def prepare(command, directory=None):
    if shutil.which(command[0]) is None:
        raise unittest.TestCase.failureException(f"{command[0]} is missing; scripts/install-packages --test")
    code, output = run(command, directory)
    if code == 0:
        return
    if NO_REGISTRY.search(output):
        raise unittest.SkipTest(f"the npm registry cannot be reached:\n{output}")
    raise unittest.TestCase.failureException(f"{' '.join(command)} failed:\n{output}")


def python_example():
    prepare([os.path.join(ROOT, "examples/python/make_stubs"), WORK])
    environment = {"PYTHONPATH": WORK, "PYTHONDONTWRITEBYTECODE": "1"}
    return lambda address: run(
        [sys.executable, os.path.join(ROOT, "examples/python/soft_lookup.py"), address], None, environment)


def node_example():
    source = os.path.join(ROOT, "examples/node")
    lock, installed = os.path.join(source, "package-lock.json"), os.path.join(WORK, "installed.json")
    if not os.path.exists(installed) or not filecmp.cmp(lock, installed, shallow=False):
        for name in ("package.json", "package-lock.json"):
            shutil.copy(os.path.join(source, name), WORK)
        prepare(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], WORK)
        shutil.copy(lock, installed)
    # Node.js looks for packages beside the program.
    shutil.copy(os.path.join(source, "soft_lookup.js"), WORK)
    return lambda address: run(["node", "soft_lookup.js", address, os.path.join(ROOT, "proto")], WORK)


class ExampleTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.makedirs(WORK, exist_ok=True)
        cls.example = staticmethod({"python": python_example, "node": node_example}[LANGUAGE]())

    def test_it_agrees_with_the_server_and_leaves_nothing(self):
        server = subprocess.Popen(
            [SERVER, "--ephemeral", "--listen=127.0.0.1:0", "--http-listen=127.0.0.1:0", "--log-level=warning"],
            stdout=subprocess.PIPE, text=True)
        try:
            address = re.search(r"grpc=(\S+)", server.stdout.readline())[1]
            # Twice: the second run would find what the first one left.
            for _ in range(2):
                code, output = self.example(address)
                self.assertEqual(code, 0, output)
                self.assertRegex(output, r"rows: \[.*1000 ?\]")
                self.assertRegex(output, r"difference from .*float64: \S+ of the largest component")
                self.assertIn("refused: INVALID_ARGUMENT, SHAPE_MISMATCH", output)
        finally:
            server.terminate()
            self.assertEqual(server.wait(60), 0)
            server.stdout.close()

    def test_it_fails_without_a_server(self):
        code, output = self.example("127.0.0.1:1")
        self.assertEqual(code, 1, output)
        self.assertIn("UNAVAILABLE", output)


if __name__ == "__main__":
    LANGUAGE, SERVER, ROOT, WORK = sys.argv[1:5]
    unittest.main(argv=sys.argv[:1], verbosity=2)
