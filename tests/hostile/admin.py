"""The operator's side: backups over gRPC, and the HTTP port of probes and metrics."""
import os
import socket

import contract
import names
from cases import add_case, case
from contract import new

def with_backups(workspace):
    """A server that keeps its stores on disk, and may make backups."""
    data, backups = workspace.path("data"), workspace.path("backups")
    os.makedirs(backups, exist_ok=True)
    return (f"--data-dir={data}", f"--backup-dir={backups}")


def fresh_directories(workspace):
    for name in ("data", "backups"):
        path = workspace.path(name)
        if os.path.exists(path):
            os.rename(path, f"{path}-{len(os.listdir(workspace.folder))}")
    return with_backups(workspace)


@case("admin/CreateBackup: every nasty name", short=True, fresh=True, flags=fresh_directories)
def backup_names(ctx):
    for title, name, _ in [*names.NASTY, ("a dot first", ".hidden", False),
                           ("65 characters", "b" * 65, False)]:
        if name in ("", "-rf"):
            continue  # Nothing is the time of the call, and a backup may begin with a hyphen.
        outcome = ctx.call("CreateBackup", new("CreateBackupRequest", **{"name": name}))
        ctx.expect(outcome, contract.INVALID_ARGUMENT, "INVALID_NAME", what=title)
    ctx.check(os.listdir(ctx.workspace.path("backups")) == [], "a backup was made")
    names.check_nothing_is_forged(ctx)


@case("admin/CreateBackup: twenty at once", fresh=True, flags=fresh_directories, seconds=60)
def backups_at_once(ctx):
    def make(i):
        outcome = ctx.call("CreateBackup", new("CreateBackupRequest", **{"name": f"b{i}"}),
                           deadline=ctx.patience(20), connection=ctx.connect())
        ctx.expect(outcome, (contract.OK, contract.RESOURCE_EXHAUSTED))
    ctx.in_threads([lambda i=i: make(i) for i in range(20)])
    ctx.expect(ctx.call("ListBackups", b""), contract.OK)


@case("admin/CreateBackup: begun and cancelled 100 times", fresh=True, flags=fresh_directories, seconds=60)
def backups_cancelled(ctx):
    connection = ctx.connect()
    for i in range(100):
        call = ctx.start("CreateBackup", connection=connection)
        call.send(new("CreateBackupRequest", **{"name": f"c{i}"}).SerializeToString(), end=True)
        connection.poll(0.002)
        call.reset()
    ctx.expect(ctx.call("ListBackups", b"", deadline=ctx.patience(10)), contract.OK)


@case("admin/RestoreStore: every nasty name in every field", short=True, fresh=True, flags=fresh_directories)
def restore_names(ctx):
    ctx.expect(ctx.call("CreateBackup", new("CreateBackupRequest", **{"name": "whole"})), contract.OK)
    for title, name, of_store in names.NASTY:
        for field in ("backup", "store", "name"):
            outcome = ctx.call("RestoreStore", new("RestoreStoreRequest", **{
                "backup": "whole", "store": "s", "name": "t", field: name}))
            if field == "backup" and name == "-rf":
                expected = (contract.NOT_FOUND, "BACKUP_NOT_FOUND")  # A backup may begin with a hyphen.
            elif field != "backup" and (of_store or (field, name) == ("name", "")):
                expected = (contract.NOT_FOUND, "STORE_NOT_FOUND")  # The backup has no store at all.
            else:
                expected = (contract.INVALID_ARGUMENT, "INVALID_NAME")
            ctx.expect(outcome, *expected, what=f"{field}: {title}")
    ctx.check(os.listdir(ctx.workspace.path("backups")) == ["whole"], "a file was made")
    names.check_nothing_is_forged(ctx)


@case("admin/RestoreStore: begun and cancelled 100 times", fresh=True, flags=fresh_directories, seconds=60)
def restores_cancelled(ctx):
    ctx.expect(ctx.call("CreateStore", contract.METHODS["CreateStore"].valid), contract.OK)
    ctx.expect(ctx.call("CreateBackup", new("CreateBackupRequest", **{"name": "whole"})), contract.OK)
    connection = ctx.connect()
    for i in range(100):
        call = ctx.start("RestoreStore", connection=connection)
        call.send(new("RestoreStoreRequest", backup="whole", store="made", name=f"r{i}")
                  .SerializeToString(), end=True)
        connection.poll(0.002)
        call.reset()
    ctx.expect(ctx.call("ListStores", b"", deadline=ctx.patience(10)), contract.OK)


def http(ctx, data, seconds=4.0):
    """What the HTTP port answers to bytes; None if it keeps the connection open."""
    with socket.create_connection(ctx.server.http_address, timeout=seconds * ctx.scale) as sock:
        came = bytearray()
        try:
            sock.sendall(data)
            ctx.meter.sent += len(data)
            while part := sock.recv(65536):
                came += part
        except TimeoutError:
            return None
        except OSError:
            pass
        return bytes(came)


HTTP = [
    ("nothing", b""), ("a blank line", b"\r\n\r\n"), ("no method", b" / HTTP/1.1\r\n\r\n"),
    ("an unknown path", b"GET /../../etc/passwd HTTP/1.1\r\n\r\n"),
    ("POST", b"POST /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"),
    ("a length of 2^63", b"POST /metrics HTTP/1.1\r\nContent-Length: 9223372036854775808\r\n\r\n"),
    ("HTTP/9.9", b"GET /metrics HTTP/9.9\r\n\r\n"), ("HTTP/0.9", b"GET /metrics\r\n\r\n"),
    ("a path of 1 MiB", b"GET /" + b"x" * (1 << 20) + b" HTTP/1.1\r\n\r\n"),
    ("100,000 headers", b"GET /metrics HTTP/1.1\r\n" + b"a: b\r\n" * 100_000 + b"\r\n"),
    ("zeros", b"\0" * 10_000), ("a TLS ClientHello", bytes.fromhex("16030100a5010000a10303") + b"Z" * 160),
    ("an HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ("a thousand requests in one", b"GET /healthz HTTP/1.1\r\n\r\n" * 1000),
    ("1 MiB without a line", b"x" * (1 << 20)),
    ("a chunked body", b"GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n"),
]


def add_http(name, data):
    def run(ctx):
        answer = http(ctx, data)
        if ctx.check(answer is not None, "the connection stays open"):
            ctx.check(b"root:" not in answer, "a file was served")
            ctx.notes.append(answer[:30].decode("latin-1").split("\r")[0])
    add_case(f"admin/http: {name}", run, short=name == "a path of 1 MiB")


for _name, _data in HTTP:
    add_http(_name, _data)


@case("admin/http: 400 connections that send nothing, beside a probe", short=True)
def silent_http(ctx):
    silent = [socket.create_connection(ctx.server.http_address, ctx.patience(5)) for _ in range(400)]
    try:
        answer = http(ctx, b"GET /healthz HTTP/1.1\r\n\r\n")
        ctx.check(answer is not None and b"200" in answer[:20], f"/healthz answered {answer!r}")
    finally:
        for sock in silent:
            sock.close()


@case("admin/http: 200 readers of /metrics that do not read")
def unread_metrics(ctx):
    sockets = []
    for _ in range(200):
        sock = socket.create_connection(ctx.server.http_address, ctx.patience(5))
        sock.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        sockets.append(sock)
    ctx.check(ctx.server.metrics()["softlookup_ready"] == 1, "it is not ready")
    for sock in sockets:
        sock.close()
