#!/usr/bin/python3
"""Does docker/cluster.compose.yaml bring up a group that outlives its primary?  cluster_test.py IMAGE ETCD_IMAGE ROOT

Runs each service by its own command, environment and volumes; docker alone runs them, as no compose may be here. All are
on the host's network, each at a loopback address of its own, by which the others know its name. `scripts/test --image`
builds the images and runs this. Needs a Docker engine on this machine and python3-yaml.
"""
import json
import os
import random
import sys
import unittest

import yaml

from image_test import docker, inspect, wait_until

NAMES = ("etcd1", "etcd2", "etcd3", "n1", "n2", "n3", "router")  # Of the services that listen.
SETUP = ("etcd-certificates", "node-certificates", "certificates", "identities")
JOIN = ("join-n2", "join-n3")
TRIES = 20  # Of a step that is begun again until it succeeds.


class ClusterTest(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(ROOT, "docker/cluster.compose.yaml"), encoding="utf-8") as file:
            self.compose = yaml.safe_load(file)
        self.prefix = f"softlookup-test-{os.getpid()}"
        network = f"127.{random.randrange(1, 255)}.{random.randrange(1, 255)}"
        self.hosts = {name: f"{network}.{number}" for number, name in enumerate(NAMES, 1)}
        for volume in self.compose["volumes"]:
            docker("volume", "create", f"{self.prefix}-{volume}")
            self.addCleanup(docker, "volume", "rm", "--force", f"{self.prefix}-{volume}", check=False)
        for name in NAMES:
            self.addCleanup(docker, "rm", "--force", "--volumes", self.container(name), check=False)

    def container(self, name):
        return f"{self.prefix}-{name}"

    def variables(self, name):
        """What is not as in the file, since all services share the host's network."""
        host = self.hosts.get(name)
        if name.startswith("etcd") and host:
            return {"ETCD_LISTEN_CLIENT_URLS": f"https://{host}:2379", "ETCD_LISTEN_PEER_URLS": f"https://{host}:2380",
                    "ETCDCTL_ENDPOINTS": f"https://{name}:2379"}
        if host is None:
            return {}
        listen = {"SOFTLOOKUP_LISTEN": f"{host}:7471", "SOFTLOOKUP_HTTP_LISTEN": f"{host}:7472"}
        return listen if name == "router" else listen | {
            "SOFTLOOKUP_CLUSTER_LISTEN": f"{host}:7473", "SOFTLOOKUP_SERVER": f"{host}:7471"}

    def run_service(self, name, *arguments, detach=False, check=True):
        service = self.compose["services"][name]
        self.assertTrue(service["read_only"] and service["cap_drop"] == ["ALL"])
        environment = {**service.get("environment", {}), **self.variables(name)}
        flags = ["--read-only", "--cap-drop=ALL", "--network=host", f"--pids-limit={service['pids_limit']}",
                 *(f"--security-opt={one}" for one in service["security_opt"]),
                 *(f"--env={key}={value}" for key, value in environment.items() if not value.startswith("${")),
                 *(f"--volume={self.prefix}-{one}" for one in service.get("volumes", ())),
                 *(f"--add-host={other}:{host}" for other, host in self.hosts.items())]
        flags += ["--detach", f"--name={self.container(name)}"] if detach else ["--rm"]
        program, *first = service.get("entrypoint") or [None]
        if program:
            flags.append(f"--entrypoint={program}")
        return docker("run", *flags, {"softlookup": IMAGE, "softlookup-etcd": ETCD_IMAGE}[service["image"]], *first,
                      *arguments, check=check)

    def join(self):
        """As compose does, begins each again until it has succeeded."""
        for name in JOIN:
            for _ in range(TRIES):
                done = self.run_service(name, check=False)
                if done.returncode == 0:
                    break
            self.assertEqual(done.returncode, 0, done.stderr)

    def healthy(self, name):
        if check := self.compose["services"][name].get("healthcheck"):
            return docker("exec", self.container(name), *check["test"][1:], check=False).returncode == 0
        return inspect(self.container(name))["State"]["Health"]["Status"] == "healthy"

    def tool(self, *arguments):
        return self.run_service("tool", "-o", "json", *arguments).stdout

    def group(self):
        return json.loads(self.tool("cluster", "status"))

    def has_another_primary(self):
        done = self.run_service("tool", "-o", "json", "cluster", "status", check=False)
        return done.returncode == 0 and json.loads(done.stdout)["primary"] in ("n2", "n3")

    def test_a_group_comes_up_and_outlives_its_primary(self):
        for name in SETUP:
            self.run_service(name)
        for name in NAMES:
            self.run_service(name, detach=True)
        wait_until(lambda: self.healthy("router"))
        self.join()
        for name in NAMES:
            wait_until(lambda: self.healthy(name))  # pylint: disable=cell-var-from-loop
        self.assertEqual({one["node"] for one in self.group()["replicas"]}, {"n1", "n2", "n3"})
        self.assertEqual(self.group()["primary"], "n1")

        self.tool("store", "create", "mine", "--words", "--key-dim", "4", "--value-dim", "4")
        wait_until(lambda: self.group()["copies"] == 2)
        docker("kill", self.container("n1"))
        wait_until(self.has_another_primary)
        self.tool("store", "create", "other", "--key-dim", "2", "--value-dim", "1")

        # Another `up`: the setup changes nothing, whoever is the primary by then.
        for name in SETUP:
            self.run_service(name)
        docker("start", self.container("n1"))
        wait_until(lambda: self.healthy("n1"))
        self.join()
        self.assertTrue(self.has_another_primary())
        listed = json.loads(self.tool("store", "list"))
        self.assertEqual({one["name"] for one in listed["stores"]}, {"mine", "other"})
        for name in reversed(NAMES):
            docker("stop", "--time=50", self.container(name))
            self.assertEqual(inspect(self.container(name))["State"]["ExitCode"], 0, name)


if __name__ == "__main__":
    IMAGE, ETCD_IMAGE, ROOT = sys.argv[1:4]
    unittest.main(argv=sys.argv[:1])
