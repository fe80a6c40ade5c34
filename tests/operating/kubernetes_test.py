#!/usr/bin/python3
"""Is examples/kubernetes/softlookup.yaml whole, and as restricted as it says?  kubernetes_test.py SERVER ROOT

A rule is a function from the file's objects to a line for everything that is wrong in them. Each is declared
with changes that break it, so a rule that stops working fails as well. They are ours, made after the
published schemas and Kubernetes' pod security standard "restricted"; no cluster is asked. Without SERVER
("") flags are not compared. Needs python3-yaml.
"""
import copy
import os
import re
import subprocess
import sys
import unittest

import yaml

import kubernetes_schema
from kubernetes_schema import binary, of_kind, rights_beyond_restricted

SERVER, ROOT = sys.argv[1:3]
RULES = []


def rule(*broken):
    """Registers a rule. Each of `broken` changes the objects, by name, so that the rule must find it."""
    def register(check):
        RULES.append((check, broken))
        return check
    return register


def stateful_set(objects):
    return of_kind(objects, "StatefulSet")[0]["spec"]


def pod(objects):
    return stateful_set(objects)["template"]["spec"]


def server(objects):
    return pod(objects)["containers"][0]


def environment(objects):
    return {one["name"]: one["value"] for one in server(objects)["env"]}


def set_variable(objects, name, value):
    next(one for one in server(objects)["env"] if one["name"] == name)["value"] = value


@rule(lambda o: o[0].pop("apiVersion"), lambda o: o[1].pop("kind"), lambda o: o[0]["metadata"].pop("name"),
      lambda o: o[3].update(apiVersion="apps/v1beta1"), lambda o: o[3].update(kind="Statefulset"),
      lambda o: o[3].update(extra=1), lambda o: server(o).update(livenessprobe={}),
      lambda o: server(o)["securityContext"].update(allowPrivilegeEscalation="no"),
      lambda o: server(o)["env"][0].pop("value"), lambda o: server(o)["env"][0].update(value=7471),
      lambda o: server(o)["ports"][0].update(protocol="tcp"), lambda o: stateful_set(o).update(replicas=True),
      lambda o: pod(o).update(containers={}), lambda o: o[1]["spec"].pop("selector"))
def objects_have_the_fields_of_their_kind(objects):
    yield from kubernetes_schema.objects_have_the_fields_of_their_kind(objects)


@rule(lambda o: o[1]["metadata"].update(name="Softlookup"), lambda o: o[1]["metadata"].pop("namespace"),
      lambda o: o[1]["metadata"].update(namespace="default"), lambda o: o.append(copy.deepcopy(o[1])))
def names_are_legal_and_in_the_namespace_and_unique(objects):
    yield from kubernetes_schema.names_are_legal_and_in_the_namespace_and_unique(objects)


@rule(lambda o: o[1]["spec"].update(selector={"app": "other"}), lambda o: o[1]["spec"].update(selector={}),
      lambda o: stateful_set(o)["template"]["metadata"].update(labels={"app": "other"}),
      lambda o: stateful_set(o)["selector"]["matchLabels"].update(more="1"),
      lambda o: of_kind(o, "NetworkPolicy")[0]["spec"]["podSelector"]["matchLabels"].update(more="1"),
      lambda o: of_kind(o, "PodDisruptionBudget")[0]["spec"]["selector"].pop("matchLabels"),
      lambda o: stateful_set(o).update(serviceName="softlookup"), lambda o: stateful_set(o).update(serviceName="no"))
def selectors_select_the_pod(objects):
    labels = stateful_set(objects)["template"]["metadata"]["labels"]
    for one in objects:
        spec = one.get("spec", {})
        for selector in (spec.get("selector"), spec.get("podSelector")):
            wanted = (selector or {}).get("matchLabels", {}) if one["kind"] != "Service" else selector
            if selector is not None and not (wanted and wanted.items() <= labels.items()):
                yield f"{one['kind']} {one['metadata']['name']}: selects {wanted}, the pod has {labels}"
    headless = [one["metadata"]["name"] for one in of_kind(objects, "Service") if one["spec"].get("clusterIP") == "None"]
    if stateful_set(objects)["serviceName"] not in headless:
        yield "the StatefulSet's serviceName names no headless Service"


