"""Who may do what: every method, with every kind of wrong and right identity, over plaintext, TLS
and TLS with client certificates. Needs a server that has --auth."""
import hashlib
import os
import signal
import ssl
import time

import contract
import grpc_call
from cases import ENDLESS_SECONDS, PATIENT, add_case, case
from contract import KNOWN_STORE, SCRATCH_STORE, new

NEEDS = ("--auth", "--tls-certificate", "--tls-client-ca")
TRANSPORTS = ("plaintext", "tls", "mutual")
HEALTH = "/grpc.health.v1.Health/Check"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
LIST_SERVICES = b"\x3a\x01*"

# The table of roles of the contract.
READ = {"GetStore", "ListStores", "ReadRows", "Lookup", "StreamLookup", "Attend", "GetMemory",
        "WatchMemory"}
WRITE = READ | {"Append", "StreamAppend", "DeleteRows", "GetWriter"}
MANAGE = WRITE | {"CreateStore", "UpdateStore", "RenameStore", "CompactStore", "DeleteStore"}
ADMIN = MANAGE | {"CreateBackup", "ListBackups", "RestoreStore", "GetGroup", "AddReplica",
                  "RemoveReplica", "MovePrimary", "SplitStore", "MoveRange", "GetRanges", "reflection"}
# Who has rights in no store that a request names may still ask what names none.
ELSEWHERE = {"ListStores", "Attend"}


def rename(store, new_name, replace=True):
    return new("RenameStoreRequest", store=store, new_name=new_name, replace=replace)


def compact(name):
    return new("CompactStoreRequest", name=name, end_memories=True)


# Requests that name a store of known/, where those of the contract do not.
REQUESTS = {
    "CreateStore": lambda: new("CreateStoreRequest", store=new(
        "Store", name=KNOWN_STORE, key_dim=4, value_dim=4)),
    "RenameStore": lambda: rename("known/nothing", KNOWN_STORE),
    "CompactStore": lambda: compact("known/nothing"),
    "DeleteStore": lambda: new("DeleteStoreRequest", **{"name": "known/nothing"}),
}
CODES = {"CreateStore": contract.ALREADY_EXISTS, "RenameStore": contract.NOT_FOUND,
         "CompactStore": contract.NOT_FOUND, "DeleteStore": contract.NOT_FOUND,
         "WatchMemory": (contract.DEADLINE_EXCEEDED, contract.CANCELLED)}


def call(ctx, method, metadata, connection, served):
    if method == "reflection":
        return ctx.call(REFLECTION, LIST_SERVICES, connection=connection, metadata=metadata)
    request = REQUESTS.get(method, contract.METHODS[method].request)
    deadline = ENDLESS_SECONDS if served and contract.METHODS[method].endless else PATIENT
    return ctx.call(method, request(), deadline=deadline, connection=connection, metadata=metadata)


def check_all(ctx, metadata, allowed, denied_code, connection=None):
    """Every method is served or refused as the table of roles says; health is served to all."""
    connection = connection or ctx.connect()
    for method in [*contract.METHODS, "reflection"]:
        outcome = call(ctx, method, metadata, connection, method in allowed)
        if method not in allowed:
            ctx.expect(outcome, denied_code, what=method)
        elif method == "reflection":
            ctx.expect(outcome, contract.OK, what=method)
        else:
            ctx.expect(outcome, CODES.get(method, contract.METHODS[method].code), what=method)
        if connection.closed:
            connection = ctx.connect()
    # An empty request asks for the whole server; grpc.health.v1 needs no identity.
    ctx.expect(ctx.call(HEALTH, b"", connection=connection, metadata=[]), contract.OK, what="health")


def bearer(token):
    return [("authorization", f"Bearer {token}")]


