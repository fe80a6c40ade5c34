"""Floods of frames and calls: the server keeps up, or ends the connection; others are answered."""
import os
import struct
import time

import contract
import http2
from cases import add_case, case
from contract import KNOWN_STORE, SCRATCH_STORE, new
from grpc_call import headers_of, prefixed
from http2 import frame
from protobytes import block

LOOKUP = contract.METHODS["Lookup"]
MIB = 1 << 20


def flood(ctx, connection, data, times):
    """Sends it again and again until the server ends the connection or has read it all."""
    for _ in range(times):
        if not connection.send(data) or connection.goaway:
            break
    ctx.check(connection.goaway or connection.wait_processed(20 * ctx.scale), "the server reads no more")
    ctx.notes.append("ended by the server" if connection.closed or connection.goaway else "borne")


# Frames sent in a row: (name, frame, how often in one write, writes).
FRAMES = [
    ("SETTINGS", http2.settings_frame({}), 1000, 100),
    ("SETTINGS of a hundred values", frame(http2.SETTINGS, 0, 0, struct.pack(">HI", 3, 100) * 100), 50, 200),
    ("SETTINGS that change all windows", http2.settings_frame(
        {http2.SETTINGS_INITIAL_WINDOW_SIZE: 1}) + http2.settings_frame(
        {http2.SETTINGS_INITIAL_WINDOW_SIZE: 1 << 20}), 500, 50),
    ("SETTINGS ACK", frame(http2.SETTINGS, http2.ACK), 1000, 50),
    ("PING", frame(http2.PING, 0, 0, b"12345678"), 1000, 100),
    ("PING ACK", frame(http2.PING, http2.ACK, 0, b"12345678"), 1000, 50),
    ("WINDOW_UPDATE of one byte", http2.window_update(0, 1), 1000, 100),
    ("WINDOW_UPDATE of a closed stream", http2.window_update(1, 1), 1000, 50),
    ("RST_STREAM of a closed stream", http2.rst_stream(1), 1000, 50),
    ("PRIORITY", frame(http2.PRIORITY, 0, 1, struct.pack(">IB", 3, 7)), 1000, 50),
    ("PRIORITY of ever new streams", b"".join(
        frame(http2.PRIORITY, 0, number, struct.pack(">IB", 0, 7)) for number in range(1, 2001, 2)), 1, 50),
    ("empty DATA", frame(http2.DATA, 0, 1), 1000, 100),
    ("unknown frames", frame(0xEE, 0, 0, b"x" * 50), 1000, 50),
    ("GOAWAY", frame(http2.GOAWAY, 0, 0, b"\0" * 8), 1000, 20),
]


def add_frames(name, data, at_once, writes):
    def run(ctx):
        connection = ctx.connect(give_windows=False)
        call = ctx.start("StreamLookup", None, connection)
        call.send(LOOKUP.valid)
        call.wait_messages(1, 5 * ctx.scale)
        flood(ctx, connection, data * at_once, writes)
    add_case(f"floods/frames: {at_once * writes:,} of {name}", run, short=name == "SETTINGS")


for _row in FRAMES:
    add_frames(*_row)


@case("floods/100,000 PINGs of a client that does not read", fresh=True)
def pings_unread(ctx):
    connection = ctx.connect(small_buffers=True)
    pings = frame(http2.PING, 0, 0, b"12345678") * 1000
    for _ in range(100):
        try:
            ctx.meter.sent += connection.socket.send(pings)
        except OSError:
            break  # Its buffers are full, or the connection is ended: both are right.


@case("floods/CONTINUATION without an end: 4 MB of one header block", fresh=True)
def continuation_without_end(ctx):
    connection = ctx.connect()
    connection.send(frame(http2.HEADERS, 0, 1, http2.hpack.encode_headers(headers_of(LOOKUP.path))))
    part = http2.hpack.encode_headers([("x-more", "y" * 16_000)])
    # A PING within a block of headers is an error as well, so the connection ends in any case.
    flood(ctx, connection, frame(http2.CONTINUATION, 0, 1, part), 260)
    ctx.expect_cut_off(connection, "an endless header block", 3.0)


