#!/usr/bin/python3
"""Do the operator's documents say what is?  documents_test.py SERVER ROOT

The flags of docs/operating.md against --help, the metrics of the alert rules, the dashboard and the
documents against docs/metrics.md, the alerts against their runbook. Needs python3-yaml.
"""
import glob
import os
import re
import subprocess
import sys
import unittest

import yaml

from monitoring_files import METRIC, alert_rules, dashboard, dashboard_queries, documented_metrics, read, series_of


def flags_of_help(text):
    """{flag: default} of what --help prints, "" where there is none."""
    columns = re.findall(r"^  (?:-\w,)?--([\w-]+)((?: \S+)*)", text, re.MULTILINE)
    return {name: kind.rpartition("=")[2] if "=" in kind else "" for name, kind in columns}


def flags_of_table(text):
    """The same of the rows "| `--flag` | default | ..."."""
    rows = re.findall(r"^\| `--([\w-]+)` \|([^|]*)\|", text, re.MULTILINE)
    return {name: cell.strip().strip("`") for name, cell in rows}


class FlagsTest(unittest.TestCase):
    def setUp(self):
        # Without SOFTLOOKUP_ variables, which would stand as defaults.
        answer = subprocess.run([SERVER, "--help"], env={}, check=True, capture_output=True, text=True, timeout=60)
        self.flags = flags_of_help(answer.stdout)

    def test_the_table_has_every_flag_with_its_default(self):
        self.assertEqual(self.flags.get("listen"), "127.0.0.1:7471", "--help was not understood")
        table = flags_of_table(read(ROOT, "docs/operating.md"))
        wrong = [f"| `--{flag}` | `{default}` | is missing" for flag, default in self.flags.items()
                 if flag not in table]
        wrong += [f"--{flag} is in the table, but no flag" for flag in table if flag not in self.flags]
        wrong += [f"--{flag} has the default {self.flags[flag]!r}, the table says {default!r}"
                  for flag, default in table.items() if self.flags.get(flag, default) != default]
        if wrong:
            self.fail("docs/operating.md:\n" + "\n".join(wrong))

    def test_the_service_is_configured_by_flags_that_there_are(self):
        names = re.findall(r'^#?([\w-]+)="', read(ROOT, "server/package/softlookup.conf"), re.MULTILINE)
        self.assertIn("data-dir", names)
        self.assertLessEqual(set(names), self.flags.keys())


class MetricsTest(unittest.TestCase):
    def setUp(self):
        self.metrics = documented_metrics(ROOT)
        self.assertIn("softlookup_calls_total", self.metrics)

    def test_every_query_asks_for_series_that_there_are(self):
        queries = [*dashboard_queries(ROOT), *((rule["alert"], rule["expr"]) for rule in alert_rules(ROOT))]
        self.assertGreater(len(queries), 40)
        for where, query in queries:
            # Outside of strings, which have values of labels.
            for name in re.findall(METRIC, re.sub(r'"[^"]*"', '""', query)):
                with self.subTest(where, name=name):
                    self.assertIn(name, series_of(self.metrics))

    def test_every_metric_is_on_the_dashboard_or_in_an_alert(self):
        asked = " ".join([query for _, query in dashboard_queries(ROOT)] + [rule["expr"] for rule in alert_rules(ROOT)])
        unused = [name for name in self.metrics if not re.search(rf"\b{name}(_bucket|_sum|_count)?\b", asked)]
        self.assertEqual(unused, [])

    def test_every_metric_that_a_document_names_there_is(self):
        known = {*self.metrics, *series_of(self.metrics)}
        paths = ["README.md", "docker/prometheus/alerts_test.yml",
                 *(os.path.relpath(path, ROOT) for path in glob.glob(os.path.join(ROOT, "docs/*.md")))]
        for path in paths:
            for name in re.findall(r"`(softlookup_[a-z0-9_]+)", read(ROOT, path)) if path.endswith(".md") else \
                    re.findall(rf"series: '({METRIC})", read(ROOT, path)):
                with self.subTest(path, name=name):
                    self.assertIn(name, known)


