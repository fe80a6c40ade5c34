#!/usr/bin/python3
"""Runs clang-tidy over the product.  clang_tidy.py BUILD [--jobs N]

BUILD is a build of Clang's whose libraries are compiled as one source each (CMAKE_UNITY_BUILD), such
as build/asan: then the headers of gRPC are read a dozen times instead of two hundred. Its generated
sources must exist. Tests are left out: they take four times as long as all the rest. Exit 1 for a
finding.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys


ROOT = pathlib.Path(__file__).resolve().parents[2]


def sources(build):
    for command in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(command["file"])
        relative = path.relative_to(build if path.is_relative_to(build) else ROOT)
        if relative.parts[0] in ("client", "core", "server") and "generated" not in relative.parts:
            yield path


def findings(build, path):
    # A kernel is compiled for several vector widths from one source, so one of them shows all findings.
    command = ["clang-tidy", "-p", build, f"--config-file={ROOT / '.clang-tidy'}",
               "--extra-arg=-DHWY_COMPILE_ONLY_STATIC", "--quiet", path]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    # Standard error counts what was suppressed, also where nothing is wrong.
    if ran.returncode == 0:
        return ran.stdout
    return f"{path}: clang-tidy ended with {ran.returncode}\n{ran.stdout}{ran.stderr}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    paths = sorted(sources(build), key=lambda path: "softlookup_server.dir" not in str(path))  # The largest first.
    if not paths:
        sys.exit(f"{build} has no source of the product")
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        found = [text for text in pool.map(lambda path: findings(build, path), paths) if text]
    print("".join(found), end="")
    print(f"{len(paths)} sources, {len(found)} with findings")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