@rule(lambda o: o[1]["spec"]["ports"][0].update(targetPort="rpc"), lambda o: server(o)["ports"][0].update(name="rpc"),
      lambda o: o[1]["spec"]["ports"][0].update(targetPort=7470),
      lambda o: server(o)["livenessProbe"]["httpGet"].update(port="metrics"),
      lambda o: server(o)["readinessProbe"]["httpGet"].update(port="grpc"),
      lambda o: of_kind(o, "NetworkPolicy")[0]["spec"]["ingress"][0]["ports"][0].update(port=1),
      lambda o: set_variable(o, "SOFTLOOKUP_LISTEN", "0.0.0.0:7470"))
def ports_are_those_of_the_container(objects):
    ports = {one["name"]: one["containerPort"] for one in server(objects)["ports"]}
    used = [(f"Service {one['metadata']['name']}", port["targetPort"])
            for one in of_kind(objects, "Service") for port in one["spec"]["ports"]]
    used += [("NetworkPolicy", port["port"]) for one in of_kind(objects, "NetworkPolicy")
             for way in (*one["spec"].get("ingress", ()), *one["spec"].get("egress", ()))
             for port in way.get("ports", ())]
    for where, port in used:
        if port not in ports and port not in ports.values():
            yield f"{where}: no port {port} of the container"
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        if server(objects)[probe]["httpGet"]["port"] != "http":
            yield f"{probe}: health is on the port http"
    for name, variable in (("grpc", "SOFTLOOKUP_LISTEN"), ("http", "SOFTLOOKUP_HTTP_LISTEN")):
        if not environment(objects)[variable].endswith(f":{ports.get(name)}"):
            yield f"{variable} is not the port {name}"


@rule(lambda o: server(o)["volumeMounts"].pop(0), lambda o: pod(o)["volumes"].pop(),
      lambda o: server(o)["volumeMounts"][1].update(name="other"), lambda o: server(o)["volumeMounts"][1].pop("readOnly"),
      lambda o: server(o)["volumeMounts"][1].update(mountPath="/data"),
      lambda o: pod(o)["volumes"][0]["secret"].update(defaultMode=0o444),
      lambda o: pod(o)["volumes"][0]["secret"]["items"].pop(),
      lambda o: set_variable(o, "SOFTLOOKUP_TLS_KEY", "/identity/tls/server-key.pem"),
      lambda o: set_variable(o, "SOFTLOOKUP_AUDIT_LOG", "/var/audit.log"),
      lambda o: set_variable(o, "SOFTLOOKUP_DATA_DIR", "/data"))
def files_are_on_volumes_that_are_mounted(objects):
    mounts = {one["name"]: one for one in server(objects)["volumeMounts"]}
    secrets = {one["name"]: one["secret"] for one in pod(objects)["volumes"]}
    claims = {one["metadata"]["name"] for one in stateful_set(objects)["volumeClaimTemplates"]}
    yield from (f"{name}: mounted and no volume, or the other way round" for name in mounts.keys() ^ (secrets.keys() | claims))
    if len({one["mountPath"] for one in mounts.values()}) != len(mounts):
        yield "two volumes are mounted in one place"
    files = set()
    for name in secrets.keys() & mounts.keys():
        if not mounts[name].get("readOnly"):
            yield f"{name}: a Secret that is mounted to be written"
        if secrets[name].get("defaultMode", 0o644) & 0o337:
            yield f"{name}: a Secret that others than its group can read"
        files |= {f"{mounts[name]['mountPath']}/{item['path']}" for item in secrets[name]["items"]}
    for name, value in environment(objects).items():
        if re.search("TLS|AUTH$", name) and value not in files:
            yield f"{name}: no Secret has {value}"
        # Not the volume's root itself: the data directory has nothing else in it.
        if re.search("DIR$|AUDIT", name) and not any(
                value.startswith(mounts[claim]["mountPath"] + "/") for claim in claims & mounts.keys()):
            yield f"{name}: {value} is on no claimed volume"


