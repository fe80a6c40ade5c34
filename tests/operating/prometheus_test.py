#!/usr/bin/python3
"""Does the real Prometheus take our rules, and what the server tells?  prometheus_test.py SERVER ROOT

promtool on docker/prometheus, then Prometheus itself with that configuration, the target replaced:
it scrapes a server, loads the rules and answers every query of the dashboard. Needs python3-yaml
and prometheus.
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
    for _ in range(SECONDS * 10):
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
        cls.server = subprocess.Popen(
            [SERVER, "--ephemeral", "--listen=127.0.0.1:0", "--http-listen=127.0.0.1:0", "--log-level=warning"],
            stdout=subprocess.PIPE, text=True)
        cls.addClassCleanup(cls.stop, cls.server)
        cls.target = re.search(r"http=(\S+)", cls.server.stdout.readline())[1]

        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        shutil.copytree(os.path.join(ROOT, "docker/prometheus"), directory.name, dirs_exist_ok=True)
        path = os.path.join(directory.name, "prometheus.yml")
        with open(path, encoding="utf-8") as file:
            config = yaml.safe_load(file)
        config["scrape_configs"][0]["static_configs"][0]["targets"] = [cls.target]
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

    def test_it_scrapes_the_server_and_finds_every_metric(self):
        wait_until(lambda: self.value("up") is not None)
        targets = self.ask("targets")["activeTargets"]
        self.assertEqual([target["health"] for target in targets], ["up"], targets[0]["lastError"])
        wait_until(lambda: self.value("softlookup_ready") == 1)
        kept = set(self.ask("label/__name__/values"))
        # A family with labels that nothing has had yet has no series.
        missing = {name for name in series_of(documented_metrics(ROOT)) if name not in kept}
        self.assertLessEqual(missing, {"softlookup_calls_total", "softlookup_rejected_total"}
                             | {f"softlookup_call_duration_seconds{end}" for end in ("_bucket", "_sum", "_count")}
                             | {"softlookup_calls_in_progress"})

    def test_it_loads_the_rules_and_answers_every_query_of_the_dashboard(self):
        wait_until(lambda: self.ask("rules"))
        rules = [rule for group in self.ask("rules")["groups"] for rule in group["rules"]]
        self.assertEqual([rule["name"] for rule in rules], [rule["alert"] for rule in alert_rules(ROOT)])
        self.assertEqual([rule["lastError"] for rule in rules if rule.get("lastError")], [])
        for where, query in dashboard_queries(ROOT):
            with self.subTest(where, query=query):
                self.assertIsNotNone(self.ask("query", query=query))


if __name__ == "__main__":
    SERVER, ROOT = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
