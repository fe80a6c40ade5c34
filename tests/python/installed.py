"""The wheel where a user has installed it."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import softlookup

SITE = pathlib.Path(softlookup.__file__).parent.parent


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


class InstalledTest(unittest.TestCase):
    """Takes the wheel beside the directory of the package on PYTHONPATH."""

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
