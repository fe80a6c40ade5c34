#!/usr/bin/python3
"""Does an example work as its README says?  example_test.py cpp|python|node SERVER ROOT WORK_DIRECTORY

Installs what the example needs in WORK_DIRECTORY and runs it against SERVER, a binary, on a free
port. WORK_DIRECTORY has the program of C++ already. That in Node.js compares the answers with its own
float64 arithmetic. Needs the standard library only.
"""
import contextlib
import filecmp
import os
import re
import shutil
import subprocess
import sys
import unittest
import urllib.request


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


def cpp_example():
    return lambda address: run([os.path.join(WORK, "soft_lookup"), address])


def python_example():
    try:
        import sklearn  # noqa: F401
    except ImportError:
        raise unittest.SkipTest("python3-sklearn is not there") from None
    package = os.path.join(WORK, "package")
    prepare([sys.executable, "-B", os.path.join(ROOT, "tests/python/unpack_wheel.py"), ROOT, package])
    environment = {"PYTHONPATH": os.path.join(package, "site"), "PYTHONDONTWRITEBYTECODE": "1"}
    return lambda address: run([sys.executable, os.path.join(ROOT, "examples/python/digits.py")], None,
                               {**environment, "SOFTLOOKUP_SERVER": address})


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


FLOAT64_CHECKED = (r"rows: \[.*1000 ?\]", r"difference from .*float64: \S+ of the largest component",
                   "refused: INVALID_ARGUMENT, SHAPE_MISMATCH")
# By language: how it begins, and what it prints.
EXAMPLES = {"cpp": (cpp_example, (r"^4\.59\d*$",)), "python": (python_example, ("^1216 of 1297 right, ",)),
            "node": (node_example, FLOAT64_CHECKED)}


class ExampleTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.makedirs(WORK, exist_ok=True)
        cls.example = staticmethod(EXAMPLES[LANGUAGE][0]())

    @contextlib.contextmanager
    def server(self, *flags):
        """The addresses of a server, for gRPC and for HTTP."""
        server = subprocess.Popen(
            [SERVER, "--ephemeral", "--listen=127.0.0.1:0", "--http-listen=127.0.0.1:0", "--log-level=warning",
             *flags], stdout=subprocess.PIPE, text=True)
        try:
            yield re.search(r"grpc=(\S+) http=(\S+)", server.stdout.readline()).groups()
        finally:
            server.terminate()
            self.assertEqual(server.wait(60), 0)
            server.stdout.close()

    def test_it_agrees_with_the_server_and_leaves_nothing(self):
        with self.server() as (address, http):
            for _ in range(2):
                code, output = self.example(address)
                self.assertEqual(code, 0, output)
                for pattern in EXAMPLES[LANGUAGE][1]:
                    self.assertRegex(output, re.compile(pattern, re.MULTILINE))
                with urllib.request.urlopen(f"http://{http}/metrics", timeout=60) as metrics:
                    self.assertIn("\nsoftlookup_stores 0\n", metrics.read().decode())

    def test_it_prints_a_refusal_as_text_and_again_the_next_time(self):
        with self.server("--max-append-rows=1") as (address, _):
            for _ in range(2):
                code, output = self.example(address)
                self.assertEqual(code, 1, output)
                self.assertIn("rows are over the limit of 1", output)
                self.assertNotRegex(output, r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

    def test_it_fails_without_a_server(self):
        code, output = self.example("127.0.0.1:1")
        self.assertEqual(code, 1, output)
        self.assertIn("UNAVAILABLE", output)


if __name__ == "__main__":
    LANGUAGE, SERVER, ROOT, WORK = sys.argv[1:5]
    unittest.main(argv=sys.argv[:1], verbosity=2)
