"""Clients that send or read slowly, or wait for ever: what they hold is let go in time."""
import threading
import time

import contract
import grpc_call
import http2
from cases import case
from contract import KNOWN_STORE, SCRATCH_STORE, new
from grpc_call import prefixed
from http2 import frame
from limits import store_of

MIB = 1 << 20
LOOKUP = contract.METHODS["Lookup"]

# What held bytes may be after the server's time limit: a part of a queue may stay.
HELD_MAX = 48 * MIB
# The limits of the servers with short_timeouts() act within this, times the scale.
LET_GO_SECONDS = 20


def short_timeouts(workspace):
    return workspace.short_timeouts()


def short_timeouts_and_few_connections(workspace):
    return (*workspace.short_timeouts(), "--max-connections=50")


def expect_let_go(ctx, before, connections, what):
    """The server lets go of what is held, while the connections that hold it stay open."""
    until = time.monotonic() + LET_GO_SECONDS * ctx.scale
    highest = ctx.server.memory() - before
    while True:
        held = ctx.server.memory() - before
        if held < HELD_MAX or ctx.server.sanitized or time.monotonic() > until:
            break
        connections[0].poll(0.1)
    ctx.notes.append(f"held {highest / MIB:.0f} MiB at first, {held / MIB:.0f} MiB in the end")
    ctx.check(held < HELD_MAX or ctx.server.sanitized, f"{held / MIB:.0f} MiB are held by {what}")


@case("defect-7/64 messages of 2 MB of which all but the last byte was sent", fresh=True,
      short=True, flags=short_timeouts, needs=("--stall-timeout",), seconds=60, megabytes=140)
def all_but_the_last_byte(ctx):
    before = ctx.server.memory()
    connections = [ctx.connect() for _ in range(8)]
    request = new("AppendRequest", store=SCRATCH_STORE, keys={"rows": 1, "cols": 4, "data": bytes(2 * MIB)})
    data = prefixed(request.SerializeToString())[:-1]

    def hold(connection):
        for _ in range(8):
            call = ctx.start("Append", None, connection)
            until = time.monotonic() + 5 * ctx.scale
            # The server may refuse to take more, or end the call.
            for at in range(0, len(data), 16384):
                part = data[at:at + 16384]
                connection.wait(lambda: call.stream.over or min(
                    connection.send_window, call.stream.send_window) >= len(part),
                    max(0.0, until - time.monotonic()))
                if call.stream.over or min(connection.send_window, call.stream.send_window) < len(part):
                    break
                call.send_raw(part)
    ctx.in_threads([lambda connection=connection: hold(connection) for connection in connections])
    expect_let_go(ctx, before, connections, "messages that are not whole")


@case("defect-7/64 lookups of 2 MB for a revision that never comes, without a deadline", fresh=True,
      short=True, flags=short_timeouts, needs=("--stall-timeout",), seconds=60, megabytes=140)
def revision_that_never_comes(ctx):
    cols = 128
    store_of(ctx, "wide", 8, cols)
    before = ctx.server.memory()
    queries = {"rows": 4096, "cols": cols, "data": bytes(4096 * cols * 4)}
    request = new("LookupRequest", store="wide", queries=queries, min_revision=1 << 60).SerializeToString()

    connections = [ctx.connect() for _ in range(8)]

    def ask(connection):
        for _ in range(8):
            ctx.start("Lookup", None, connection).send(request, end=True)
        connection.poll(0.5)
    ctx.in_threads([lambda connection=connection: ask(connection) for connection in connections])
    expect_let_go(ctx, before, connections, "lookups that wait")


@case("defect-7/3,000 small lookups for a revision that never comes end at their deadlines", short=True,
      memory_megabytes=64)
