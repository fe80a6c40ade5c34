#!/usr/bin/python3
"""Are the wheel and the .deb whole, and what do they do where they are installed?
package_test.py SERVER ROOT TOOL

Takes the wheel beside the directory of the package on PYTHONPATH.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

import softlookup
from subject import ROOT, local_server, main

SITE = pathlib.Path(softlookup.__file__).parent.parent
TYPED_PROGRAM = """
import asyncio
from typing import List

import numpy as np

import softlookup as sl
import softlookup.aio
import softlookup.testing


def ask(client: sl.Client) -> float:
    store = client.create_store("s", key_dim=2, value_dim=1, memories=[sl.MemorySpec("m", "average")])
    receipt: sl.Receipt = store.append(np.zeros((1, 2)), [[1.0]], labels=["a"])
    with store.writer("w") as writer:
        writer.append([[1, 2]], [[3]])
    answer = store.lookup([1.0, 2.0], where=sl.rows(last=1), weights="all", min_revision=receipt.revision)
    ends: List[int] = [memory.end for memory in store.watch()]
    for page in store.rows():
        print([row.labels for row in page], ends)
    try:
        store.info()
    except sl.NotFoundError as error:
        print(error.metadata["store"])
    return float(answer.merge(sl.attend([1, 2], [[1, 2]], [[1]])).entropy[0])


async def ask_again() -> None:
    async with softlookup.aio.connect("localhost:7471") as client:
        answer: sl.Answer = await client.store("s").lookup([1.0, 2.0])
        async for page in client.store("s").rows():
            print(len(page), answer.values.shape)


with softlookup.testing.local_server() as server, server.connect() as connected:
    print(ask(connected))
    asyncio.run(ask_again())
"""
WRONG_PROGRAM = """
import softlookup as sl

sl.connect().store("s").lookup([1.0], wehre=sl.rows(last=1))
sl.connect().store("s").lookup([1.0], where="last")
"""


def run(*command, **options):
    done = subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        **options,
    )
    return done.returncode, done.stdout


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        (cls.wheel,) = SITE.parent.glob("*-py3-none-any.whl")
        cls.clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        # As a user installs it, with Debian's numpy and grpcio.
        cls.python = cls.work / "venv/bin/python"
        for command in (
            [sys.executable, "-m", "venv", "--system-site-packages", cls.work / "venv"],
            [
                cls.python,
                "-m",
                "pip",
                "install",
                "--no-index",
                "--quiet",
                "--disable-pip-version-check",
                cls.wheel,
            ],
        ):
            subprocess.run(command, check=True, env=cls.clean)

    def expect(self, *command, **options):
        code, output = run(*command, **options)
        self.assertEqual(code, 0, output)
        return output

    def expect_digits(self, python, environment):
        try:
            import sklearn  # noqa: F401
        except ImportError:
            return
        with local_server() as server:
            environment = {**environment, "SOFTLOOKUP_SERVER": server.address}
            output = self.expect(python, ROOT / "examples/python/digits.py", env=environment)
        self.assertRegex(output, r"^1216 of 1297 right, ")

    def test_the_wheel_has_the_package_and_nothing_else(self):
        with zipfile.ZipFile(self.wheel) as archive:
            names = set(archive.namelist())
        self.assertEqual(
            {name.split("/")[0] for name in names},
            {"softlookup", f"softlookup-{softlookup.__version__}.dist-info"},
        )
        for name in (
            "py.typed",
            "aio/__init__.py",
            "_proto/softlookup/v1/lookup_pb2.py",
            "_proto/softlookup/v1/lookup_pb2.pyi",
            "_proto/softlookup/v1/soft_lookup_pb2_grpc.py",
        ):
            self.assertIn(f"softlookup/{name}", names)
        self.assertEqual([name for name in names if "google" in name], [])
        sources = {
            str(path.relative_to(ROOT / "client/python"))
            for path in (ROOT / "client/python/softlookup").rglob("*.py")
            if "_proto" not in path.parts
        }
        self.assertEqual(
            sources, {name for name in names if name.endswith(".py") and "_proto" not in name}
        )

    def test_a_build_is_the_same_each_time(self):
        self.expect(ROOT / "client/python/build-wheel", self.work / "again")
        (again,) = (self.work / "again").iterdir()
        self.assertEqual(again.read_bytes(), self.wheel.read_bytes())

    def test_it_runs_where_pip_has_installed_it(self):
        where = self.expect(
            self.python,
            "-c",
            "import softlookup; print(softlookup.__file__)",
            env=self.clean,
            cwd="/",
        )
        self.assertTrue(where.startswith(str(self.work / "venv")), where)
        self.expect_digits(self.python, self.clean)

    def test_the_deb_has_the_same_files_and_runs_where_it_is_unpacked(self):
        deb = self.expect(ROOT / "client/python/build-deb", self.work / "deb").strip()
        fields = self.expect("dpkg-deb", "-f", deb, "Package", "Version", "Architecture", "Depends")
        self.assertIn(
            f"Package: python3-softlookup\nVersion: {softlookup.__version__}\nArchitecture: all\n",
            fields,
        )
        self.expect("dpkg-deb", "-x", deb, self.work / "root")
        packages = self.work / "root/usr/lib/python3/dist-packages"
        for path in SITE.joinpath("softlookup").rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                self.assertEqual(
                    (packages / path.relative_to(SITE)).read_bytes(), path.read_bytes(), path
                )
        owners = self.expect("dpkg-deb", "-c", deb)
        self.assertEqual({line.split()[1] for line in owners.splitlines()}, {"root/root"})
        self.expect_digits(
            sys.executable,
            {**self.clean, "PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"},
        )

    def test_a_typed_program_passes_mypy_and_a_wrong_one_does_not(self):
        mypy = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", self.work / "cache"]
        code, output = run(*mypy, "--version")
        if code != 0:
            self.skipTest("mypy is not there; scripts/install-packages --test")
        config = ROOT / "client/python/pyproject.toml"
        self.expect(*mypy, "--config-file", config, SITE / "softlookup", cwd=self.work)
        (self.work / "right.py").write_text(TYPED_PROGRAM)
        (self.work / "wrong.py").write_text(WRONG_PROGRAM)
        user = [*mypy, "--python-executable", self.python, "--config-file", os.devnull]
        self.expect(*user, "right.py", cwd=self.work, env=self.clean)
        code, output = run(*user, "wrong.py", cwd=self.work, env=self.clean)
        self.assertIn('Unexpected keyword argument "wehre"', output)
        self.assertIn('has incompatible type "str"', output)

    def test_googles_own_messages_may_be_there_before_or_after_it(self):
        self.expect(
            "protoc",
            "-I",
            ROOT / "proto",
            f"--python_out={self.work}",
            "google/rpc/error_details.proto",
            "google/rpc/status.proto",
        )
        package = "import sys; sys.path.insert(0, sys.argv[1]); from google.rpc import error_details_pb2, status_pb2"
        extend = f"import google; google.__path__.append({str(self.work / 'google')!r})"
        for order in (("import softlookup", package), (package, "import softlookup")):
            self.expect(sys.executable, "-c", "; ".join([extend, *order]), self.work)


if __name__ == "__main__":
    main()
