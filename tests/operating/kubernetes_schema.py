"""What the files of examples/kubernetes may say: their fields, and the rules that hold for each of them.

The rules are ours, made after the published schemas and Kubernetes' pod security standard "restricted". A rule yields a
line for everything that is wrong.
"""
import re

# Of the published schemas, the fields that such a file uses: a type, {field: schema}, [schema of an
# element], or {...: schema} for any names. "!" ends the name of a field that must be there.
LABELS = {...: str}
METADATA = {"name!": str, "namespace": str, "labels": LABELS, "annotations": LABELS}
SELECTOR = {"matchLabels": LABELS, "matchExpressions": [{"key!": str, "operator!": str, "values": [str]}]}
PORT = (int, str)
PROBE = {"httpGet": {"path!": str, "port!": PORT, "scheme": str}, "tcpSocket": {"port!": PORT}, "initialDelaySeconds": int, "periodSeconds": int,
         "timeoutSeconds": int, "failureThreshold": int, "successThreshold": int}
RESOURCES = {"requests": {...: str}, "limits": {...: str}}
PEER = {"namespaceSelector": SELECTOR, "podSelector": SELECTOR, "ipBlock": {"cidr!": str, "except": [str]}}
POLICY_PORTS = [{"port!": PORT, "protocol!": str, "endPort": int}]
SECCOMP = {"type!": str, "localhostProfile": str}
CONTAINER = {
    "name!": str, "image!": str, "imagePullPolicy": str, "command": [str], "args": [str],
    "env": [{"name!": str, "value": str, "valueFrom": {"fieldRef!": {"fieldPath!": str}}}],
    "ports": [{"name!": str, "containerPort!": int, "protocol": str}],
    "startupProbe": PROBE, "readinessProbe": PROBE, "livenessProbe": PROBE, "resources!": RESOURCES,
    "securityContext!": {"allowPrivilegeEscalation": bool, "readOnlyRootFilesystem": bool, "privileged": bool,
                         "capabilities": {"drop": [str], "add": [str]}, "runAsNonRoot": bool, "runAsUser": int,
                         "seccompProfile": SECCOMP},
    "volumeMounts": [{"name!": str, "mountPath!": str, "readOnly": bool, "subPath": str}]}
POD = {
    "automountServiceAccountToken": bool, "enableServiceLinks": bool, "terminationGracePeriodSeconds": int,
    "hostNetwork": bool, "hostPID": bool, "hostIPC": bool, "serviceAccountName": str, "initContainers": [CONTAINER],
    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey!": str, "labelSelector!": SELECTOR}]}},
    "securityContext!": {"runAsNonRoot": bool, "runAsUser": int, "runAsGroup": int, "fsGroup": int,
                         "fsGroupChangePolicy": str, "seccompProfile": SECCOMP},
    "containers!": [CONTAINER],
    "volumes": [{"name!": str, "secret": {"secretName!": str, "defaultMode": int, "optional": bool,
                                          "items": [{"key!": str, "path!": str}]},
                 "emptyDir": {"sizeLimit": str, "medium": str}, "hostPath": {"path!": str}}]}
