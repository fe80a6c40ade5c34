#!/usr/bin/python3
"""Do the parts of examples/kubernetes/cluster.yaml fit each other?  kubernetes_cluster_test.py SERVER ROOT

As kubernetes_test.py does, each rule is declared with changes that it must find. No cluster is asked. Needs
python3-yaml.
"""
import os
import re
import subprocess
import sys
import unittest

import yaml

import kubernetes_schema
from kubernetes_schema import binary, of_kind, rights_beyond_restricted

SERVER, ROOT = sys.argv[1:3]
SPACE = "softlookup-cluster"
COMPONENTS = {"etcd": 3, "node": 3, "router": 2}  # With their replicas.
COMPONENT = "app.kubernetes.io/component"
RULES = []

# Who reaches which port of whom.
LINKS = {("etcd", "etcd", "peer"), ("node", "etcd", "client"), ("router", "etcd", "client"),
         ("node", "node", "cluster"), ("router", "node", "cluster")}


def rule(*broken):
    """Registers a rule. Each of `broken` changes the objects so that the rule must find it."""
    def register(check):
        RULES.append((check, broken))
        return check
    return register


def workload(objects, name):
    return next(one for one in objects if one["kind"] in ("StatefulSet", "Deployment")
                and one["metadata"]["name"] == name)["spec"]


def of_name(objects, kind, name):
    return next(one for one in of_kind(objects, kind) if one["metadata"]["name"] == name)["spec"]


def labels(objects, name):
    return workload(objects, name)["template"]["metadata"]["labels"]


def pod(objects, name):
    return workload(objects, name)["template"]["spec"]


def container(objects, name):
    return pod(objects, name)["containers"][0]


def ports(objects, name):
    return {one["name"]: one["containerPort"] for one in container(objects, name)["ports"]}


def environment(objects, name):
    return {one["name"]: one.get("value") for one in container(objects, name)["env"]}


def set_variable(objects, name, variable, value):
    next(one for one in container(objects, name)["env"] if one["name"] == variable)["value"] = value


def hosts(objects, name):
    service = workload(objects, name)["serviceName"]
    return [f"{name}-{number}.{service}.{SPACE}.svc" for number in range(workload(objects, name)["replicas"])]


@rule(lambda o: o[1].pop("kind"), lambda o: container(o, "router").update(livenessprobe={}),
      lambda o: container(o, "node")["env"][0].update(value="n"), lambda o: container(o, "node")["env"][1].pop("value"),
      lambda o: container(o, "etcd")["livenessProbe"].pop("tcpSocket"),
      lambda o: workload(o, "node").update(podManagementPolicy="parallel"))
def objects_have_the_fields_of_their_kind(objects):
    yield from kubernetes_schema.objects_have_the_fields_of_their_kind(objects)


@rule(lambda o: o[1]["metadata"].update(namespace="default"), lambda o: o.append(o[1]))
def names_are_legal_and_in_the_namespace_and_unique(objects):
    yield from kubernetes_schema.names_are_legal_and_in_the_namespace_and_unique(objects)


@rule(lambda o: pod(o, "node").update(hostNetwork=True), lambda o: pod(o, "etcd")["securityContext"].update(runAsUser=0),
      lambda o: container(o, "router")["securityContext"].update(readOnlyRootFilesystem=False),
      lambda o: o[0]["metadata"].pop("labels"))
def every_pod_is_restricted(objects):
    if of_kind(objects, "Namespace")[0]["metadata"].get("labels", {}).get(
            "pod-security.kubernetes.io/enforce") != "restricted":
        yield "the namespace does not enforce it"
    for name in COMPONENTS:
        yield from (f"{name}: {wrong}" for wrong in rights_beyond_restricted(pod(objects, name)))