class AlertsTest(unittest.TestCase):
    def test_every_alert_has_a_section_that_says_what_to_do_and_a_test(self):
        headings = re.findall(r"^#+ (\w+)$", read(ROOT, "docs/operating.md"), re.MULTILINE)
        tests = read(ROOT, "docker/prometheus/alerts_test.yml")
        names = [rule["alert"] for rule in alert_rules(ROOT)]
        for rule in alert_rules(ROOT):
            with self.subTest(rule["alert"]):
                self.assertIn(rule["labels"]["severity"], ("info", "warning", "critical"))
                self.assertEqual(rule["annotations"]["runbook"], f"docs/operating.md#{rule['alert'].lower()}")
                self.assertIn(rule["alert"], headings)
                self.assertRegex(tests, rf"alertname: {rule['alert']}\n +exp_alerts:")
        self.assertEqual([heading for heading in headings if heading.startswith("Softlookup")], names)


class HardeningTest(unittest.TestCase):
    """What nobody would miss on the day that it is lost."""

    def test_no_container_may_more_than_it_needs(self):
        services = yaml.safe_load(read(ROOT, "docker/compose.yaml"))["services"]
        self.assertEqual(services.keys(), {"certificates", "identities", "softlookup", "prometheus", "grafana",
                                           "loadtest", "tool"})
        for name, service in services.items():
            with self.subTest(name):
                self.assertTrue(service["read_only"])
                self.assertEqual(service["cap_drop"], ["ALL"])
                self.assertEqual(service["security_opt"], ["no-new-privileges:true"])
                self.assertTrue(service["mem_limit"] and service["pids_limit"])
                for port in service.get("ports", ()):
                    self.assertTrue(port.startswith("127.0.0.1:"), port)

    def test_no_container_of_the_cluster_may_more_than_it_needs(self):
        compose = yaml.safe_load(read(ROOT, "docker/cluster.compose.yaml"))
        services = compose["services"]
        setup = {"certificates", "identities", "etcd-certificates", "node-certificates"}
        self.assertEqual(services.keys(), setup | {"etcd1", "etcd2", "etcd3", "n1", "n2", "n3", "join-n2", "join-n3",
                                                   "router", "tool"})
        self.assertTrue(compose["networks"]["inside"]["internal"])
        for name, service in services.items():
            with self.subTest(name):
                self.assertTrue(service["read_only"])
                self.assertEqual(service["cap_drop"], ["ALL"])
                self.assertEqual(service["security_opt"], ["no-new-privileges:true"])
                self.assertTrue(service["mem_limit"] and service["pids_limit"])
                # Only the router is reached from outside, and clients reach nothing else.
                self.assertEqual("ports" in service, name == "router")
                networks = None if name in setup else {"router": ["inside", "outside"]}.get(
                    name, ["inside"] if re.fullmatch(r"(etcd|n)\d", name) else ["outside"])
                self.assertEqual(service.get("networks"), networks)
                if name in setup:
                    self.assertEqual(service["network_mode"], "none")
                    self.assertIn("--if-missing", service["entrypoint"])
                # Only the setup writes certificates and identities.
                for volume in service.get("volumes", ()):
                    if "identity:" in volume:
                        self.assertEqual(volume.endswith(":ro"), name not in setup, volume)
        self.assertTrue(all(port.startswith("127.0.0.1:") for port in services["router"]["ports"]))

    def test_the_cluster_speaks_tls_on_every_link(self):
        services = yaml.safe_load(read(ROOT, "docker/cluster.compose.yaml"))["services"]
        for name in ("etcd1", "etcd2", "etcd3"):
            environment = services[name]["environment"]
            self.assertEqual((environment["ETCD_CLIENT_CERT_AUTH"], environment["ETCD_PEER_CLIENT_CERT_AUTH"]),
                             ("true", "true"))
            self.assertNotIn("http://", " ".join(environment.values()))
        for name in ("n1", "n2", "n3", "router"):
            environment = services[name]["environment"]
            for link in ("CLUSTER_ETCD", "CLUSTER"):
                for file in ("CA", "CERTIFICATE", "KEY"):
                    self.assertTrue(environment[f"SOFTLOOKUP_{link}_{file}"].startswith("/"))
            self.assertEqual(environment["SOFTLOOKUP_AUTH"], "/identity/auth.json")
        for name in ("TLS_CERTIFICATE", "TLS_KEY", "AUDIT_LOG"):
            self.assertTrue(services["router"]["environment"][f"SOFTLOOKUP_{name}"].startswith("/"), name)
        # A certificate names each host by which others know its service.
        for step, hosts in (("etcd-certificates", ["etcd1", "etcd2", "etcd3"]), ("node-certificates", ["n1", "n2", "n3"]),
                            ("certificates", ["router"])):
            command = services[step]["entrypoint"]
            self.assertEqual([command[at + 1] for at, one in enumerate(command) if one == "--host"], hosts)

    def test_nothing_is_served_to_strangers_without_tls_and_identities(self):
        services = yaml.safe_load(read(ROOT, "docker/compose.yaml"))["services"]
        for name in ("TLS_CERTIFICATE", "TLS_KEY", "AUTH", "AUDIT_LOG"):
            self.assertTrue(services["softlookup"]["environment"][f"SOFTLOOKUP_{name}"].startswith("/"), name)
        for path in ("docker/Dockerfile", "docker/compose.yaml", "server/package/softlookup.conf",
                     "examples/kubernetes/softlookup.yaml", "docker/cluster.compose.yaml",
                     "examples/kubernetes/cluster.yaml"):
            self.assertNotRegex(read(ROOT, path), r"(?m)^[^#\n]*(SOFTLOOKUP_INSECURE|\binsecure=)", path)
        # Only the setup writes certificates and identities, and it has no network.
        for name, service in services.items():
            if any(volume.startswith("identity:") for volume in service.get("volumes", ())):
                writes = "identity:/identity" in service["volumes"]
                self.assertEqual(writes, name in ("certificates", "identities"), name)
                if writes:
                    self.assertEqual(service["network_mode"], "none")

    def test_the_setup_keeps_what_is_there_and_makes_what_the_others_read(self):
        services = yaml.safe_load(read(ROOT, "docker/compose.yaml"))["services"]
        certificates, identities = (services[name]["entrypoint"] for name in ("certificates", "identities"))
        for command in (certificates, identities):
            self.assertIn("--if-missing", command)
        folder = certificates[certificates.index("init") + 1]
        token = identities[identities.index("--token-out") + 1]
        environment = services["softlookup"]["environment"]
        self.assertEqual(environment["SOFTLOOKUP_AUTH"], identities[identities.index("add") + 1])
        for name, file in (("CERTIFICATE", "server.pem"), ("KEY", "server-key.pem"), ("CA", "ca.pem")):
            self.assertEqual(environment[f"SOFTLOOKUP_TLS_{name}"], f"{folder}/{file}")
        for client in ("tool", "loadtest"):
            environment = services[client]["environment"]
            self.assertEqual(environment["SOFTLOOKUP_TOKEN_FILE"], token)
            # A name that the server's certificate gets.
            self.assertEqual(environment["SOFTLOOKUP_SERVER"].split(":")[0],
                             certificates[certificates.index("--host") + 1])

    def test_the_service_may_not_more_than_it_needs_and_has_time_to_stop(self):
        unit = read(ROOT, "server/package/softlookup.service")
        for line in ("User=softlookup", "NoNewPrivileges=yes", "CapabilityBoundingSet=", "ProtectSystem=strict",
                     "MemoryDenyWriteExecute=yes", "PrivateUsers=yes", "Restart=on-failure", "UMask=0077",
                     "MemoryMax=80%", "StateDirectoryMode=0700", "LogsDirectoryMode=0700",
                     "ExecReload=/bin/kill -HUP $MAINPID"):
            self.assertIn(f"\n{line}\n", unit)
        minutes = int(re.search(r"\nTimeoutStopSec=(\d+)min\n", unit)[1])
        grace = flags_of_table(read(ROOT, "docs/operating.md"))["shutdown-grace"]
        self.assertGreater(60 * minutes, 2 * float(grace))


class DashboardTest(unittest.TestCase):
    def test_its_panels_are_complete_and_do_not_overlap(self):
        board = dashboard(ROOT)
        self.assertEqual(len({panel["id"] for panel in board["panels"]}), len(board["panels"]))
        variables = {one["name"] for one in board["templating"]["list"]}
        taken = set()
        for panel in board["panels"]:
            with self.subTest(panel["title"]):
                place = panel["gridPos"]
                self.assertLessEqual(place["x"] + place["w"], 24)
                cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                         for y in range(place["y"], place["y"] + place["h"])}
                self.assertFalse(cells & taken)
                taken |= cells
                if panel["type"] == "row":
                    continue
                self.assertTrue(panel["targets"])
                self.assertEqual(panel["datasource"], {"type": "prometheus", "uid": "${datasource}"})
                for target in panel["targets"]:
                    used = set(re.findall(r"\$(\w+)", target["expr"])) - {"__rate_interval"}
                    self.assertLessEqual(used, variables)


if __name__ == "__main__":
    SERVER, ROOT = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
