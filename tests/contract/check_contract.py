#!/usr/bin/python3
"""Is the wire contract whole?  check_contract.py [PROJECT=.]

Compares PROJECT/proto with contract.json beside this file (every message, field, type, enum value and method of the contract). Prints
what is missing or has another type; more than the contract is fine. Exit 0 when nothing is missing. Needs protoc and
python3-protobuf. --only-methods=A,B limits the methods asked for (messages they reach included) while some are still to come.
"""
import json, os, subprocess, sys, tempfile
from google.protobuf import descriptor_pb2 as d

T = {v: k[5:].lower() for k, v in d.FieldDescriptorProto.Type.items()}


def describe(project):
    root = os.path.join(project, "proto")
    files = [os.path.relpath(os.path.join(b, f), root) for b, _, fs in os.walk(root) for f in fs if f.endswith(".proto")]
    out = os.path.join(tempfile.mkdtemp(), "set.pb")
    subprocess.check_call(["protoc", "-I" + root, "--include_imports", "--descriptor_set_out=" + out] + files)
    s = d.FileDescriptorSet.FromString(open(out, "rb").read())
    c = {"messages": {}, "enums": {}, "methods": {}}
    for f in s.file:
        if f.package != "softlookup.v1":
            continue
        for m in f.message_type:
            maps = {n.name for n in m.nested_type if n.options.map_entry}
            fields = {}
            for x in m.field:
                t = x.type_name.rsplit(".", 1)[-1] if x.type_name else T[x.type]
                t = "map" if t in maps else t
                label = "repeated " if x.label == 3 and t != "map" else "optional " if x.proto3_optional else ""
                fields[x.name] = label + t
            c["messages"][m.name] = fields
        for e in f.enum_type:
            c["enums"][e.name] = [v.name for v in e.value]
        for sv in f.service:
            for m in sv.method:
                a, b = m.input_type.rsplit(".", 1)[-1], m.output_type.rsplit(".", 1)[-1]
                c["methods"][sv.name + "." + m.name] = ("stream " if m.client_streaming else "") + a + " -> " + ("stream " if m.server_streaming else "") + b
    return c


def main():
    args = [a for a in sys.argv[1:] if not a.startswith("--")]
    only = next((a.split("=", 1)[1].split(",") for a in sys.argv[1:] if a.startswith("--only-methods=")), None)
    want = json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "contract.json")))
    have = describe(args[0] if args else ".")
    reach = None
    if only is not None:
        want["methods"] = {k: v for k, v in want["methods"].items() if k.split(".")[1] in only}
        todo, reach = [w for v in want["methods"].values() for w in v.replace("stream ", "").split(" -> ")], set()
        while todo:
            n = todo.pop()
            if n in want["messages"] and n not in reach:
                reach.add(n)
                todo += [t.split(" ")[-1] for t in want["messages"][n].values()]
    wrong = []
    for k, v in want["methods"].items():
        if have["methods"].get(k) != v:
            wrong.append(f"method {k}: want {v}, have {have['methods'].get(k)}")
    for m, fs in want["messages"].items():
        if reach is not None and m not in reach:
            continue
        for f, t in fs.items():
            got = have["messages"].get(m, {}).get(f)
            if got != t:
                wrong.append(f"{m}.{f}: want {t}, have {got}")
    for e, vs in want["enums"].items():
        wrong += [f"enum {e}: no {v}" for v in vs if v not in have["enums"].get(e, [])]
    print("\n".join(wrong) if wrong else f"contract whole: {len(want['methods'])} methods, {len(want['messages'])} messages")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