@rule(lambda o: o[1]["spec"]["selector"].update({COMPONENT: "node"}),
      lambda o: of_name(o, "Service", "nodes")["selector"].pop(COMPONENT),
      lambda o: workload(o, "node")["selector"]["matchLabels"].update(more="1"),
      lambda o: of_name(o, "PodDisruptionBudget", "etcd")["selector"]["matchLabels"].update({COMPONENT: "node"}),
      lambda o: of_name(o, "NetworkPolicy", "router")["podSelector"].pop("matchLabels"),
      lambda o: workload(o, "node").update(serviceName="etcd"),
      lambda o: of_name(o, "Service", "etcd").pop("publishNotReadyAddresses"))
def each_selector_selects_its_own_component(objects):
    wanted = {"Service softlookup": "router", "Service nodes": "node", "Service etcd": "etcd"}
    for kind in ("StatefulSet", "Deployment", "PodDisruptionBudget", "NetworkPolicy"):
        wanted |= {f"{kind} {name}": name for name in COMPONENTS}
    for one in objects:
        name, spec = f"{one['kind']} {one['metadata']['name']}", one.get("spec", {})
        selector = spec.get("selector", spec.get("podSelector"))
        if selector is None:
            continue
        chosen = selector if one["kind"] == "Service" else selector.get("matchLabels")
        if chosen != labels(objects, wanted[name]):
            yield f"{name} selects {chosen}"
    for name in ("etcd", "node"):
        service = of_name(objects, "Service", workload(objects, name)["serviceName"])
        if service["selector"] != labels(objects, name) or service.get("clusterIP") != "None":
            yield f"{name}: its Service does not name its pods"
        if service.get("publishNotReadyAddresses") is not True:
            yield f"{name}: pods that are not ready have no names, and need each other to get ready"


@rule(lambda o: workload(o, "node").update(replicas=2), lambda o: workload(o, "etcd").pop("podManagementPolicy"),
      lambda o: pod(o, "node").pop("affinity"), lambda o: pod(o, "router")["affinity"]["podAntiAffinity"][
          "requiredDuringSchedulingIgnoredDuringExecution"][0].update(topologyKey="zone"),
      lambda o: of_name(o, "PodDisruptionBudget", "node").update(maxUnavailable=2),
      lambda o: o.remove(of_kind(o, "PodDisruptionBudget")[0]),
      lambda o: workload(o, "router")["strategy"]["rollingUpdate"].update(maxSurge=1))
def one_host_or_one_pod_that_is_lost_leaves_enough(objects):
    budgets = {one["metadata"]["name"]: one["spec"] for one in of_kind(objects, "PodDisruptionBudget")}
    for name, replicas in COMPONENTS.items():
        if workload(objects, name)["replicas"] != replicas:
            yield f"{name}: not {replicas} replicas"
        if budgets.get(name, {}).get("maxUnavailable") != 1:
            yield f"{name}: more than one pod may be taken away"
        terms = pod(objects, name).get("affinity", {}).get("podAntiAffinity", {}).get(
            "requiredDuringSchedulingIgnoredDuringExecution")
        if terms != [{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels(objects, name)}}]:
            yield f"{name}: two pods may be on one host"
        # In order, the second waits until the first is ready, which can need the second.
        if name != "router" and workload(objects, name).get("podManagementPolicy") != "Parallel":
            yield f"{name}: one pod waits for another to start"
    if workload(objects, "router")["strategy"]["rollingUpdate"] != {"maxUnavailable": 1, "maxSurge": 0}:
        yield "a new router finds no host, or no old one is left"


def reached(objects):
    """Who may reach which port of whom, by the policies: (from, to, port), as both sides say."""
    sides = {}
    for side, peers in (("ingress", "from"), ("egress", "to")):
        sides[side] = set()
        for policy in of_kind(objects, "NetworkPolicy"):
            own = policy["metadata"]["name"]
            for way in policy["spec"][side]:
                for peer in way.get(peers) or [{}]:
                    other = peer.get("podSelector", {}).get("matchLabels", {}).get(COMPONENT) or str(sorted(peer.items()))
                    for port in way.get("ports") or [{"port": "all"}]:
                        sides[side].add((other, own, port["port"]) if side == "ingress" else (own, other, port["port"]))
    return sides