@rule(lambda o: o[0]["metadata"].pop("labels"), lambda o: pod(o).update(hostNetwork=True),
      lambda o: pod(o).pop("automountServiceAccountToken"), lambda o: pod(o)["securityContext"].update(runAsNonRoot=False),
      lambda o: pod(o)["securityContext"].update(runAsUser=0), lambda o: pod(o)["securityContext"].pop("seccompProfile"),
      lambda o: pod(o)["volumes"].append({"name": "host", "hostPath": {"path": "/"}}),
      lambda o: server(o)["securityContext"].pop("allowPrivilegeEscalation"),
      lambda o: server(o)["securityContext"].update(privileged=True),
      lambda o: server(o)["securityContext"].update(readOnlyRootFilesystem=False),
      lambda o: server(o)["securityContext"].update(runAsUser=0),
      lambda o: server(o)["securityContext"]["capabilities"].update(drop=["NET_RAW"]),
      lambda o: server(o)["securityContext"]["capabilities"].update(add=["NET_ADMIN"]),
      lambda o: server(o)["securityContext"].update(seccompProfile={"type": "Unconfined"}),
      lambda o: pod(o).update(initContainers=[{"name": "a", "securityContext": {}}]))
def the_pod_is_restricted(objects):
    for one in of_kind(objects, "Namespace"):
        if one["metadata"].get("labels", {}).get("pod-security.kubernetes.io/enforce") != "restricted":
            yield "the namespace does not enforce it"
    yield from rights_beyond_restricted(pod(objects))


@rule(lambda o: of_kind(o, "NetworkPolicy")[0]["spec"].update(policyTypes=["Ingress"]),
      lambda o: of_kind(o, "NetworkPolicy")[0]["spec"]["ingress"].append({}),
      lambda o: of_kind(o, "NetworkPolicy")[0]["spec"]["ingress"][0].pop("ports"),
      lambda o: of_kind(o, "NetworkPolicy")[0]["spec"]["ingress"][0]["from"].append({"podSelector": {}}),
      lambda o: of_kind(o, "NetworkPolicy")[0]["spec"]["ingress"][0]["from"][0].pop("podSelector"),
      lambda o: of_kind(o, "NetworkPolicy")[0]["spec"]["ingress"][1]["from"][0].pop("namespaceSelector"),
      lambda o: of_kind(o, "NetworkPolicy")[0]["spec"]["egress"].append({}),
      lambda o: o.remove(of_kind(o, "NetworkPolicy")[0]), lambda o: o[1]["spec"].update(type="LoadBalancer"),
      lambda o: o[1]["spec"]["ports"].append({"name": "http", "port": 7472, "targetPort": "http"}))
def the_network_is_closed_but_for_clients_and_prometheus(objects):
    policies = [one["spec"] for one in of_kind(objects, "NetworkPolicy")]
    if len(policies) != 1 or policies[0].get("policyTypes") != ["Ingress", "Egress"] or policies[0].get("egress"):
        yield "the pod is not closed in both directions"
    for way in (way for policy in policies for way in policy["ingress"]):
        ports = {port["port"] for port in way.get("ports", ())}
        if not way.get("from") or len(ports) != 1:
            yield "a way in for all, or to all ports"
        for peer in way.get("from", ()):
            space, pods = (peer.get(name, {}).get("matchLabels") for name in ("namespaceSelector", "podSelector"))
            if ports == {"http"} and space != {"kubernetes.io/metadata.name": "monitoring"}:
                yield f"metrics for {peer}"
            if ports == {"grpc"} and not (space and pods):
                yield f"gRPC for {peer}"
    for one in of_kind(objects, "Service"):
        if one["spec"].get("clusterIP") != "None" and (
                one["spec"].get("type") != "ClusterIP" or {port["name"] for port in one["spec"]["ports"]} != {"grpc"}):
            yield f"Service {one['metadata']['name']}: shows more than gRPC, or to more than the cluster"


@rule(lambda o: set_variable(o, "SOFTLOOKUP_MEMORY_LIMIT", "4GiB"), lambda o: pod(o).update(terminationGracePeriodSeconds=10),
      lambda o: server(o)["resources"].pop("limits"), lambda o: stateful_set(o).update(replicas=2),
      lambda o: server(o).update(image="softlookup:latest"), lambda o: server(o).update(image="softlookup"),
      lambda o: server(o).pop("readinessProbe"), lambda o: server(o)["readinessProbe"]["httpGet"].update(path="/healthz"),
      lambda o: server(o)["livenessProbe"]["httpGet"].update(path="/readyz"))
