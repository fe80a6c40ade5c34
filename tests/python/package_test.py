#!/usr/bin/python3
"""Are the wheel and the .deb whole, and what do they do where they are installed?
package_test.py SERVER ROOT TOOL
"""
import sys
import zipfile

import softlookup
from installed import SITE, InstalledTest
from subject import ROOT, local_server, main


class PackageTest(InstalledTest):
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