@rule(lambda o: of_name(o, "NetworkPolicy", "etcd")["ingress"].append({}),
      lambda o: of_name(o, "NetworkPolicy", "etcd")["ingress"][0]["from"].append({"podSelector": {}}),
      lambda o: of_name(o, "NetworkPolicy", "node")["ingress"][0]["from"].pop(),
      lambda o: of_name(o, "NetworkPolicy", "node")["ingress"][0].pop("ports"),
      lambda o: of_name(o, "NetworkPolicy", "node").update(policyTypes=["Ingress"]),
      lambda o: of_name(o, "NetworkPolicy", "router")["egress"].append({}),
      lambda o: of_name(o, "NetworkPolicy", "router")["egress"].pop(0),
      lambda o: of_name(o, "NetworkPolicy", "router")["ingress"][0]["from"][0].pop("podSelector"),
      lambda o: of_name(o, "NetworkPolicy", "node")["egress"][2].update(to=[{"podSelector": {}}]),
      lambda o: o[1]["spec"].update(type="LoadBalancer"))
def links_are_those_that_are_needed(objects):
    if {one["metadata"]["name"] for one in of_kind(objects, "NetworkPolicy")} != COMPONENTS.keys():
        yield "a component has no policy"
    if any(one["spec"].get("policyTypes") != ["Ingress", "Egress"] for one in of_kind(objects, "NetworkPolicy")):
        yield "a pod is not closed in both directions"
    def space(name, value):
        return ("namespaceSelector", {"matchLabels": {name: value}})
    clients = str([space("softlookup-clients", "true"), ("podSelector", {"matchLabels": {"softlookup-client": "true"}})])
    prometheus, names = (str([space("kubernetes.io/metadata.name", value)]) for value in ("monitoring", "kube-system"))
    sides = reached(objects)
    wanted = LINKS | {(prometheus, name, "http") for name in COMPONENTS} | {(clients, "router", "grpc")}
    yield from (f"ingress: {link}" for link in sides["ingress"] ^ wanted)
    yield from (f"egress: {link}" for link in sides["egress"] ^ (LINKS | {(name, names, 53) for name in COMPONENTS}))
    if of_name(objects, "Service", "softlookup").get("type") != "ClusterIP":
        yield "routers are served beyond the cluster"


@rule(lambda o: o[1]["spec"]["ports"][0].update(targetPort="rpc"), lambda o: container(o, "node")["ports"].pop(0),
      lambda o: container(o, "router")["readinessProbe"]["httpGet"].update(path="/healthz"),
      lambda o: container(o, "node")["startupProbe"].update(failureThreshold=30),
      lambda o: container(o, "etcd")["readinessProbe"]["httpGet"].update(port="client"),
      lambda o: set_variable(o, "node", "SOFTLOOKUP_CLUSTER_LISTEN", "0.0.0.0:7474"),
      lambda o: set_variable(o, "node", "SOFTLOOKUP_LISTEN", "0.0.0.0:7471"),
      lambda o: set_variable(o, "etcd", "ETCD_LISTEN_PEER_URLS", "https://0.0.0.0:2379"))
