#!/usr/bin/python3
"""Rules of this tree that no compiler keeps.  tidy_test.py [ROOT]

A rule is a function from a tree, {path: text}, to a line for everything that is wrong in it. Each
is declared with trees that break it and trees that only come near, so a rule that stops working
fails as well. Needs the standard library only.
"""
import graphlib
import os
import re
import sys
import unittest

FOLDERS = (".ci", "client", "cmake", "core", "docker", "docs", "examples", "proto", "scripts",
           "server", "tests")
THIS_FILE = "tests/tidy/tidy_test.py"  # It quotes what it forbids.

# What a folder of core/ may include beside itself: a folder, or one header of it. `include` are the
# public headers, included as "softlookup/...".
CORE_EDGES = {
    "base": (),
    "include": ("base",),
    "kernels": ("base",),
    "parallel": ("base",),
    "memory": ("include", "base"),
    "storage": ("include", "base"),
    "replication": ("include", "base"),
    "replicated_log": ("include", "replication", "storage", "base"),
    "attention": ("include", "kernels", "parallel", "base"),
    "scheduler": ("attention", "parallel", "base"),
    "store": ("include", "attention/positioned_block.h", "attention/blocks_summary.h", "memory",
              "kernels", "base"),
    "engine": ("include", "attention", "memory", "scheduler", "store", "storage", "replicated_log",
               "kernels",
               "parallel", "base"),
}

# Libraries that one folder, and its tests, keep to themselves; tests of faults and benchmarks put
# something else under RocksDB, or beside us.
FENCED = {"hwy/": ("core/kernels/", "benchmarks/"), "rocksdb/": ("core/storage/", "faults/", "benchmarks/")}

RULES = []


def rule(bad, near=()):
    def register(check):
        RULES.append((check, bad, near))
        return check
    return register


def includes(tree, *folders):
    for path, text in tree.items():
        if path.endswith((".cc", ".h")) and path.startswith(folders):
            for number, line in enumerate(text.splitlines(), 1):
                found = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
                if found:
                    yield path, f"{path}:{number}: includes {found[1]}", found[1]


@rule(bad=[{"core/base/a.h": "#include <grpcpp/grpcpp.h>"},
           {"core/base/a.h": '#include "softlookup/v1/row.pb.h"'},
           {"core/engine/a.cc": "# include <google/protobuf/message.h>"}],
      near=[{"server/a.cc": "#include <grpcpp/grpcpp.h>"},
            {"core/base/a.cc": "// not #include <grpcpp/grpcpp.h>"}])
def core_knows_no_wire(tree):
    for _, where, header in includes(tree, "core/"):
        if re.match(r"(grpc|grpcpp|google)/|.*\.pb\.h$", header):
            yield f"{where}; core/ knows no gRPC and no protobuf"


@rule(bad=[{"core/engine/a.cc": "#include <rocksdb/db.h>"},
           {"server/a.cc": '#include "rocksdb/db.h"'},
           {"tests/core/engine/a_test.cc": "#include <rocksdb/env.h>"},
           {"core/attention/a.cc": '#include "hwy/highway.h"'}],
      near=[{"core/storage/a.cc": "#include <rocksdb/db.h>",
             "tests/core/storage/a_test.cc": "#include <rocksdb/env.h>",
             "tests/faults/a.h": "#include <rocksdb/env.h>",
             "tests/benchmarks/a.cc": '#include "hwy/highway.h"',
             "core/engine/a.cc": '#include "core/storage/rocksdb_log.h"'}])
def fenced_libraries_stay_in_their_folder(tree):
    for path, where, header in includes(tree, ""):
        for library, folders in FENCED.items():
            if header.startswith(library) and not path.removeprefix("tests/").startswith(folders):
                yield f"{where}; only {folders[0]} does"