# Credentials that are nobody's: (name, metadata of the workspace's tokens).
NOBODY = [
    ("no identity", lambda tokens: []),
    ("an unknown token", lambda tokens: bearer("A" * 43)),
    ("an empty token", lambda tokens: bearer("")),
    ("the scheme alone", lambda tokens: [("authorization", "Bearer")]),
    ("no scheme", lambda tokens: [("authorization", tokens["admin"])]),
    ("the scheme Basic", lambda tokens: [("authorization", "Basic " + tokens["admin"])]),
    ("a token and more", lambda tokens: bearer(tokens["admin"] + "x")),
    ("a token without its last character", lambda tokens: bearer(tokens["admin"][:-1])),
    ("a token with a tab", lambda tokens: bearer("\t" + tokens["admin"])),
    ("a token with a zero byte", lambda tokens: bearer(tokens["admin"] + "\0")),
    ("a token's SHA-256", lambda tokens: bearer(
        hashlib.sha256(tokens["admin"].encode()).hexdigest())),
    ("two authorizations, the first good", lambda tokens: bearer(tokens["admin"]) + bearer("x")),
    ("two authorizations, the second good", lambda tokens: bearer("x") + bearer(tokens["admin"])),
    ("two tokens with a comma", lambda tokens: bearer(tokens["read"] + ", Bearer " + tokens["admin"])),
    ("a token of 4 KiB", lambda tokens: bearer("x" * 4096)),
    ("a star for a token", lambda tokens: bearer("*")),
    ("an identity's name", lambda tokens: bearer("admin")),
]
SOMEBODY = [("read", READ), ("write", WRITE), ("manage", MANAGE), ("admin", ADMIN),
            ("read elsewhere", ELSEWHERE), ("manage elsewhere", ELSEWHERE)]


def options(transport):
    return {"needs": NEEDS, "flags": lambda workspace: workspace.flags(transport),
            "access": lambda workspace: workspace.access(transport), "seconds": 60}


def add_nobody(transport, name, metadata):
    def run(ctx):
        check_all(ctx, metadata(ctx.workspace.tokens), set(), contract.UNAUTHENTICATED)
    add_case(f"identity/{transport}: {name}", run, short=name in ("no identity", "an unknown token"),
             **options(transport))


def add_somebody(transport, name, allowed):
    def run(ctx):
        check_all(ctx, bearer(ctx.workspace.tokens[name]), allowed, contract.PERMISSION_DENIED)
    add_case(f"identity/{transport}: the token of '{name}'", run, short=transport != "tls",
             **options(transport))


# Methods whose refusal could tell whether a store exists: (method, request of its name).
TELLING = [
    ("GetStore", lambda name: new("GetStoreRequest", **{"name": name})),
    ("CreateStore", lambda name: new("CreateStoreRequest", store={
        "name": name, "key_dim": 4, "value_dim": 4})),
    ("UpdateStore", lambda name: new("UpdateStoreRequest", store={"name": name, "score": 1},
                                     update_mask={"paths": ["score"]})),
    # "manage elsewhere" manages other/*, but not what it would rename, nor what it would replace.
    ("RenameStore", lambda name: rename(name, "other/taken")),
    ("RenameStore", lambda name: rename("other/nothing", name)),
    ("CompactStore", compact),
    ("DeleteStore", lambda name: new("DeleteStoreRequest", **{"name": name})),
    ("Append", lambda name: contract.append_request(1, name)),
    ("StreamAppend", lambda name: contract.append_request(1, name)),
    ("ReadRows", lambda name: new("ReadRowsRequest", store=name)),
    ("DeleteRows", lambda name: new("DeleteRowsRequest", store=name, filter={"last": 1})),
    ("Lookup", contract.lookup_request),
    ("GetMemory", lambda name: new("GetMemoryRequest", store=name)),
    ("WatchMemory", lambda name: new("WatchMemoryRequest", store=name)),
    ("GetWriter", lambda name: new("GetWriterRequest", store=name, writer="known-writer")),
]


def add_same_words(transport):
    def run(ctx):
        metadata = bearer(ctx.workspace.tokens["manage elsewhere"])
        for method, request in TELLING:
            words = set()
            for name in (SCRATCH_STORE, "known/scratcs", "no-such/scratch"):
                outcome = ctx.call(method, request(name), metadata=metadata)
                ctx.expect(outcome, contract.PERMISSION_DENIED, what=f"{method} {name}")
                details = str(sorted(outcome.metadata.items()))
                words.add((outcome.message + details).replace(name, "NAME"))
            ctx.check(len(words) == 1, f"{method} tells whether a store exists: {words}")
    add_case(f"identity/{transport}: a refusal has the same words whether or not the store exists", run,
             short=transport == "plaintext", **options(transport))


def add_listing(transport):
    def run(ctx):
        for name, prefix in (("read", "known/"), ("manage elsewhere", "other/")):
            outcome = ctx.call("ListStores", b"", metadata=bearer(ctx.workspace.tokens[name]))
            if ctx.expect(outcome, contract.OK):
                page = contract.MESSAGES["ListStoresResponse"].FromString(outcome.messages[0])
                names = [store.name for store in page.stores]
                ctx.check(all(store.startswith(prefix) for store in names)
                          and bool(names) == (prefix == "known/"), f"'{name}' sees {names}")
    add_case(f"defect-10/{transport}: a listing has the stores that its caller may read", run,
             short=transport == "plaintext", **options(transport))