def revision_with_deadlines(ctx):
    connections = [ctx.connect() for _ in range(3)]
    request = contract.lookup_request(min_revision=1 << 60).SerializeToString()
    calls = []
    for connection in connections:
        for _ in range(1000):
            calls.append(ctx.start("Lookup", 2.0, connection))
            calls[-1].send(request, end=True)
    ends = {contract.code_name(ctx.finish(call).code) for call in calls}
    ctx.check(ends <= {"DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "CANCELLED"}, f"they ended {ends}")


@case("slow/500 lookups for a revision that never comes say DEADLINE_EXCEEDED")
def waiting_lookups_say_why_they_ended(ctx):
    request = contract.lookup_request(min_revision=1 << 60).SerializeToString()
    calls = [ctx.start("Lookup", 0.5) for _ in range(500)]
    for call in calls:
        call.send(request, end=True)
    outcomes = [ctx.finish(call) for call in calls]
    # gRPC itself, which gives no reason, may say CANCELLED first. Its clients know their deadline.
    by_grpc = [outcome for outcome in outcomes
               if outcome.code == contract.CANCELLED and outcome.reason is None]
    ctx.notes.append(f"{len(by_grpc)} were ended by gRPC as CANCELLED")
    for outcome in outcomes:
        if outcome not in by_grpc:
            ctx.expect(outcome, contract.DEADLINE_EXCEEDED)


@case("slow/a handshake that stalls on more connections than there may be", short=True, fresh=True,
      flags=short_timeouts_and_few_connections, seconds=60)
def stalled_handshakes(ctx):
    connections = []
    for i in range(49):
        connections.append(ctx.connect(settings=None))
        connections[-1].send(http2.PREFACE[:i % 24])
    # Beyond the handshake's time those are closed, and another client gets in.
    for connection in connections:
        ctx.check(connection.wait_closed(6 * ctx.scale), "a stalled handshake stays")
    ctx.expect(ctx.call("Lookup", LOOKUP.valid), contract.OK)


@case("slow/more connections than there may be: those that are there go on", fresh=True,
      flags=("--max-connections=20",), seconds=60)
def too_many_connections(ctx):
    first = ctx.connect()
    ctx.expect(ctx.call("Lookup", LOOKUP.valid, connection=first), contract.OK)
    others = [ctx.connect(settings=None) for _ in range(200)]
    closed = sum(bool(connection.wait_closed(ctx.patience(0.05))) for connection in others)
    ctx.check(closed >= 180, f"only {closed} of 200 were closed")
    ctx.expect(ctx.call("Lookup", LOOKUP.valid, connection=first), contract.OK)


@case("slow/a lookup whose message comes a byte every 10 ms", short=True)
def message_byte_by_byte(ctx):
    call = ctx.start("Lookup", ctx.patience(20))
    for byte in prefixed(LOOKUP.valid):
        call.send_raw(bytes([byte]))
        ctx.connection.poll(0.01)
    call.half_close()
    ctx.expect(ctx.finish(call), contract.OK)


@case("slow/200 calls that send headers and nothing more", flags=short_timeouts, fresh=True)
def headers_and_nothing(ctx):
    connection = ctx.connect()
    calls = [ctx.start("Append", None, connection) for _ in range(200)]
    connection.wait(lambda: all(call.stream.over for call in calls), 3 * ctx.scale)
    ctx.notes.append(f"{sum(call.stream.over for call in calls)} were ended")


@case("slow/a block of headers of which the end never comes", flags=short_timeouts)
def headers_without_end(ctx):
    connection = ctx.connect()
    connection.send(frame(http2.HEADERS, 0, 1, http2.hpack.encode_headers(
        grpc_call.headers_of(LOOKUP.path))))
    connection.wait_closed(3 * ctx.scale)
    ctx.notes.append("closed" if connection.closed else "it stays open")


def reader_that_does_not_read(ctx, method, request, window=100):
    """A call whose answers the client has no window for."""
    connection = ctx.connect(settings={http2.SETTINGS_INITIAL_WINDOW_SIZE: window}.items(),
                             give_windows=False)
    call = ctx.start(method, None, connection)
    call.send(request.SerializeToString(), end=True)
    return connection, call


@case("slow/a ReadRows that nobody reads is ended after the stall timeout", short=True, fresh=True,
      flags=short_timeouts, needs=("--stall-timeout",), seconds=60)
def stalled_export(ctx):
    store_of(ctx, "exported", 20_000, 8)
    connection, call = reader_that_does_not_read(ctx, "ReadRows", new("ReadRowsRequest", store="exported"))
    ctx.check(call.wait_over(15 * ctx.scale), "the export goes on for ever")
    connection.close()


@case("slow/a hundred ReadRows that nobody reads, of a store that is deleted", fresh=True, seconds=60,
      memory_megabytes=64)
def stalled_exports_of_a_deleted_store(ctx):
    store_of(ctx, "exported", 50_000, 8)
    for _ in range(100):
        reader_that_does_not_read(ctx, "ReadRows", new("ReadRowsRequest", store="exported"))
    ctx.expect(ctx.call("DeleteStore", new("DeleteStoreRequest", **{"name": "exported"})), contract.OK)


@case("slow/an export read a few bytes at a time", seconds=60)
def slowly_read_export(ctx):
    connection, call = reader_that_does_not_read(ctx, "ReadRows",
                                                 new("ReadRowsRequest", store=KNOWN_STORE))
    for _ in range(50):
        got = len(call.stream.data)
        connection.send(http2.window_update(call.stream.number, 7))
        connection.wait(lambda: len(call.stream.data) > got, ctx.patience(1.0))
    ctx.check(400 < len(call.stream.data) < 600, f"{len(call.stream.data)} bytes came")


@case("slow/large answers that 20 connections do not take", fresh=True, seconds=60,
      megabytes=20, memory_megabytes=512)
def untaken_answers(ctx):
    # docs/limits.md: 64 MiB of a connection and 256 MiB of all may wait, and are counted twice.
    request = contract.lookup_request(queries=4096, options={"weights": 2, "top_weights": 100})
    for _ in range(20):
        connection = ctx.connect(settings={http2.SETTINGS_INITIAL_WINDOW_SIZE: 0}.items(),
                                 give_windows=False)
        for _ in range(10):
            ctx.start("Lookup", None, connection).send(request.SerializeToString(), end=True)
    threading.Event().wait(2.0)  # Nothing tells a client that the server holds what it may not send.


@case("slow/WatchMemory on 300 streams that are not read while rows come", fresh=True, memory_megabytes=16)
def unread_watches(ctx):
    connection = ctx.connect(settings={http2.SETTINGS_INITIAL_WINDOW_SIZE: 0}.items(), give_windows=False)
    for _ in range(300):
        ctx.start("WatchMemory", None, connection).send(
            new("WatchMemoryRequest", store=SCRATCH_STORE).SerializeToString(), end=True)
    for _ in range(100):
        ctx.expect(ctx.call("Append", contract.append_request(1)), contract.OK)


@case("slow/100 appends a connection on a stream that is not read", fresh=True, memory_megabytes=16)
def unread_acknowledgements(ctx):
    connection = ctx.connect(settings={http2.SETTINGS_INITIAL_WINDOW_SIZE: 0}.items(), give_windows=False)
    call = ctx.start("StreamAppend", None, connection)
    message = prefixed(contract.append_request(64).SerializeToString())
    for _ in range(2000):
        if min(call.stream.send_window, connection.send_window) < len(message):
            connection.poll(0.2)
            if min(call.stream.send_window, connection.send_window) < len(message):
                break
        call.send_raw(message)
    ctx.notes.append(f"{ctx.meter.sent >> 10} KiB were taken")
