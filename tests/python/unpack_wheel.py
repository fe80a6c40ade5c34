#!/usr/bin/python3
"""Builds the wheel of the Python package, and unpacks it for the tests.  unpack_wheel.py ROOT DIRECTORY

DIRECTORY gets the wheel, and in `site` what it has.
"""
import pathlib
import shutil
import subprocess
import sys
import zipfile


def main(root: str, path: str) -> None:
    directory = pathlib.Path(path)
    shutil.rmtree(directory, ignore_errors=True)
    subprocess.run([f"{root}/client/python/build-wheel", directory], check=True)
    (wheel,) = directory.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory / "site")


if __name__ == "__main__":
    main(*sys.argv[1:])
