#!/usr/bin/python3
"""Is the image what docs/operating.md says?  image_test.py IMAGE ROOT

Runs it as docker/compose.yaml does: read-only, without capabilities, its data in a volume, and with the
certificates and the identity that its setup makes. Loads it from a second container, kills it in the
middle, starts it again. `scripts/test --image` builds the image and runs this. Needs a Docker engine on
this machine and python3-yaml.
"""
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import yaml

HARDENED = ("--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--pids-limit=1024",
            "--memory=2g", "--network=host")
MEGABYTES_MAX = 60
HEALTHY_SECONDS = 3
SECONDS = 60  # For each thing that is awaited.


def docker(*arguments, check=True, **options):
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=SECONDS, **options)
    if check and done.returncode != 0:
        raise AssertionError(f"docker {' '.join(arguments)}:\n{done.stdout}{done.stderr}")
    return done


def inspect(what):
    return json.loads(docker("inspect", what).stdout)[0]


def free_ports():
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def wait_until(ready):
    pause = threading.Event()
    for _ in range(SECONDS * 20):
        if ready():
            return
        pause.wait(0.05)
    raise AssertionError(f"not within {SECONDS} s")


class ImageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.image = inspect(IMAGE)

    def test_it_is_small_and_says_what_it_is(self):
        self.assertLess(self.image["Size"], MEGABYTES_MAX * 10**6)
        version = docker("run", "--rm", *HARDENED, IMAGE, "--version").stdout.split()[1]
        with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
            self.assertEqual(version, re.search(r"VERSION ([\d.]+) D", file.read())[1])
        labels = self.image["Config"]["Labels"]
        self.assertEqual(labels["org.opencontainers.image.version"], version)
        for name in ("title", "description", "licenses", "revision", "source"):
            self.assertTrue(labels[f"org.opencontainers.image.{name}"], name)

    def test_it_lists_the_packages_that_it_has(self):
        container = docker("create", IMAGE).stdout.strip()
        self.addCleanup(docker, "rm", "--force", "--volumes", container, check=False)
        with tempfile.TemporaryDirectory() as files:
            docker("cp", f"{container}:/usr/share/softlookup/sbom.spdx.json", files)
            docker("cp", f"{container}:/var/lib/dpkg/status.d", files)
            with open(os.path.join(files, "sbom.spdx.json"), encoding="utf-8") as file:
                sbom = json.load(file)
            debian = {}
            for name in os.listdir(os.path.join(files, "status.d")):
                with open(os.path.join(files, "status.d", name), encoding="utf-8") as file:
                    debian[name] = re.search(r"^Version: (.*)$", file.read(), re.MULTILINE)[1]
        self.assertEqual(sbom["spdxVersion"], "SPDX-2.3")
        ours, *others = sbom["packages"]
        self.assertEqual(ours["versionInfo"], self.image["Config"]["Labels"]["org.opencontainers.image.version"])
        self.assertEqual({one["name"]: one["versionInfo"] for one in others}, debian)
        self.assertGreater(len(debian), 10)
        self.assertEqual({one["supplier"] for one in others}, {"Organization: Debian"})
        self.assertTrue(all(one["licenseDeclared"] for one in others))
        contained = {one["relatedSpdxElement"] for one in sbom["relationships"] if one["relationshipType"] == "CONTAINS"}
        self.assertEqual(contained, {one["SPDXID"] for one in others})

    def test_it_does_not_listen_to_strangers_without_tls_and_identities(self):
        self.assertNotIn("INSECURE", " ".join(self.image["Config"]["Env"]))
        grpc, http = free_ports()
        name = f"softlookup-test-{os.getpid()}-refused"
        self.addCleanup(docker, "rm", "--force", "--volumes", name, check=False)
        docker("run", "--detach", f"--name={name}", *HARDENED, f"--env=SOFTLOOKUP_LISTEN=0.0.0.0:{grpc}",
               f"--env=SOFTLOOKUP_HTTP_LISTEN=127.0.0.1:{http}", IMAGE)
        wait_until(lambda: inspect(name)["State"]["Status"] == "exited")
        self.assertNotEqual(inspect(name)["State"]["ExitCode"], 0)
        self.assertIn("--insecure", docker("logs", name).stderr)

    def test_its_root_has_the_programs_and_no_shell(self):
        self.assertEqual(self.image["Config"]["User"], "65532:65532")
        self.assertNotEqual(docker("run", "--rm", "--entrypoint=sh", IMAGE, "-c", "true", check=False).returncode, 0)