def ports_and_probes_are_those_of_the_containers(objects):
    for service, name in (("softlookup", "router"), ("nodes", "node"), ("etcd", "etcd")):
        yield from (f"Service {service}: no port {one}" for one in of_name(objects, "Service", service)["ports"]
                    if ports(objects, name).get(one["targetPort"]) != one["port"])
    yield from (f"{to} has no port {port}" for _, to, port in LINKS if port not in ports(objects, to))
    for name, variable, value in (
            ("node", "SOFTLOOKUP_CLUSTER_LISTEN", f"0.0.0.0:{ports(objects, 'node').get('cluster')}"),
            ("node", "SOFTLOOKUP_HTTP_LISTEN", f"0.0.0.0:{ports(objects, 'node').get('http')}"),
            # Without TLS and identities: for who may open a shell in the pod.
            ("node", "SOFTLOOKUP_LISTEN", "127.0.0.1:7471"),
            ("router", "SOFTLOOKUP_LISTEN", f"0.0.0.0:{ports(objects, 'router').get('grpc')}"),
            ("router", "SOFTLOOKUP_HTTP_LISTEN", f"0.0.0.0:{ports(objects, 'router').get('http')}"),
            ("etcd", "ETCD_LISTEN_CLIENT_URLS", f"https://0.0.0.0:{ports(objects, 'etcd').get('client')}"),
            ("etcd", "ETCD_LISTEN_PEER_URLS", f"https://0.0.0.0:{ports(objects, 'etcd').get('peer')}"),
            ("etcd", "ETCD_LISTEN_METRICS_URLS", f"http://0.0.0.0:{ports(objects, 'etcd').get('http')}")):
        if environment(objects, name).get(variable) != value:
            yield f"{name}: {variable} is not {value}"
    for name in ("node", "router"):
        probes = {probe: container(objects, name)[probe]["httpGet"]
                  for probe in ("startupProbe", "readinessProbe", "livenessProbe")}
        if probes != {probe: {"path": "/readyz" if probe == "readinessProbe" else "/healthz", "port": "http"}
                      for probe in probes}:
            yield f"{name}: {probes}"
    startup = container(objects, "node")["startupProbe"]
    if startup["periodSeconds"] * startup["failureThreshold"] < 3600:
        yield "a node that copies all records has less than an hour"
    if container(objects, "etcd")["readinessProbe"]["httpGet"] != {"path": "/health", "port": "http"}:
        yield "etcd's health is at another port"


@rule(lambda o: workload(o, "etcd").update(replicas=5),
      lambda o: set_variable(o, "router", "SOFTLOOKUP_CLUSTER_ETCD", "etcd-0.etcd.softlookup-cluster.svc:2379"),
      lambda o: set_variable(o, "node", "SOFTLOOKUP_ADVERTISE", "$(SOFTLOOKUP_NODE):7473"),
      lambda o: set_variable(o, "node", "SOFTLOOKUP_FOUNDER", "node-3"),
      lambda o: container(o, "node")["env"][0]["valueFrom"]["fieldRef"].update(fieldPath="metadata.uid"),
      lambda o: set_variable(o, "etcd", "ETCD_INITIAL_ADVERTISE_PEER_URLS", "https://$(ETCD_NAME):2380"),
      lambda o: set_variable(o, "etcd", "ETCD_INITIAL_CLUSTER", "etcd-0=https://etcd-0:2380"),
      lambda o: set_variable(o, "router", "SOFTLOOKUP_CLUSTER", "other"))
def all_find_each_other_by_the_names_of_pods(objects):
    members = ",".join(f"{host}:2379" for host in hosts(objects, "etcd"))
    initial = ",".join(f"{host.split('.')[0]}=https://{host}:2380" for host in hosts(objects, "etcd"))
    base = f"$(ETCD_NAME).etcd.{SPACE}.svc"
    for name, variable, value in (
            ("node", "SOFTLOOKUP_CLUSTER_ETCD", members), ("router", "SOFTLOOKUP_CLUSTER_ETCD", members),
            ("node", "SOFTLOOKUP_ADVERTISE", f"$(SOFTLOOKUP_NODE).nodes.{SPACE}.svc:7473"),
            ("etcd", "ETCD_INITIAL_CLUSTER", initial), ("etcd", "ETCD_ADVERTISE_CLIENT_URLS", f"https://{base}:2379"),
            ("etcd", "ETCD_INITIAL_ADVERTISE_PEER_URLS", f"https://{base}:2380"),
            ("router", "SOFTLOOKUP_CLUSTER", environment(objects, "node")["SOFTLOOKUP_CLUSTER"])):
        if environment(objects, name).get(variable) != value:
            yield f"{name}: {variable} is not {value}"
    if environment(objects, "node")["SOFTLOOKUP_FOUNDER"] not in [host.split(".")[0] for host in hosts(objects, "node")]:
        yield "no node founds the group"
    for name, variable in (("node", "SOFTLOOKUP_NODE"), ("etcd", "ETCD_NAME")):
        # $(...) is filled in from the variables before it.
        if container(objects, name)["env"][0] != {
                "name": variable, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}:
            yield f"{name}: its name is not the pod's"