@rule(bad=[{"core/kernels/a.cc": '#include "core/store/b.h"'},
           {"core/base/a.h": '#include "softlookup/engine.h"'},
           {"core/store/a.cc": '#include "core/attention/attend.h"'},
           {"core/memory/a.cc": '#include "core/attention/b.h"'},
           {"core/engine/a.cc": '#include "server/codec.h"'},
           {"core/engine/a.cc": '#include "tests/testing/random.h"'},
           {"core/new/a.cc": '#include "core/base/b.h"'}],
      near=[{"core/store/a.h": '#include "core/attention/positioned_block.h"\n'
                               '#include "core/store/b.h"',
             "core/engine/a.cc": '#include "core/store/b.h"\n#include "softlookup/engine.h"'}])
def core_includes_point_downwards(tree):
    for path, where, header in includes(tree, "core/"):
        folder = path.split("/")[1]
        if folder not in CORE_EDGES:
            yield f"{path}: core/{folder} has no line in CORE_EDGES"
        elif header.startswith(("server/", "client/", "tests/")):
            yield f"{where}; core/ knows none of these"
        elif header.startswith(("core/", "softlookup/")):
            target = re.sub("^softlookup/", "core/include/", header).removeprefix("core/")
            allowed = (folder, *CORE_EDGES[folder])
            if target not in allowed and target.split("/")[0] not in allowed:
                yield f"{where}; core/{folder} may not"


@rule(bad=[{"server/a.cc": '#include "core/engine/validate.h"'},
           {"server/a.cc": '#include "core/include/softlookup/engine.h"'},
           {"server/a.cc": '#include "client/cpp/retry.h"'}],
      near=[{"server/a.cc": '#include "core/base/error.h"\n#include "softlookup/engine.h"'},
            {"server/a.cc": '#include "client/cli/help_formatter.h"',
             "tests/server/a_test.cc": '#include "core/engine/validate.h"'}])
def server_sees_core_by_its_public_headers(tree):
    for _, where, header in includes(tree, "server/"):
        if re.match("core/(?!base/)|client/(?!cli/)|tests/", header):
            yield f'{where}; server/ sees "softlookup/...", "core/base/..." and "client/cli/..." only'


# What each folder of server/ may include beside itself; "." are the files of server/ in no folder.
SERVER_EDGES = {
    "base": (),
    "limits": (),
    "cluster": ("base",),
    "observability": ("base",),
    "security": ("limits", "observability", "base"),
    "rpc": ("security", "limits", "observability", "base"),
    "admin": ("rpc", "base"),
    "router": ("rpc", "cluster", "security", "limits", "observability", "base"),
    ".": ("admin", "router", "cluster", "rpc", "security", "limits", "observability", "base"),
}


@rule(bad=[{"server/rpc/a.cc": '#include "server/admin/b.h"'},
           {"server/base/a.h": '#include "server/rpc/b.h"'},
           {"server/limits/a.cc": '#include "server/b.h"'},
           {"server/new/a.h": ""}],
      near=[{"server/admin/a.cc": '#include "server/admin/b.h"\n#include "server/rpc/b.h"'},
            {"server/a.cc": '#include "server/admin/b.h"\n#include "server/b.h"'},
            {"server/new/postinst": "", "tests/server/base/a_test.cc": '#include "server/rpc/b.h"'}])
def server_has_one_direction_of_includes(tree):
    def folder_of(path):
        return path.split("/")[1] if path.count("/") > 1 else "."

    for path in tree:
        if path.startswith("server/") and path.endswith((".cc", ".h")) and folder_of(path) not in SERVER_EDGES:
            yield f"{path}: server/{folder_of(path)} has no line in SERVER_EDGES"
    for path, where, header in includes(tree, "server/"):
        folder = folder_of(path)
        if header.startswith("server/") and folder_of(header) not in (folder, *SERVER_EDGES.get(folder, ())):
            yield f"{where}; server/{folder} may not"


