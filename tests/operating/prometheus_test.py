#!/usr/bin/python3
"""Does the real Prometheus take our rules, and what the server tells?  prometheus_test.py SERVER ROOT TOOL

promtool on docker/prometheus, then Prometheus itself with that configuration, the target replaced:
it scrapes a server that is used, loads the rules and has an answer to every query of the dashboard.
Needs etcd-server, python3-yaml and prometheus.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import yaml

from monitoring_files import alert_rules, dashboard_queries, documented_metrics, series_of

SECONDS = 60  # For each thing that is awaited.


def wait_until(ready):
    """What `ready` gives once it is true."""
    pause = threading.Event()
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        result = ready()
        if result:
            return result
        pause.wait(0.1)
    raise AssertionError(f"not within {SECONDS} s")


def promtool(*arguments):
    done = subprocess.run(["promtool", *arguments], cwd=os.path.join(ROOT, "docker/prometheus"),
                          capture_output=True, text=True, timeout=SECONDS)
    return done.returncode, done.stdout + done.stderr


class PromtoolTest(unittest.TestCase):
    def test_it_accepts_the_configuration_and_the_rules(self):
        code, output = promtool("check", "config", "prometheus.yml")
        self.assertEqual(code, 0, output)
        self.assertIn(f"{len(alert_rules(ROOT))} rules found", output)

    def test_the_rules_fire_when_they_should(self):
        code, output = promtool("test", "rules", "alerts_test.yml")
        self.assertEqual(code, 0, output)


class ScrapeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        subprocess.run([TOOL, "tls", "init", os.path.join(directory.name, "tls")], capture_output=True, timeout=SECONDS,
                       check=True)
        cls.addClassCleanup(cls.stop, cls.start_etcd(directory.name))
        # The server reads at its start, and then every 30 s, whether there is a backup.
        server = cls.start_server(directory.name)
        subprocess.run([*cls.tool_of_server, "backup", "create"], capture_output=True, timeout=SECONDS, check=True)
        cls.stop(server)
        cls.addClassCleanup(cls.stop, cls.start_server(directory.name))
        cls.addClassCleanup(cls.stop, cls.start_router(directory.name))

        shutil.copytree(os.path.join(ROOT, "docker/prometheus"), directory.name, dirs_exist_ok=True)
        path = os.path.join(directory.name, "prometheus.yml")
        with open(path, encoding="utf-8") as file:
            config = yaml.safe_load(file)
        config["scrape_configs"][0]["static_configs"][0]["targets"] = [cls.target, cls.router_target]
        config["global"]["scrape_interval"] = "200ms"
        with open(path, "w", encoding="utf-8") as file:
            yaml.safe_dump(config, file)
        cls.log = os.path.join(directory.name, "log")
        with open(cls.log, "w", encoding="utf-8") as log:
            prometheus = subprocess.Popen(
                ["prometheus", "--config.file", path, "--web.listen-address=127.0.0.1:0",
                 "--storage.tsdb.path", os.path.join(directory.name, "data")], stderr=log)
        cls.addClassCleanup(cls.stop, prometheus)
        cls.prometheus = prometheus
        cls.address = wait_until(cls.listening)

    @staticmethod
    def start_etcd(directory):
        """On sockets of files, so that no other program can take its ports."""
        urls = {"client": "unix://localhost:1", "peer": "unix://localhost:101"}
        return subprocess.Popen(
            ["etcd", "--data-dir=etcd", f"--listen-client-urls={urls['client']}",
             f"--advertise-client-urls={urls['client']}", f"--listen-peer-urls={urls['peer']}",
             f"--initial-advertise-peer-urls={urls['peer']}", f"--initial-cluster=default={urls['peer']}",
             "--logger=zap", "--log-level=error"], cwd=directory, stderr=subprocess.DEVNULL)

    @classmethod
    def start_server(cls, directory):
        tls = os.path.join(directory, "tls")
        server = subprocess.Popen(
            [SERVER, "--tls-certificate", os.path.join(tls, "server.pem"),
             "--tls-key", os.path.join(tls, "server-key.pem"),
             "--data-dir", os.path.join(directory, "stores"),
             "--backup-dir", os.path.join(directory, "backups"), "--listen=127.0.0.1:0",
             "--http-listen=127.0.0.1:0", "--memory-limit=1MiB", "--log-level=error",
             f"--cluster-etcd=unix:{directory}/localhost:1", "--cluster=c", "--group=g", "--node=n",
             "--cluster-listen=127.0.0.1:0"],
            stdout=subprocess.PIPE, text=True)
        ready = server.stdout.readline()
        cls.target = re.search(r"http=(\S+)", ready)[1]
        cls.tool_of_server = [TOOL, "--server", re.search(r"grpc=(\S+)", ready)[1],
                              "--tls-ca", os.path.join(tls, "ca.pem")]
        return server

    @classmethod
    def start_router(cls, directory):
        router = subprocess.Popen(
            [SERVER, "--router", "--listen=127.0.0.1:0", "--http-listen=127.0.0.1:0", "--log-level=error",
             f"--cluster-etcd=unix:{directory}/localhost:1", "--cluster=c"], stdout=subprocess.PIPE, text=True)
        cls.router_target = re.search(r"http=(\S+)", router.stdout.readline())[1]
        return router

    @staticmethod
    def stop(process):
        process.send_signal(signal.SIGTERM)
        process.wait(SECONDS)
        if process.stdout:
            process.stdout.close()

    @classmethod
    def listening(cls):
        """Where it serves, of its log."""
        with open(cls.log, encoding="utf-8") as file:
            log = file.read()
        if cls.prometheus.poll() is not None:
            raise AssertionError(f"prometheus ended:\n{log}")
        found = re.search(r'msg="Listening on" address=(\S+)', log)
        return found and found[1]

    def tool(self, *arguments, rows=""):
        subprocess.run([*self.tool_of_server, *arguments], input=rows, capture_output=True, text=True,
                       timeout=SECONDS, check=False)

    def use_the_server(self):
        """Calls that are answered, one that fails, and one that is turned away."""
        self.tool("store", "create", "mine", "--key-dim", "256", "--value-dim", "1")
        self.tool("append", "mine", "--rows", "-", rows="1," * 256 + "1\n")
        self.tool("append", "mine", "--rows", "-", rows=("1," * 256 + "1\n") * 2000)
        self.tool("lookup", "mine", "--query", ",".join("1" * 256))
        self.tool("lookup", "absent", "--query", "1")

    def ask(self, path, **parameters):
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=SECONDS) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            return None if error.code == 503 else self.fail(f"{url}: {error.read()}")
        except urllib.error.URLError:
            return None

    def value(self, query):
        data = self.ask("query", query=query)
        return float(data["result"][0]["value"][1]) if data and data["result"] else None

    def test_it_scrapes_the_server_and_the_router_and_finds_every_metric(self):
        wait_until(lambda: self.value("sum(up)") == 2)
        targets = self.ask("targets")["activeTargets"]
        self.assertEqual([target["health"] for target in targets], ["up", "up"],
                         [target["lastError"] for target in targets])
        wait_until(lambda: self.value("sum(softlookup_ready)") == 2)
        # The server reads the figures of its disks on a thread of its own.
        wait_until(lambda: self.value("softlookup_newest_backup_time_seconds") is not None)
        kept = set(self.ask("label/__name__/values"))
        # A family with labels that nothing has had yet has no series.
        missing = {name for name in series_of(documented_metrics(ROOT)) if name not in kept}
        self.assertLessEqual(missing, {"softlookup_calls_total", "softlookup_rejected_total"}
                             | {f"softlookup_call_duration_seconds{end}" for end in ("_bucket", "_sum", "_count")}
                             | {"softlookup_calls_in_progress"})

    def test_it_loads_the_rules(self):
        wait_until(lambda: self.ask("rules"))
        rules = [rule for group in self.ask("rules")["groups"] for rule in group["rules"]]
        self.assertEqual([rule["name"] for rule in rules], [rule["alert"] for rule in alert_rules(ROOT)])
        self.assertEqual([rule["lastError"] for rule in rules if rule.get("lastError")], [])

    def test_every_panel_of_the_dashboard_shows_what_the_server_does(self):
        empty = dict(dashboard_queries(ROOT))
        for where in [where for where in empty if where.startswith("annotation")]:
            self.ask("query", query=empty.pop(where))  # They mark what seldom is.

        def all_show_something():
            for where, query in list(empty.items()):
                answer = self.ask("query", query=query)  # None while Prometheus is not ready.
                if answer and answer["result"]:
                    del empty[where]
            return not empty or self.use_the_server()

        try:
            wait_until(all_show_something)
        except AssertionError:
            self.fail("nothing to show after a minute of calls:\n" + "\n".join(map(" asks ".join, empty.items())))


if __name__ == "__main__":
    SERVER, ROOT, TOOL = sys.argv[1:4]
    unittest.main(argv=sys.argv[:1])