def it_has_room_and_time_and_the_right_probes(objects):
    limit = server(objects)["resources"].get("limits", {}).get("memory")
    if not limit or binary(environment(objects)["SOFTLOOKUP_MEMORY_LIMIT"]) > 0.75 * binary(limit):
        yield "the stores may take more than three quarters of the container's memory"
    # Its own is 10 s, and then it writes its log to tables.
    if pod(objects).get("terminationGracePeriodSeconds", 30) < 60:
        yield "it is killed before it has stopped"
    if stateful_set(objects)["replicas"] != 1:
        yield "two servers are not one with two replicas"
    if not re.search(r":\d[\w.-]*$", server(objects)["image"]):
        yield "the image's version is open"
    paths = {probe: server(objects).get(probe, {}).get("httpGet", {}).get("path")
             for probe in ("startupProbe", "readinessProbe", "livenessProbe")}
    if paths != {"startupProbe": "/healthz", "readinessProbe": "/readyz", "livenessProbe": "/healthz"}:
        yield f"probes: {paths}"


@rule(lambda o: server(o)["env"].append({"name": "SOFTLOOKUP_INSECURE", "value": "1"}),
      lambda o: server(o)["env"].pop(5), lambda o: server(o)["env"].pop(7), lambda o: server(o)["env"].pop(8),
      lambda o: o.append({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}))
def it_serves_only_identities_and_holds_no_secret(objects):
    wanted = {f"SOFTLOOKUP_{name}" for name in ("TLS_CERTIFICATE", "TLS_KEY", "TLS_CLIENT_CA", "AUTH", "AUDIT_LOG")}
    yield from (f"{name} is not set" for name in wanted - environment(objects).keys())
    if "SOFTLOOKUP_INSECURE" in environment(objects):
        yield "it is insecure"
    if of_kind(objects, "Secret"):
        yield "a Secret is in the file"


@rule(lambda o: server(o)["env"].append({"name": "SOFTLOOKUP_NO_SUCH_FLAG", "value": "1"}),
      lambda o: server(o).update(args=["--no-such-flag"]))
def variables_and_arguments_are_flags_of_the_server(objects):
    names = {name: name.removeprefix("SOFTLOOKUP_").lower().replace("_", "-") for name in environment(objects)}
    names |= {one: one[2:].partition("=")[0] for one in server(objects).get("args", ()) if one.startswith("--")}
    yield from (f"{name}: no flag of softlookup-server" for name, flag in names.items() if flag not in FLAGS)


def read_objects():
    with open(os.path.join(ROOT, "examples/kubernetes/softlookup.yaml"), encoding="utf-8") as file:
        return list(yaml.safe_load_all(file))


class KubernetesTest(unittest.TestCase):
    def test_the_file_keeps_every_rule(self):
        for check, _ in RULES:
            with self.subTest(check.__name__):
                if check is variables_and_arguments_are_flags_of_the_server and not SERVER:
                    self.skipTest("no server to compare with")
                self.assertEqual(list(check(read_objects())), [])

    def test_every_rule_catches_what_breaks_it(self):
        for check, broken in RULES:
            self.assertTrue(broken, check.__name__)
            for number, change in enumerate(broken):
                with self.subTest(check.__name__, number=number):
                    objects = read_objects()
                    change(objects)
                    try:
                        found = list(check(objects))
                    except (KeyError, TypeError) as error:  # What the rule needs is gone.
                        self.fail(f"{type(error).__name__}: {error}")
                    self.assertTrue(found)


if __name__ == "__main__":
    HELP = subprocess.run([SERVER, "--help"], env={}, check=True, capture_output=True, text=True,
                          timeout=60).stdout if SERVER else ""
    FLAGS = set(re.findall(r"^ +(?:-\w,)?--([\w-]+)", HELP, re.MULTILINE))
    unittest.main(argv=sys.argv[:1])