@rule(bad=[{"client/cpp/a.cc": '#include "core/base/error.h"'},
           {"client/tool/a.cc": '#include "server/flags.h"'},
           {"client/cpp/a.cc": '#include "softlookup/engine.h"',
            "core/include/softlookup/engine.h": ""}],
      near=[{"client/cpp/a.cc": '#include "softlookup/client.h"\n#include "softlookup/v1/row.pb.h"',
             "client/cpp/include/softlookup/client.h": ""}])
def client_stands_alone(tree):
    for _, where, header in includes(tree, "client/"):
        if header.startswith(("core/", "server/", "tests/")) or f"core/include/{header}" in tree:
            yield f"{where}; client/ builds without core/ and server/"


# What each folder of client/ may include besides itself and the public headers of the library.
CLIENT_EDGES = {"cli": (), "cpp": (), "output": ("cli",), "plot": ("output",),
                "loadtest": ("cli", "cpp", "output", "plot"),
                "recall": ("cpp", "output", "plot"), "python": (),
                "console": ("cli", "cpp", "output", "recall"),
                "tool": ("cli", "cpp", "output", "plot", "loadtest", "recall", "console")}


@rule(bad=[{"CMakeLists.txt": "add_subdirectory(client)\n", "docker/Dockerfile": "COPY core /src/core\n"}],
      near=[{"CMakeLists.txt": "add_subdirectory(client)\n  add_subdirectory(tests)\n",
             "docker/Dockerfile": "COPY client /src/client\n"}])
def the_image_is_built_of_all_that_cmake_reads(tree):
    dockerfile = tree.get("docker/Dockerfile", "")
    for folder in re.findall(r"add_subdirectory\((\w+)\)", tree.get("CMakeLists.txt", "")):
        if folder != "tests" and f"COPY {folder} /src/{folder}\n" not in dockerfile:
            yield f"docker/Dockerfile: does not copy {folder}/"


@rule(bad=[{"client/plot/a.cc": '#include "client/tool/exit_code.h"'},
           {"client/loadtest/a.cc": '#include "client/tool/exit_code.h"'},
           {"client/b/a.cc": ""}],
      near=[{"client/tool/a.cc": '#include "client/plot/chart.h"\n#include "client/tool/exit_code.h"'}])
def client_has_one_direction_of_includes(tree):
    for path in tree:
        if path.startswith("client/") and path.count("/") > 1 and path.split("/")[1] not in CLIENT_EDGES:
            yield f"{path}: client/{path.split('/')[1]} has no line in CLIENT_EDGES"
    for path, where, header in includes(tree, "client/"):
        folder = path.split("/")[1]
        if header.startswith("client/") and header.split("/")[1] not in (folder, *CLIENT_EDGES.get(folder, ())):
            yield f"{where}; client/{folder} may not"


@rule(bad=[{"core/base/a.h": "#pragma once\n"},
           {"core/base/a.h": "#ifndef SOFTLOOKUP_CORE_A_H_\n#define SOFTLOOKUP_CORE_A_H_\n"
                             "#endif  // SOFTLOOKUP_CORE_A_H_\n"},
           {"server/a.h": "#ifndef SOFTLOOKUP_SERVER_A_H_\n#define SOFTLOOKUP_SERVER_B_H_\n"
                          "#endif  // SOFTLOOKUP_SERVER_A_H_\n"},
           {"server/a.h": "#ifndef SOFTLOOKUP_SERVER_A_H_\n#define SOFTLOOKUP_SERVER_A_H_\n"}],
      near=[{"client/cpp/include/softlookup/a.h": "// Free.\n#ifndef SOFTLOOKUP_A_H_\n"
                                              "#define SOFTLOOKUP_A_H_\n"
                                              "#endif  // SOFTLOOKUP_A_H_\n"}])
