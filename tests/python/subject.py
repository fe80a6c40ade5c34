"""What a test of the Python package is about: TEST SERVER ROOT TOOL, with the package on PYTHONPATH."""
import contextlib
import json
import pathlib
import sys
import unittest
from typing import Any

import softlookup.testing

SERVER, ROOT, TOOL = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]


def local_server(
    **options: Any,
) -> "contextlib.AbstractContextManager[softlookup.testing.LocalServer]":
    """A server of our own on free ports."""
    return softlookup.testing.local_server(SERVER, **{"seconds": 60.0, **options})


def conformance(name: str) -> Any:
    """A file of tests/conformance."""
    return json.loads((ROOT / "tests/conformance" / name).read_text())


def main() -> None:
    """Runs the tests of the program."""
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