@rule(lambda o: container(o, "node")["volumeMounts"].pop(1), lambda o: pod(o, "router")["volumes"].pop(),
      lambda o: container(o, "etcd")["volumeMounts"][1].pop("readOnly"),
      lambda o: pod(o, "node")["volumes"][0]["secret"].update(defaultMode=0o444),
      lambda o: pod(o, "router")["volumes"][3]["secret"].update(secretName="router-tls"),
      lambda o: set_variable(o, "router", "SOFTLOOKUP_TLS_KEY", "/identity/tls/server.key"),
      lambda o: set_variable(o, "node", "SOFTLOOKUP_CLUSTER_CA", "/identity/etcd/ca.crt"),
      lambda o: set_variable(o, "node", "SOFTLOOKUP_DATA_DIR", "/data"),
      lambda o: container(o, "router")["env"].append({"name": "SOFTLOOKUP_INSECURE", "value": "1"}),
      lambda o: container(o, "etcd")["env"].remove({"name": "ETCD_CLIENT_CERT_AUTH", "value": "true"}))
def each_link_has_the_certificates_of_its_authority(objects):
    secrets = {"node": {"CLUSTER": "node-tls", "CLUSTER_ETCD": "etcd-client-tls", "AUTH": "auth"},
               "router": {"CLUSTER": "node-client-tls", "CLUSTER_ETCD": "etcd-client-tls", "TLS": "router-tls",
                          "AUTH": "auth"},
               "etcd": {"ETCD": "etcd-tls"}}
    for name, of_flags in secrets.items():
        volumes = {one["name"]: one for one in pod(objects, name)["volumes"]}
        mounts = {one["name"]: one for one in container(objects, name)["volumeMounts"]}
        claims = {one["metadata"]["name"] for one in workload(objects, name).get("volumeClaimTemplates", ())}
        yield from (f"{name}: {one} is mounted and no volume, or the other way round"
                    for one in mounts.keys() ^ (volumes.keys() | claims))
        places = {}
        for one in volumes.keys() & mounts.keys():
            secret = volumes[one].get("secret")
            if secret is None:
                continue
            if not mounts[one].get("readOnly") or secret.get("defaultMode", 0o644) & 0o337:
                yield f"{name}: {one} can be written, or read by others than its group"
            places[secret["secretName"]] = mounts[one]["mountPath"]
        wanted = {}
        for flags, secret in of_flags.items():
            place = places.get(secret, "nowhere")
            if flags == "ETCD":
                for side in ("ETCD", "ETCD_PEER"):
                    wanted |= {f"{side}_TRUSTED_CA_FILE": f"{place}/ca.crt", f"{side}_CERT_FILE": f"{place}/tls.crt",
                               f"{side}_KEY_FILE": f"{place}/tls.key", f"{side}_CLIENT_CERT_AUTH": "true"}
            elif flags == "AUTH":
                wanted["SOFTLOOKUP_AUTH"] = f"{place}/auth.json"
            else:
                ca = "SOFTLOOKUP_TLS_CLIENT_CA" if flags == "TLS" else f"SOFTLOOKUP_{flags}_CA"
                wanted |= {ca: f"{place}/ca.crt", f"SOFTLOOKUP_{flags}_CERTIFICATE": f"{place}/tls.crt",
                           f"SOFTLOOKUP_{flags}_KEY": f"{place}/tls.key"}
        yield from (f"{name}: {variable} is not {value}" for variable, value in wanted.items()
                    if environment(objects, name).get(variable) != value)
        if "SOFTLOOKUP_INSECURE" in environment(objects, name):
            yield f"{name}: is insecure"
        for variable, value in environment(objects, name).items():
            # Not the volume's root itself: the data directory has nothing else in it.
            if re.search("DIR$", variable) and value and not value.startswith("/data/"):
                yield f"{name}: {variable}: {value} is on no claimed volume"