def headers_are_guarded_by_their_path(tree):
    for path, text in tree.items():
        if not path.endswith(".h"):
            continue
        # An installed header is named as others include it.
        name = path.removeprefix("client/cpp/include/softlookup/")
        guard = "SOFTLOOKUP_" + re.sub(r"\W", "_", name).upper() + "_"
        opening = f"#ifndef {guard}\n#define {guard}\n"
        if path.endswith("-inl.h"):  # Compiled once a target; see hwy/foreach_target.h.
            opening = f"#if defined({guard}) == defined(HWY_TARGET_TOGGLE)\n"
        code = re.sub(r"\A(//.*\n|\s)*", "", text)
        if not code.startswith(opening) or not text.endswith(f"#endif  // {guard}\n"):
            yield f"{path}: stands outside of the guard {guard}"


@rule(bad=[{"tests/a_test.cc": "absl::SleepFor(absl::Seconds(1));"},
           {"tests/a_test.cc": "std::this_thread::sleep_for(1s);"},
           {"tests/a_test.cc": "usleep (10);"},
           {"tests/a_test.py": "time.sleep(1)"},
           {"tests/a_test.sh": "start &\n  sleep 1\n"}],
      near=[{"tests/a_test.cc": "// It would sleep.", "client/a.cc": "absl::SleepFor(delay);"}])
def tests_do_not_sleep(tree):
    calls = re.compile(r"\b(?:u|nano)?sleep\s*\(|\bsleep_(?:for|until)\b|\bSleepFor\b"
                       r"|^\s*sleep\s+\d", re.MULTILINE)
    for path, text in tree.items():
        if path.startswith("tests/") and path != THIS_FILE:
            for call in calls.findall(text):
                yield f"{path}: {call.strip()}; wait for what is awaited"


@rule(bad=[{"core/base/a.cc": "", "core/base/CMakeLists.txt": "add_library(x b.cc)"},
           {"core/base/a.h": "", "core/base/CMakeLists.txt": ""},
           {"core/base/a.cc": "", "server/CMakeLists.txt": "add_library(x a.cc)"},
           {"tests/testing/a.h": "", "tests/core/a_test.cc": "", "tests/CMakeLists.txt":
            "softlookup_test(a_test SOURCES core/a_test.cc)"}],
      near=[{"core/base/a.cc": "", "core/CMakeLists.txt": "add_library(x base/a.cc base/a.h)",
             "core/base/a.h": ""},
            {"tests/testing/a.h": "", "tests/core/CMakeLists.txt":
             "softlookup_test(a_test SOURCES a_test.cc ../testing/b.cc)", "tests/testing/b.cc": "",
             "tests/core/a_test.cc": '#include "tests/testing/a.h"'},
            {"tests/a_test.cc": "", "tests/CMakeLists.txt": "add(x ${name}.cc)\nx(a_test)"},
            {"tests/a.cc": "", "cmake/A.cmake": "sources(\"${PROJECT_SOURCE_DIR}/tests/a.cc\")"}])
def every_source_has_a_target(tree):
    owned = set()
    for path, text in tree.items():
        if path.endswith(("CMakeLists.txt", ".cmake")):
            # Where a function or a loop appends the ending, any word may be a source's stem.
            endings = ("", ".cc") if "}.cc" in text else ("",)
            for word in re.findall(r"[\w./-]+", text):
                # After a variable such as ${PROJECT_SOURCE_DIR} it starts with a slash.
                folder = "" if word.startswith("/") else os.path.dirname(path)
                for ending in endings:
                    owned.add(os.path.normpath(os.path.join(folder, word.lstrip("/") + ending)))
    # Headers without a source belong to who includes them: those of the tests, and the public ones
    # of core.
    for _, _, header in includes(tree, ""):
        owned.add(header if header.startswith("tests/") else f"core/include/{header}")
    for path in tree:
        if path.endswith((".cc", ".h")) and path not in owned:
            yield f"{path}: belongs to no target"


@rule(bad=[{"core/base/utils.h": ""}, {"scripts/util.py": ""}],
      near=[{"core/base/matrix_view.h": "", "core/base/utility_function.h": ""}])