def add_streams(transport):
    """A stream may not change to a store that its caller may not touch."""
    def run(ctx):
        ctx.expect(ctx.call("CreateStore", new("CreateStoreRequest", store=new(
            "Store", name="other/s", key_dim=4, value_dim=4))), contract.OK)
        metadata = bearer(ctx.workspace.tokens["write"])
        outcome = ctx.call("StreamAppend", contract.append_request(1),
                           contract.append_request(1, "other/s"), metadata=metadata)
        ctx.expect(outcome, (contract.PERMISSION_DENIED, contract.INVALID_ARGUMENT))
        outcome = ctx.call("StreamLookup", contract.lookup_request(),
                           contract.lookup_request("other/s"), metadata=metadata)
        second = [contract.MESSAGES["LookupResponse"].FromString(message).error.code
                  for message in outcome.messages[1:]]
        ctx.check(outcome.code != contract.OK or second in (
            [contract.PERMISSION_DENIED], [contract.INVALID_ARGUMENT]), f"{outcome}, {second}")
    add_case(f"identity/{transport}: a stream's second store is checked as well", run,
             short=transport == "plaintext", **options(transport))


def add_rename(transport):
    """No store leaves its tenant, and none comes in another's place, without rights in both names."""
    def run(ctx):
        mine, theirs = "other/mine", SCRATCH_STORE
        ctx.expect(ctx.call("CreateStore", new("CreateStoreRequest", store=new(
            "Store", name=mine, key_dim=4, value_dim=4))), contract.OK)
        before = ctx.call("GetStore", new("GetStoreRequest", name=theirs))
        for token in ("manage elsewhere", "write", "read elsewhere"):
            metadata = bearer(ctx.workspace.tokens[token])
            for replace in (False, True):
                for store, new_name in ((mine, theirs), (mine, "known/new"), (theirs, "other/stolen"),
                                        (theirs, mine), (theirs, theirs)):
                    outcome = ctx.call("RenameStore", rename(store, new_name, replace), metadata=metadata)
                    ctx.expect(outcome, contract.PERMISSION_DENIED, what=f"{token}: {store} to {new_name}")
        after = ctx.call("GetStore", new("GetStoreRequest", name=theirs))
        ctx.check(before.messages == after.messages, f"{theirs} has changed")
        ctx.expect(ctx.call("RenameStore", rename(mine, "other/moved"),
                            metadata=bearer(ctx.workspace.tokens["manage elsewhere"])), contract.OK)
    add_case(f"identity/{transport}: a rename takes rights in both names", run, short=transport == "plaintext",
             **options(transport))


def add_large_token(transport):
    def run(ctx):
        connection = ctx.connect()
        for method in ("Lookup", "StreamAppend", "ListBackups"):
            lookup = grpc_call.Call(connection, contract.METHODS[method].path, 5.0, bearer("x" * 65536))
            lookup.send(contract.METHODS[method].valid, end=True)
            lookup.wait_over(5 * ctx.scale)
            ctx.expect_refused(lookup.outcome(), method)
    add_case(f"identity/{transport}: a token of 64 KiB", run, **options(transport))


for _transport in TRANSPORTS:
    for _name, _metadata in NOBODY:
        add_nobody(_transport, _name, _metadata)
    for _name, _allowed in SOMEBODY:
        add_somebody(_transport, _name, _allowed)
    for _add in (add_same_words, add_listing, add_streams, add_rename, add_large_token):
        _add(_transport)


def expect_no_handshake(ctx, tls):
    """Refused before a byte of HTTP/2: no SETTINGS of the server comes."""
    try:
        connection = ctx.connect(tls=tls)
    except (ssl.SSLError, ConnectionError):
        return
    connection.wait(lambda: connection.settings_seen, 5 * ctx.scale)
    ctx.check(connection.closed and not connection.settings_seen, "the handshake succeeded")


def add_bad_certificate(name, certificate):
    def run(ctx):
        expect_no_handshake(ctx, ctx.workspace.tls(certificate))
    add_case(f"identity/mutual: {name}", run, short=True, **options("mutual"))


for _name, _certificate in (("no certificate", None), ("an expired certificate", "expired"),
                            ("a certificate of a foreign authority", "foreign")):
    add_bad_certificate(_name, _certificate)


@case("identity/mutual: a certificate's identity, without a token", short=True, **options("mutual"))
def certificate_alone(ctx):
    connection = ctx.connect(tls=ctx.workspace.tls("reader"))
    check_all(ctx, [], READ, contract.PERMISSION_DENIED, connection)


