#!/usr/bin/python3
"""Does the package keep to what its oldest Python has?: oldest_test.py SERVER ROOT TOOL

The syntax as far as ast.parse() knows the versions, and by name what the standard library has got since. mypy, in
package_test.py, finds more where it is installed.
"""
import ast
import re
import unittest

from subject import ROOT, main

OLDEST = tuple(
    int(part)
    for part in re.search(
        r'^requires-python = ">=(\d+)\.(\d+)"$',
        (ROOT / "client/python/pyproject.toml").read_text(),
        re.M,
    ).groups()
)
# What Python 3.10 and later brought. Builtins are of no module.
NEW_NAMES = {
    "": "BaseExceptionGroup EncodingWarning ExceptionGroup PythonFinalizationError aiter anext",
    "asyncio": "Barrier BrokenBarrierError QueueShutDown Runner TaskGroup eager_task_factory timeout "
    "timeout_at",
    "collections.abc": "Buffer",
    "contextlib": "aclosing chdir",
    "datetime": "UTC",
    "enum": "EnumCheck FlagBoundary ReprEnum StrEnum global_enum member nonmember property verify",
    "hashlib": "file_digest",
    "inspect": "get_annotations getasyncgenstate getmembers_static markcoroutinefunction",
    "itertools": "batched pairwise",
    "math": "cbrt exp2 fma sumprod",
    "operator": "call is_none is_not_none",
    "os": "EFD_CLOEXEC eventfd process_cpu_count splice unshare",
    "sys": "activate_stack_trampoline exception monitoring orig_argv stdlib_module_names",
    "threading": "getprofile gettrace setprofile_all_threads settrace_all_threads",
    "tomllib": "load loads",
    "types": "CapsuleType EllipsisType NoneType NotImplementedType UnionType get_original_bases",
    "typing": "Concatenate LiteralString Never NotRequired ParamSpec ParamSpecArgs ParamSpecKwargs "
    "ReadOnly Required Self TypeAlias TypeAliasType TypeGuard TypeIs TypeVarTuple Unpack assert_never "
    "assert_type clear_overloads dataclass_transform get_overloads is_typeddict override reveal_type",
    "warnings": "deprecated",
}
NEW_NAMES = {module: set(names.split()) for module, names in NEW_NAMES.items()}
# Arguments of functions, and methods of objects of any class.
NEW_ARGUMENTS = {
    "zip": {"strict"},
    "map": {"strict"},
    "dataclass": {"kw_only", "match_args", "slots", "weakref_slot"},
    "field": {"kw_only"},
    "bisect": {"key"},
    "bisect_left": {"key"},
    "bisect_right": {"key"},
    "insort": {"key"},
    "TemporaryDirectory": {"delete", "ignore_cleanup_errors"},
    "NamedTemporaryFile": {"delete_on_close"},
    "create_task": {"context"},
    "ensure_future": {"context"},
}
NEW_METHODS = {"add_note", "bit_count", "uncancel"}
# Of `|` between types, which is a TypeError when it is evaluated.
TYPES = set(
    "bool bytes dict float frozenset int list object set str tuple type "
    "Any Callable Dict Iterator List Mapping Optional Sequence Tuple Type Union".split()
)


def name_of(node):
    """`a.b` of such an expression; empty of another one."""
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def is_type(node):
    if isinstance(node, ast.Subscript):
        return is_type(node.value)
    is_none = isinstance(node, ast.Constant) and node.value is None
    return is_none or name_of(node).rsplit(".", 1)[-1] in TYPES


def found_in(node, modules):
    """What of `node` the oldest Python lacks. `modules` are those that names of the file stand for."""
    if isinstance(node, ast.ImportFrom) and not node.level:
        yield from sorted({alias.name for alias in node.names} & NEW_NAMES.get(node.module, set()))
        if node.module == "tomllib":
            yield node.module
    if isinstance(node, ast.Import):
        yield from ("tomllib" for alias in node.names if alias.name == "tomllib")
    if isinstance(node, ast.Name) and node.id in NEW_NAMES[""]:
        yield node.id
    if isinstance(node, ast.Attribute):
        module = modules.get(name_of(node.value))
        if node.attr in NEW_METHODS or node.attr in NEW_NAMES.get(module, ()):
            yield node.attr
    if isinstance(node, ast.Call):
        new = NEW_ARGUMENTS.get(name_of(node.func).rsplit(".", 1)[-1], set())
        yield from sorted(new & {keyword.arg for keyword in node.keywords})
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        if is_type(node.left) or is_type(node.right):
            yield "|"


def newer_than(oldest, source):
    """What `source` uses that Python `oldest` lacks, in lines such as "3: pairwise"."""
    try:
        tree = ast.parse(source, feature_version=oldest)
    except SyntaxError as error:
        return [f"{error.lineno}: {error.msg}"]
    nodes = list(ast.walk(tree))
    modules = {
        alias.asname or alias.name: alias.name
        for node in nodes
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    return [f"{node.lineno}: {each}" for node in nodes for each in found_in(node, modules)]


class OldestTest(unittest.TestCase):
    def test_every_source_keeps_to_what_the_oldest_python_has(self):
        self.assertEqual(OLDEST, (3, 9), "NEW_NAMES and the others are those after 3.9")
        sources = {
            path: path.read_text()
            for folder in ("client/python/softlookup", "examples/python")
            for path in (ROOT / folder).rglob("*.py")
        }
        page = (ROOT / "docs/python.md").read_text()
        for i, block in enumerate(re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)):
            sources[f"docs/python.md, program {i}"] = block
        self.assertGreater(len(sources), 35)
        for path, source in sources.items():
            self.assertEqual(newer_than(OLDEST, source), [], path)

    def test_what_is_newer_is_found(self):
        for source in (
            "match x:\n    case 1: pass",
            "try: pass\nexcept* OSError: pass",
            "type A = int",
            "def f[T](x: T): pass",
            "from itertools import pairwise",
            "import itertools\nitertools.pairwise(x)",
            "import asyncio as a\nasync def f():\n    async with a.timeout(1): pass",
            "async def f():\n    import asyncio\n    async with asyncio.TaskGroup(): pass",
            "from datetime import UTC",
            "from typing import Self",
            "import tomllib",
            "zip(x, y, strict=True)",
            "import dataclasses\n@dataclasses.dataclass(frozen=True, slots=True)\nclass A: pass",
            "async def f(): await anext(x)",
            "A = int | None",
            "A = 'B' | None",
            "isinstance(x, int | str)",
            "def f(x: list[int] | None): pass",
            "error.add_note('a')",
        ):
            with self.subTest(source):
                self.assertEqual(len(newer_than(OLDEST, source)), 1)

    def test_what_is_as_old_is_not(self):
        for source in (
            "from itertools import chain\nfrom typing import Optional\nA = Optional[int]",
            "asyncio.timeout(1)",  # Of something else of that name.
            "timeout = 1\nf(timeout=timeout)",
            "zip(x, y)\nvarint(field << 3 | LENGTH)\nvalue & 0x7F | 0x80",
            "from .typing import Self",
            "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass A: pass",
            "with (open(a) as b, open(c) as d): pass\nif (n := 1): pass",
        ):
            with self.subTest(source):
                self.assertEqual(newer_than(OLDEST, source), [])


if __name__ == "__main__":
    main()