def files_are_named_for_what_they_hold(tree):
    for path in tree:
        if re.match(r"utils?\.", os.path.basename(path)):
            yield f"{path}: says nothing about what it holds"


@rule(bad=[{"docs/a.md": "cd /" + "home/me/src"}, {"scripts/test": "cmake -S /" + "work/main"},
           {"docker/Dockerfile": "RUN curl https://deb.debian.org/debian"},
           {"scripts/a": "npm --registry https://registry.npmjs.org"},
           {"docs/a.md": "https://pypi.org/simple"}],
      near=[{"docs/a.md": "the homework/network of /workers", "scripts/a": "apt-get install x"}])
def no_machine_and_no_registry_is_named(tree):
    for path, text in tree.items():
        for found in re.findall(r"(?<!\w)/(?:work|home)/|deb\.debian\.org|registry\.npmjs\.org"
                                r"|\bpypi\b|pythonhosted\.org", text):
            if path != THIS_FILE:
                yield f"{path}: names {found}"


@rule(bad=[{"core/store/a.h": "Mark MakeMark();"}, {"server/a.cc": "token.EndSleep(status);"},
           {"server/a.h": "bool HasRoom() const;"}],
      near=[{"core/store/a.h": "// Marks a row. A bookmark.", "core/engine/a.h": "Status CheckRoom();"}])
def retired_terms_stay_away(tree):
    """docs/glossary.md has the terms that took their places."""
    retired = re.compile(r"\b(?:Mark|MakeMark|UndoTo|EndSleep|OnSleepEnd|Tell|Way|WayFor|TakePlace"
                         r"|LookUpLater|BatchQueue|Batcher|HasRoom|NoRoom|LogFormat|LogLimiter"
                         r"|TlsIdentity|RowsHead)\b")
    for path, text in tree.items():
        if path.startswith(("core/", "server/")) and path.endswith((".cc", ".h")):
            code = re.sub(r"//.*", "", text)
            for term in retired.findall(code):
                yield f"{path}: {term}: a retired term"


@rule(bad=[{"core/store/a.h": "struct Rows {", "core/attention/b.cc": "class Rows final : Base {"}],
      near=[{"core/store/a.h": "class Rows;", "core/store/b.h": "struct Rows {",
             "client/tool/a.h": "struct Rows {"}])
def type_names_are_used_once(tree):
    """In the server's program: core/ and server/."""
    homes = {}
    for path, text in tree.items():
        if path.startswith(("core/", "server/")) and path.endswith((".cc", ".h")):
            for name in re.findall(r"^(?:class|struct|enum class) (\w+)(?: final)?(?: :| \{)", text,
                                   re.MULTILINE):
                homes.setdefault(name, []).append(path)
    for name, paths in homes.items():
        if len(paths) > 1:
            yield f"{', '.join(paths)}: {name} is the name of {len(paths)} types"


@rule(bad=[{"server/flags.cc": 'add("--a", flags.a, "' + 50 * "x" + '"\n    "' + 50 * "y" + '")'}],
      near=[{"server/flags.cc": 'add("--a,-b", flags.a, "' + 99 * "x" + '")'}])
def help_texts_are_one_short_line(tree):
    """More belongs in docs/operating.md."""
    literal = r'"(?:[^"\\]|\\.)*"'
    for path, text in tree.items():
        if path.startswith(("client/", "server/")) and path.endswith(".cc"):
            for flag, literals in re.findall(rf'(?<!Error\()"(--[\w,-]+)",[^"]*?((?:{literal}\s*)+)', text):
                help_text = "".join(part[1:-1] for part in re.findall(literal, literals))
                if len(help_text) >= 100:
                    yield f"{path}: the help of {flag} has {len(help_text)} characters"