@case("floods/20,000 empty CONTINUATIONs")
def empty_continuations(ctx):
    connection = ctx.connect()
    connection.send(frame(http2.HEADERS, 0, 1, http2.hpack.encode_headers(headers_of(LOOKUP.path))))
    flood(ctx, connection, frame(http2.CONTINUATION, 0, 1) * 1000, 20)


@case("floods/20,000 small headers in one call", fresh=True)
def many_small_headers(ctx):
    connection = ctx.connect()
    more = [("x", "y")] * 20_000
    data = http2.hpack.encode_headers(headers_of(LOOKUP.path) + more)
    connection.send(frame(http2.HEADERS, 0, 1, data[:16_000]))
    for at in range(16_000, len(data), 16_000):
        last = at + 16_000 >= len(data)
        connection.send(frame(http2.CONTINUATION, http2.END_HEADERS if last else 0, 1,
                              data[at:at + 16_000]))
    connection.poll(1.0)


@case("floods/an HPACK bomb: one header of 3 KB named 20,000 times", fresh=True, seconds=60)
def hpack_bomb(ctx):
    connection = ctx.connect()
    entry = b"\x40" + http2.hpack.encode_string("x-bomb") + http2.hpack.encode_string("b" * 3000)
    base = http2.hpack.encode_headers(headers_of(LOOKUP.path))
    connection.send(frame(http2.HEADERS, http2.END_HEADERS, 1, base + entry))
    # 62 is the newest entry of the dynamic table.
    connection.send(frame(http2.HEADERS, http2.END_HEADERS, 3, base + b"\xbe" * 10_000))
    connection.send(frame(http2.HEADERS, http2.END_HEADERS, 5, base + b"\xbe" * 10_000))
    connection.poll(1.0)


@case("defect-9/12.7 MB of one header", fresh=True, seconds=120, megabytes=16,
      liveness_only="known: needs the proxy. gRPC itself takes the header in")
def endless_header_value(ctx):
    connection = ctx.connect()
    size = 12_700_000
    data = http2.hpack.encode_headers(headers_of(LOOKUP.path)) + b"\0" + http2.hpack.encode_string(
        "x-endless") + http2.hpack.encode_integer(size, 7) + b"x" * size
    before = ctx.server.cpu_seconds()
    connection.send(frame(http2.HEADERS, 0, 1, data[:16_384]))
    for at in range(16_384, len(data), 16_384):
        last = at + 16_384 >= len(data)
        if not connection.send(frame(http2.CONTINUATION, http2.END_HEADERS if last else 0, 1,
                                     data[at:at + 16_384])):
            break
    connection.wait(lambda: connection.goaway, 5 * ctx.scale)
    ctx.notes.append(f"{ctx.meter.sent / MIB:.1f} MiB were taken in {ctx.server.cpu_seconds() - before:.1f} s of CPU")


@case("defect-6/5,000 calls on a connection that never acknowledges SETTINGS", short=True, fresh=True,
      seconds=60, memory_megabytes=40)
def calls_without_acknowledgement(ctx):
    connection = ctx.connect(acknowledge=False)
    request = contract.lookup_request(min_revision=1 << 60, queries=1).SerializeToString()
    calls = []
    for i in range(5000):
        calls.append(ctx.start("Lookup", None, connection))
        # Windows are kept to: that, too, would end the connection.
        if not calls[-1].send(request, end=True):
            break
        if i % 50 == 0:
            connection.poll(0)
    open_calls = lambda: sum(1 for call in calls if not call.stream.over)
    connection.wait(lambda: open_calls() <= 1024, 5 * ctx.scale)
    ctx.check(open_calls() <= 1024 or connection.closed, f"{open_calls()} calls are not refused")
    # The server's count lags behind the client's. For a moment, it also has the prober's lookup.
    until = time.monotonic() + 5 * ctx.scale
    allowed = 0 if connection.closed else 1024
    while (in_progress := ctx.server.calls_in_progress()) > allowed and time.monotonic() < until:
        connection.poll(0.01)
    ctx.notes.append(f"{in_progress:.0f} in progress")
    ctx.check(in_progress <= allowed, f"{in_progress:.0f} calls are in progress, more than {allowed}")