class ServerTest(unittest.TestCase):
    def setUp(self):
        self.name = f"softlookup-test-{os.getpid()}-{self._testMethodName[:40]}"
        grpc, http = free_ports()
        self.address = f"127.0.0.1:{grpc}"
        docker("volume", "create", self.name)
        self.addCleanup(docker, "volume", "rm", "--force", self.name, check=False)
        self.addCleanup(docker, "rm", "--force", self.name, check=False)
        # The health check finds the server by the tool's own variable.
        docker("run", "--detach", f"--name={self.name}", f"--volume={self.name}:/data", *HARDENED,
               f"--env=SOFTLOOKUP_SERVER={self.address}", f"--env=SOFTLOOKUP_LISTEN={self.address}",
               f"--env=SOFTLOOKUP_HTTP_LISTEN=127.0.0.1:{http}", "--env=SOFTLOOKUP_MEMORY_LIMIT=1GiB", IMAGE)
        self.started = time.monotonic()

    def healthy(self):
        return inspect(self.name)["State"]["Health"]["Status"] == "healthy"

    def tool(self, *arguments, **options):
        """The bundled client, in a container of its own."""
        return docker("run", "--rm", "--interactive", *HARDENED, "--entrypoint=softlookup", IMAGE,
                      "--server", self.address, *arguments, **options)

    def row_count(self):
        return int(json.loads(self.tool("-o", "json", "store", "get", "mine").stdout)["row_count"])

    def test_it_is_healthy_soon_and_without_privileges(self):
        wait_until(self.healthy)
        self.assertLess(time.monotonic() - self.started, HEALTHY_SECONDS)
        with open(f"/proc/{inspect(self.name)['State']['Pid']}/status", encoding="ascii") as file:
            status = dict(line.split(":", 1) for line in file)
        self.assertEqual(status["Uid"].split(), ["65532"] * 4)
        for capabilities in ("CapPrm", "CapEff", "CapBnd"):
            self.assertEqual(int(status[capabilities], 16), 0, capabilities)
        self.assertEqual(status["NoNewPrivs"].strip(), "1")
        docker("stop", self.name)
        self.assertEqual(inspect(self.name)["State"]["ExitCode"], 0)

    def test_the_load_tester_leaves_its_report_in_a_folder(self):
        wait_until(self.healthy)
        with tempfile.TemporaryDirectory() as reports:
            done = docker("run", "--rm", *HARDENED, f"--user={os.getuid()}:{os.getgid()}",
                          f"--volume={reports}:/reports", "--entrypoint=softlookup", IMAGE, "--server", self.address, "loadtest", "--concurrency", "4",
                          "--duration", "2", "--verify", "--fail-if", "errors>0", "--report", "/reports/report.html",
                          check=False)
            # 9: whoever else uses this machine kept the client from measuring.
            self.assertIn(done.returncode, (0, 9), done.stdout + done.stderr)
            with open(os.path.join(reports, "report.html"), encoding="utf-8") as report:
                self.assertIn("</html>", report.read())

    def test_it_is_loaded_from_a_second_container_and_keeps_its_data_when_it_is_killed(self):
        wait_until(self.healthy)
        self.tool("store", "create", "mine", "--key-dim", "2", "--value-dim", "1")
        rows = "".join(f"{i % 7},{i % 5},{i % 3}\n" for i in range(20000))
        self.tool("append", "mine", "--rows", "-", "--writer", "first", input=rows)
        self.assertEqual(self.row_count(), 20000)
        before = self.tool("-o", "json", "lookup", "mine", "--query", "1,2").stdout

        # Killed while a writer is at work; what was acknowledged is there again.
        writer = threading.Thread(target=self.tool, kwargs={"input": rows * 20, "check": False}, args=(
            "append", "mine", "--rows", "-", "--writer", "second"))
        writer.start()
        wait_until(lambda: self.row_count() > 20000)
        acknowledged = self.row_count()
        docker("kill", self.name)
        docker("start", self.name)
        wait_until(self.healthy)
        writer.join(SECONDS)
        self.assertGreaterEqual(self.row_count(), acknowledged)
        after = self.tool("-o", "json", "lookup", "mine", "--query", "1,2", "--end", "20000").stdout
        self.assertEqual(json.loads(after)["answers"], json.loads(before)["answers"])