@rule(bad=[{"docs/glossary.md": "| b | x |\n| a | x |\n"},
           {"docs/glossary.md": "".join(f"| t{i:02} | x |\n" for i in range(41))}],
      near=[{"docs/glossary.md": "| term | meaning |\n|---|---|\n| a | x |\n| b | x |\n"}])
def the_glossary_is_short_and_sorted(tree):
    lines = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", tree.get("docs/glossary.md", ""), re.MULTILINE)
    terms = [term for term in lines if term != "term"]
    if len(terms) > 40:
        yield f"docs/glossary.md: {len(terms)} terms; 40 are enough"
    if terms != sorted(terms):
        yield "docs/glossary.md: not sorted"


@rule(bad=[{"server/main.cc": "\n" * 100}], near=[{"server/main.cc": "\n" * 99}])
def main_is_short(tree):
    if tree.get("server/main.cc", "").count("\n") >= 100:
        yield "server/main.cc: 100 lines or more"


@rule(bad=[{"CMakeLists.txt": "project(softlookup VERSION 1.2.3 D", "docker/Dockerfile": "ARG VERSION=1.2.4\n"},
           {"CMakeLists.txt": "project(softlookup VERSION 1.2.3 D", "docker/Dockerfile": "ARG VERSION\n"}],
      near=[{"CMakeLists.txt": "cmake_minimum_required(VERSION 3.22)\nproject(softlookup VERSION 1.2.3 D",
             "docker/Dockerfile": "ARG VERSION=1.2.3\n"}])
def the_image_has_the_version_of_the_project(tree):
    version = re.search(r"^project\(softlookup VERSION (\S+)", tree.get("CMakeLists.txt", ""), re.MULTILINE)
    if version and f"ARG VERSION={version[1]}\n" not in tree.get("docker/Dockerfile", ""):
        yield f"docker/Dockerfile: VERSION is not {version[1]}"


def check_no_cycle(edges):
    """Raises graphlib.CycleError where folders include each other in a circle."""
    graphlib.TopologicalSorter(
        {folder: {target.split("/")[0] for target in targets} for folder, targets in edges.items()}
    ).prepare()


def read_tree(root):
    # In a worktree of Git, .git is a file, which says where the repository is.
    paths = [name for name in os.listdir(root)
             if os.path.isfile(os.path.join(root, name)) and name != ".git"]
    for folder in FOLDERS:
        for base, folders, names in os.walk(os.path.join(root, folder)):
            folders[:] = [name for name in folders if name not in ("build", "node_modules", "__pycache__")]
            paths += [os.path.relpath(os.path.join(base, name), root) for name in names]
    tree = {}
    for path in sorted(paths):
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            tree[path] = file.read()
    return tree


class TidyTest(unittest.TestCase):
    def test_this_tree_keeps_every_rule(self):
        self.assertIn("core/engine/engine.cc", TREE, "not the root of softlookup")
        for check, _, _ in RULES:
            with self.subTest(check.__name__):
                wrong = list(check(TREE))
                if wrong:
                    self.fail("\n" + "\n".join(wrong))

    def test_every_rule_catches_what_breaks_it(self):
        for check, bad, _ in RULES:
            self.assertTrue(bad, check.__name__)
            for tree in bad:
                with self.subTest(check.__name__, tree=tree):
                    self.assertTrue(list(check(tree)))

    def test_no_rule_catches_what_only_comes_near(self):
        for check, _, near in RULES:
            for tree in near:
                with self.subTest(check.__name__, tree=tree):
                    self.assertFalse(list(check(tree)))

    def test_the_allowed_includes_have_no_cycle(self):
        for edges in (CORE_EDGES, SERVER_EDGES, CLIENT_EDGES):
            check_no_cycle(edges)
        with self.assertRaises(graphlib.CycleError):
            check_no_cycle({**CORE_EDGES, "base": ("store",)})


if __name__ == "__main__":
    TREE = read_tree(sys.argv.pop(1) if len(sys.argv) > 1
                     else os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    unittest.main()