TEMPLATE = {"metadata!": {"labels!": LABELS, "annotations": LABELS}, "spec!": POD}
KINDS = {
    ("v1", "Namespace"): {},
    ("v1", "Service"): {"spec!": {
        "type": str, "clusterIP": str, "publishNotReadyAddresses": bool, "selector!": LABELS,
        "ports!": [{"name!": str, "port!": int, "targetPort!": PORT, "protocol": str, "appProtocol": str}]}},
    ("apps/v1", "StatefulSet"): {"spec!": {
        "serviceName!": str, "replicas": int, "podManagementPolicy": str, "selector!": SELECTOR, "template!": TEMPLATE,
        "volumeClaimTemplates": [{"metadata!": METADATA, "spec!": {
            "accessModes!": [str], "storageClassName": str, "resources!": RESOURCES}}],
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": str, "whenScaled": str}}},
    ("apps/v1", "Deployment"): {"spec!": {
        "replicas": int, "selector!": SELECTOR, "template!": TEMPLATE,
        "strategy": {"type": str, "rollingUpdate": {"maxUnavailable": PORT, "maxSurge": PORT}}}},
    ("networking.k8s.io/v1", "NetworkPolicy"): {"spec!": {
        "podSelector!": SELECTOR, "policyTypes": [str], "ingress": [{"from": [PEER], "ports": POLICY_PORTS}],
        "egress": [{"to": [PEER], "ports": POLICY_PORTS}]}},
    ("policy/v1", "PodDisruptionBudget"): {"spec!": {
        "minAvailable": PORT, "maxUnavailable": PORT, "unhealthyPodEvictionPolicy": str, "selector!": SELECTOR}},
}
# What a field that is not free may say.
CHOICES = {
    "protocol": {"TCP", "UDP"}, "type": {"ClusterIP", "RuntimeDefault", "Localhost", "RollingUpdate"},
    "podManagementPolicy": {"OrderedReady", "Parallel"}, "policyTypes": {"Ingress", "Egress"},
    "accessModes": {"ReadWriteOnce", "ReadWriteOncePod"}, "imagePullPolicy": {"IfNotPresent", "Always", "Never"},
    "fsGroupChangePolicy": {"OnRootMismatch", "Always"}, "whenDeleted": {"Retain", "Delete"},
    "whenScaled": {"Retain", "Delete"}, "unhealthyPodEvictionPolicy": {"IfHealthyBudget", "AlwaysAllow"},
}
# Of these fields, an object has one.
ONE_OF = {"env": {"value", "valueFrom"}} | dict.fromkeys(
    ("startupProbe", "readinessProbe", "livenessProbe"), {"httpGet", "tcpSocket"})


def misfits(where, value, schema, name=""):
    """A line for everything below `value` that the schema does not have."""
    if isinstance(schema, dict):
        if not isinstance(value, dict):
            yield f"{where}: is no object"
        elif ... in schema:
            for key, one in value.items():
                yield from misfits(f"{where}.{key}", one, schema[...])
        else:
            if name in ONE_OF and len(value.keys() & ONE_OF[name]) != 1:
                yield f"{where}: not one of {sorted(ONE_OF[name])}"
            fields = {field.rstrip("!"): one for field, one in schema.items()}
            yield from (f"{where}: has no {field[:-1]}" for field in schema
                        if field.endswith("!") and field[:-1] not in value)
            for key, one in value.items():
                if key in fields:
                    yield from misfits(f"{where}.{key}", one, fields[key], key)
                else:
                    yield f"{where}: {key} is unknown"
    elif isinstance(schema, list):
        if not isinstance(value, list):
            yield f"{where}: is no list"
        else:
            for index, one in enumerate(value):
                yield from misfits(f"{where}[{index}]", one, schema[0], name)
    elif not isinstance(value, schema) or (isinstance(value, bool) and schema is not bool):
        yield f"{where}: {value!r} is of the wrong type"
    elif name in CHOICES and value not in CHOICES[name]:
        yield f"{where}: {value!r} is none of {sorted(CHOICES[name])}"


def of_kind(objects, kind):
    return [one for one in objects if one["kind"] == kind]


def binary(size):
    """Bytes of 3GiB, 4Gi or 512."""
    number, unit = re.fullmatch(r"(\d+)(|Ki|Mi|Gi|Ti)B?", size).groups()
    return int(number) << {"": 0, "Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40}[unit]


def objects_have_the_fields_of_their_kind(objects):
    for number, one in enumerate(objects):
        where = f"object {number}"
        if not isinstance(one, dict) or not isinstance(one.get("metadata"), dict):
            yield f"{where}: has no metadata"
            continue
        kind = KINDS.get((one.get("apiVersion"), one.get("kind")))
        if kind is None:
            yield f"{where}: no known kind, {one.get('apiVersion')} {one.get('kind')}"
            continue
        schema = {"apiVersion!": str, "kind!": str, "metadata!": METADATA, **kind}
        yield from misfits(f"{one['kind']} {one['metadata'].get('name')}", one, schema)


def names_are_legal_and_in_the_namespace_and_unique(objects):
    namespaces = {one["metadata"]["name"] for one in of_kind(objects, "Namespace")}
    seen = set()
    for one in objects:
        name, space = one["metadata"]["name"], one["metadata"].get("namespace")
        if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name):
            yield f"{one['kind']} {name}: an illegal name"
        if one["kind"] != "Namespace" and space not in namespaces:
            yield f"{one['kind']} {name}: in the namespace {space}"
        if (one["kind"], name) in seen:
            yield f"{one['kind']} {name}: is there twice"
        seen.add((one["kind"], name))


def rights_beyond_restricted(spec):
    """What a pod may that its standard forbids, or that none of ours needs."""
    yield from (f"the pod has {name}" for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name))
    if spec.get("automountServiceAccountToken") is not False:
        yield "the pod gets a service account's token"
    for one in spec["volumes"]:
        if one.keys() - {"name", "secret", "emptyDir"}:
            yield f"volume {one['name']}: of a kind that is not needed"
    for one in (*spec.get("initContainers", ()), *spec["containers"]):
        own = {**spec["securityContext"], **one["securityContext"]}
        capabilities = own.get("capabilities", {})
        for holds, what in (
                (own.get("runAsNonRoot") is True and own.get("runAsUser") == 65532, "does not run as user 65532"),
                (own.get("seccompProfile", {}).get("type") == "RuntimeDefault", "has no system call filter"),
                (own.get("allowPrivilegeEscalation") is False, "may gain privileges"),
                (not own.get("privileged"), "is privileged"),
                (own.get("readOnlyRootFilesystem") is True, "writes to its root"),
                (capabilities.get("drop") == ["ALL"] and not capabilities.get("add"), "has capabilities")):
            if not holds:
                yield f"container {one['name']}: {what}"