class TlsTest(unittest.TestCase):
    """The setup of docker/compose.yaml, by its own commands; docker alone runs them, as no compose may be here."""

    def setUp(self):
        with open(os.path.join(ROOT, "docker/compose.yaml"), encoding="utf-8") as file:
            self.services = yaml.safe_load(file)["services"]
        self.name = f"softlookup-test-{os.getpid()}-tls"
        for volume in ("data", "identity", "audit"):
            docker("volume", "create", f"{self.name}-{volume}")
            self.addCleanup(docker, "volume", "rm", "--force", f"{self.name}-{volume}", check=False)
        self.addCleanup(docker, "rm", "--force", self.name, check=False)
        grpc, http = free_ports()
        # On the host's network the container has no name of its own; the certificate has this one, too.
        self.address = f"localhost:{grpc}"
        self.environment = {"SOFTLOOKUP_LISTEN": f"127.0.0.1:{grpc}", "SOFTLOOKUP_HTTP_LISTEN": f"127.0.0.1:{http}",
                            "SOFTLOOKUP_SERVER": self.address, "SOFTLOOKUP_MEMORY_LIMIT": "1GiB"}

    def run_as(self, service, *arguments, options=(), check=True, without=()):
        """`docker run` of a service with its entry point, environment and volumes."""
        service = self.services[service]
        environment = {**service.get("environment", {}), **self.environment}
        flags = [f"--env={name}={value}" for name, value in environment.items() if name not in without]
        flags += [f"--volume={self.name}-{volume}" for volume in service["volumes"]]
        program, *first = service.get("entrypoint", ["/usr/bin/softlookup-server"])
        return docker("run", *HARDENED, *flags, *options, f"--entrypoint={program}", IMAGE, *first, *arguments,
                      check=check)

    def tool(self, *arguments, **options):
        return self.run_as("tool", *arguments, options=("--rm",), **options)

    def made(self):
        """What the setup made, byte for byte."""
        container = docker("create", f"--volume={self.name}-identity:/identity", IMAGE).stdout.strip()
        try:
            done = subprocess.run(["docker", "cp", f"{container}:/identity", "-"], check=True, capture_output=True,
                                  timeout=SECONDS)
            return done.stdout
        finally:
            docker("rm", "--force", "--volumes", container)

    def test_the_setup_makes_what_server_and_client_need_and_only_once(self):
        for service in ("certificates", "identities"):
            self.run_as(service, options=("--rm",))
        first = self.made()
        for service in ("certificates", "identities"):
            self.run_as(service, options=("--rm",))
        self.assertEqual(self.made(), first)

        self.run_as("softlookup", options=("--detach", f"--name={self.name}"))
        wait_until(lambda: inspect(self.name)["State"]["Health"]["Status"] == "healthy")
        self.tool("store", "create", "mine", "--key-dim", "2", "--value-dim", "1")
        listed = json.loads(self.tool("-o", "json", "store", "get", "mine").stdout)
        self.assertEqual(listed["name"], "mine")

        # Without a token, and without TLS.
        self.assertNotEqual(self.tool("store", "list", without=("SOFTLOOKUP_TOKEN_FILE",), check=False).returncode, 0)
        self.assertNotEqual(self.tool("store", "list", without=("SOFTLOOKUP_TLS_CA",), check=False).returncode, 0)
        with tempfile.TemporaryDirectory() as files:
            docker("cp", f"{self.name}:/audit/audit.log", files)
            with open(os.path.join(files, "audit.log"), encoding="utf-8") as file:
                audit = file.read()
        self.assertIn("CreateStore", audit)
        self.assertIn("operator", audit)

        docker("stop", self.name)
        self.assertEqual(inspect(self.name)["State"]["ExitCode"], 0)

    def test_the_health_check_passes_a_server_that_asks_for_a_certificate(self):
        for service in ("certificates", "identities"):
            self.run_as(service, options=("--rm",))
        self.run_as("softlookup", options=("--detach", f"--name={self.name}",
                                           "--env=SOFTLOOKUP_TLS_CLIENT_CA=/identity/tls/ca.pem"))
        wait_until(lambda: inspect(self.name)["State"]["Health"]["Status"] == "healthy")
        # A client that presents nothing ends in the handshake.
        self.assertEqual(self.tool("--timeout", "2", "health", check=False).returncode, 7)


if __name__ == "__main__":
    IMAGE, ROOT = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