@rule(lambda o: container(o, "node")["resources"].pop("limits"),
      lambda o: set_variable(o, "node", "SOFTLOOKUP_MEMORY_LIMIT", "4GiB"),
      lambda o: set_variable(o, "router", "SOFTLOOKUP_REQUEST_MEMORY", "1GiB"),
      lambda o: pod(o, "node").update(terminationGracePeriodSeconds=30),
      lambda o: container(o, "etcd").update(image="softlookup-etcd"))
def each_has_room_and_time(objects):
    for name in COMPONENTS:
        if not re.search(r":\d[\w.-]*$", container(objects, name)["image"]):
            yield f"{name}: the image's version is open"
        limit = container(objects, name)["resources"].get("limits", {}).get("memory")
        taken = environment(objects, name).get(
            {"node": "SOFTLOOKUP_MEMORY_LIMIT", "router": "SOFTLOOKUP_REQUEST_MEMORY"}.get(name), "0")
        if not limit or binary(taken) > 0.75 * binary(limit):
            yield f"{name}: takes more than three quarters of its memory, or has no limit"
        if pod(objects, name).get("terminationGracePeriodSeconds", 30) < 60:
            yield f"{name}: is killed before it has stopped"


@rule(lambda o: container(o, "node")["env"].append({"name": "SOFTLOOKUP_NO_SUCH_FLAG", "value": "1"}),
      lambda o: container(o, "router").update(args=["--no-such-flag"]))
def variables_and_arguments_are_flags_of_the_server(objects):
    for name in ("node", "router"):
        flags = {one.removeprefix("SOFTLOOKUP_").lower().replace("_", "-") for one in environment(objects, name)}
        flags |= {one[2:].partition("=")[0] for one in container(objects, name).get("args", ())}
        yield from (f"{name}: {flag} is no flag of softlookup-server" for flag in flags - FLAGS)


def read_objects():
    with open(os.path.join(ROOT, "examples/kubernetes/cluster.yaml"), encoding="utf-8") as file:
        return list(yaml.safe_load_all(file))


class KubernetesClusterTest(unittest.TestCase):
    def test_the_file_keeps_every_rule(self):
        for check, _ in RULES:
            with self.subTest(check.__name__):
                self.assertEqual(list(check(read_objects())), [])

    def test_every_rule_catches_what_breaks_it(self):
        for check, broken in RULES:
            for number, change in enumerate(broken):
                with self.subTest(check.__name__, number=number):
                    objects = read_objects()
                    change(objects)
                    self.assertTrue(list(check(objects)))

    def test_the_commands_above_make_what_the_file_uses(self):
        with open(os.path.join(ROOT, "examples/kubernetes/cluster.yaml"), encoding="utf-8") as file:
            text = file.read()
        objects = read_objects()
        used = {one["secret"]["secretName"] for name in COMPONENTS for one in pod(objects, name)["volumes"]
                if "secret" in one}
        made = set(re.findall(r"secret ([\w-]+) \w+ (?:server|client)", text)) | set(
            re.findall(r"create secret generic ([\w-]+) ", text))
        self.assertEqual(made, used)
        for name in ("etcd", "node"):
            first = hosts(objects, name)[0].replace("-0.", "-{0,1,2}.", 1)
            self.assertIn(f"--host={first}", text)
        self.assertIn(f"--host softlookup.{SPACE}.svc", text)


if __name__ == "__main__":
    HELP = subprocess.run([SERVER, "--help"], env={}, check=True, capture_output=True, text=True, timeout=60).stdout
    FLAGS = set(re.findall(r"^ +(?:-\w,)?--([\w-]+)", HELP, re.MULTILINE))
    unittest.main(argv=sys.argv[:1])
