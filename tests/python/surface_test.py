#!/usr/bin/python3
"""Do both clients have one surface, and does the core keep to itself?: surface_test.py SERVER ROOT TOOL"""
import ast
import inspect
import re
import unittest

import softlookup as sl
import softlookup.aio
from subject import ROOT, main


class SurfaceTest(unittest.TestCase):
    """The sync and the asyncio client have one surface."""

    @staticmethod
    def shape(function):
        signature = inspect.signature(function)
        names = [
            (
                p.name,
                p.kind,
                p.default
                if p.default is None or isinstance(p.default, (int, float, str, tuple))
                else repr(p.default),
                p.annotation,
            )
            for p in signature.parameters.values()
        ]
        result = re.sub(r"Async(Iterator)", r"\1", str(signature.return_annotation))
        return names, result

    def test_signatures_agree(self):
        pairs = [(sl.connect, softlookup.aio.connect)]
        rename = {"__aenter__": "__enter__", "__aexit__": "__exit__"}
        for name in ("Client", "Store", "Writer"):
            sync, other = (dict(vars(getattr(module, name))) for module in (sl, softlookup.aio))
            other = {rename.get(key, key): value for key, value in other.items()}
            public = {key for key in sync if not key.startswith("_") or key in rename.values()}
            self.assertEqual(
                public, {key for key in other if not key.startswith("_") or key in rename.values()}
            )
            pairs += [(sync[key], other[key]) for key in public if inspect.isfunction(sync[key])]
            for key in public:
                self.assertEqual(type(sync[key]), type(other[key]), key)
        self.assertGreater(len(pairs), 30)
        for sync, other in pairs:
            with self.subTest(sync.__qualname__):
                self.assertEqual(self.shape(sync), self.shape(other))

    def test_every_public_thing_has_a_docstring(self):
        for module in (sl, softlookup.aio):
            for name in module.__all__:
                thing = getattr(module, name)
                self.assertTrue(name == "__version__" or inspect.getdoc(thing), name)
                for key, value in vars(thing).items() if inspect.isclass(thing) else ():
                    if not key.startswith("_") and (
                        inspect.isfunction(value) or isinstance(value, property)
                    ):
                        self.assertTrue(inspect.getdoc(value), f"{name}.{key}")

    def test_the_core_does_no_input_or_output(self):
        package = ROOT / "client/python/softlookup"
        for path in sorted((package / "_core").glob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                names = (
                    [alias.name for alias in node.names]
                    if isinstance(node, ast.Import)
                    else [node.module or ""]
                    if isinstance(node, ast.ImportFrom)
                    else []
                )
                for name in names:
                    self.assertNotIn(
                        name.split(".")[0],
                        ("grpc", "asyncio", "socket", "time", "subprocess"),
                        path,
                    )
        for path in package.rglob("*.py"):
            if "_proto" not in path.parts:
                self.assertLessEqual(len(path.read_text().splitlines()), 400, path)

    def test_the_version_is_the_projects(self):
        version = re.search(
            r"^project\(softlookup VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M
        )[1]
        self.assertEqual(sl.__version__, version)


if __name__ == "__main__":
    main()