# Calls made in a row on one connection, many at once: (name, path, request, calls).
CALLS = [
    ("health checks", "/grpc.health.v1.Health/Check", b"", 5000),
    ("health checks of unknown services", "/grpc.health.v1.Health/Check", block(1, "x" * 200), 5000),
    ("calls of unknown methods", "/softlookup.v1.SoftLookup/Nothing", b"", 5000),
    ("lists of backups", contract.METHODS["ListBackups"].path, b"", 5000),
    ("lookups in unknown stores", LOOKUP.path, contract.lookup_request("nobody/s").SerializeToString(), 5000),
    ("deletions of unknown stores", contract.METHODS["DeleteStore"].path,
     contract.METHODS["DeleteStore"].valid, 5000),
    ("renames of unknown stores", contract.METHODS["RenameStore"].path,
     contract.METHODS["RenameStore"].valid, 5000),
    ("compactions of unknown stores", contract.METHODS["CompactStore"].path,
     contract.METHODS["CompactStore"].valid, 5000),
    ("compactions of one store", contract.METHODS["CompactStore"].path,
     new("CompactStoreRequest", name=SCRATCH_STORE, end_memories=True).SerializeToString(), 3000),
    ("lists of stores", contract.METHODS["ListStores"].path, b"", 3000),
    ("updates of one store", contract.METHODS["UpdateStore"].path,
     contract.METHODS["UpdateStore"].valid, 3000),
]


def add_calls(name, path, request, count):
    def run(ctx):
        connection = ctx.connect()
        at_once = 200
        for _ in range(count // at_once):
            calls = [ctx.start(path, ctx.patience(20), connection) for _ in range(at_once)]
            for call in calls:
                call.send(request, end=True)
            for call in calls:
                ctx.expect_ended(ctx.finish(call))
            for call in calls:
                del connection.streams[call.stream.number]
    add_case(f"floods/calls: {count:,} {name}", run, seconds=60, megabytes=16, short=name == "health checks")


for _row in CALLS:
    add_calls(*_row)


REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"


@case("floods/reflection: 3,000 questions on one stream", seconds=60, memory_megabytes=16)
def reflection_flood(ctx):
    call = ctx.start(REFLECTION, ctx.patience(30))
    questions = [block(7, "*"), block(4, "softlookup.v1.SoftLookup"), block(3, "nobody.proto"),
                 block(4, "x" * 1000), b"", block(3, "softlookup/v1/row.proto")]
    for _ in range(500):
        call.send_raw(b"".join(prefixed(question) for question in questions))
    call.half_close()
    ctx.expect_ended(ctx.finish(call))


@case("floods/health: 1,000 watches on one connection", memory_megabytes=16)
def health_watches(ctx):
    connection = ctx.connect()
    calls = [ctx.start("/grpc.health.v1.Health/Watch", None, connection) for _ in range(1000)]
    for call in calls:
        call.send(block(1, os.urandom(20).hex()), end=True)
    connection.wait(lambda: sum(1 for call in calls if call.stream.data) > 900, 5 * ctx.scale)


@case("floods/WatchMemory: 1,000 watches while rows are appended", seconds=60, memory_megabytes=16)
def memory_watches(ctx):
    connection = ctx.connect()
    request = new("WatchMemoryRequest", store=SCRATCH_STORE).SerializeToString()
    calls = [ctx.start("WatchMemory", None, connection) for _ in range(1000)]
    for call in calls:
        call.send(request, end=True)
    for _ in range(50):
        ctx.expect(ctx.call("Append", contract.append_request(1)), contract.OK)
    for call in calls:
        call.reset()


@case("floods/ReadRows: 500 exports begun, and left", memory_megabytes=16)
def exports_left(ctx):
    connection = ctx.connect()
    request = new("ReadRowsRequest", store=KNOWN_STORE, page_rows=1).SerializeToString()
    for _ in range(500):
        call = ctx.start("ReadRows", 5.0, connection)
        call.send(request, end=True)
        connection.poll(0)
        call.reset()