@case("identity/tls: TLS 1.1 is not served", **options("tls"))
def old_tls(ctx):
    tls = ctx.workspace.tls()
    tls.minimum_version, tls.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    tls.set_ciphers("ALL:@SECLEVEL=0")
    expect_no_handshake(ctx, tls)


@case("identity/tls: plaintext HTTP/2 at the TLS port", short=True, **options("tls"))
def plaintext_at_tls_port(ctx):
    connection = ctx.connect(tls=None)
    ctx.check(connection.wait_closed(12 * ctx.scale), "the connection stays open")
    ctx.check(not connection.settings_seen, "plaintext was answered")


@case("identity/tls: 200 handshakes that stop after their first bytes", **options("tls"))
def stalled_handshakes(ctx):
    for i in range(200):
        connection = ctx.connect(tls=None, settings=None)
        connection.send(bytes.fromhex("16030100a5010000a10303")[:1 + i % 10])


def expect_bound(ctx, identity, method, requests):
    """The first request is served, a later one is not, and nobody else is held up."""
    metadata = bearer(ctx.workspace.tokens[identity])
    codes = [ctx.call(method, request, metadata=metadata, deadline=ctx.patience(10)).code for request in requests]
    ctx.check(codes[0] != contract.RESOURCE_EXHAUSTED and contract.RESOURCE_EXHAUSTED in codes,
              f"{len(codes)} calls ended {[contract.code_name(code) for code in sorted(set(codes))]}")
    ctx.expect(ctx.call("Lookup", contract.lookup_request()), contract.OK)


@case("identity/plaintext: an identity's requests a second", **options("plaintext"))
def few_requests(ctx):
    request = new("GetStoreRequest", **{"name": "few-requests/s"})
    expect_bound(ctx, "few requests", "GetStore", [request] * 50)


@case("identity/plaintext: an identity's rows a second, also of what names no store",
      **options("plaintext"))
def few_rows(ctx):
    keys = contract.matrix(4, 4)
    request = new("AttendRequest", queries=contract.matrix(100, 4), keys=keys, values=keys)
    expect_bound(ctx, "few rows", "Attend", [request] * 20)


@case("identity/plaintext: an identity's stores", **options("plaintext"))
def few_stores(ctx):
    expect_bound(ctx, "few stores", "CreateStore", [new("CreateStoreRequest", store=new(
        "Store", **{"name": f"few-stores/{i}", "key_dim": 4, "value_dim": 4})) for i in range(5)])


@case("identity/plaintext: the bytes of an identity's stores", **options("plaintext"))
def few_bytes(ctx):
    ctx.expect(ctx.call("CreateStore", new("CreateStoreRequest", store=new(
        "Store", **{"name": "few-bytes/s", "key_dim": 64, "value_dim": 64})),
        metadata=bearer(ctx.workspace.tokens["few bytes"])), contract.OK)
    rows = {"rows": 500, "cols": 64, "data": bytes(500 * 64 * 4)}
    expect_bound(ctx, "few bytes", "Append",
                 [new("AppendRequest", store="few-bytes/s", keys=rows, values=rows)] * 10)


def reloaded_flags(workspace):
    return (f"--auth={workspace.write('reloaded.json', workspace.rules())}",)


@case("identity/a broken auth file leaves the old rules, a good one replaces them", needs=NEEDS,
      flags=reloaded_flags, access=lambda workspace: workspace.access("plaintext"),
      seconds=60)
def broken_auth_file(ctx):
    def ends_with(name, code):
        """Within the 10 s that the contract gives to a reload."""
        until = time.monotonic() + 12 * ctx.scale
        metadata, request = bearer(ctx.workspace.tokens[name]), contract.METHODS["GetStore"].request()
        while ctx.call("GetStore", request, metadata=metadata).code != code:
            if time.monotonic() > until:
                return False
            ctx.connection.poll(0.2)  # Nothing notifies a client of new rules.
        return True

    for broken in ("", "{", "[]", '{"identities": [{"name": 1}]}', '{"identities": {}}', "\0" * 100,
                   "[" * 100_000):
        ctx.workspace.write("reloaded.json", broken)
        os.kill(ctx.server.pid, signal.SIGHUP)
        ctx.check(ends_with("read", contract.OK), f"{broken[:20]!r} took the old rules away")
    fewer = ctx.workspace.rules().replace(
        hashlib.sha256(ctx.workspace.tokens["read"].encode()).hexdigest(), "0" * 64)
    ctx.workspace.write("reloaded.json", fewer)
    os.kill(ctx.server.pid, signal.SIGHUP)
    ctx.check(ends_with("read", contract.UNAUTHENTICATED), "a withdrawn token is still taken")
