"""Streams that end, stop, change their store, or are reset where nobody expects it."""
import functools

import contract
import http2
from cases import add_case, case
from contract import KNOWN_STORE, SCRATCH_STORE, new
from grpc_call import headers_of, prefixed
from http2 import frame
from protobytes import UNPARSABLE

JUNK = dict(UNPARSABLE)["a varint cut"]
LOOKUP = contract.METHODS["StreamLookup"]


def stream_bytes(number, path, messages, metadata=(), end=True):
    """A whole stream as frames, to be sent at once with others."""
    block = http2.hpack.encode_headers(headers_of(path, None, metadata))
    data = b"".join(prefixed(message) for message in messages)
    return (frame(http2.HEADERS, http2.END_HEADERS, number, block) +
            frame(http2.DATA, http2.END_STREAM if end else 0, number, data))


def differing_stores(ctx, connections, count, name_bytes):
    """Two threads of the server wrote the name of the stream's store at once: the heap was
    corrupted. That takes a stream at a time on several connections, and luck."""
    messages = [contract.lookup_request(store, queries=1).SerializeToString()
                for store in ("", "first/" + "a" * name_bytes, "second/" + "b" * (name_bytes + 11))]

    open_connections = [ctx.connect() for _ in range(connections)]
    block = http2.hpack.encode_headers(headers_of(LOOKUP.path, None, ctx.access.metadata))
    data = b"".join(prefixed(message) for message in messages)

    def one_connection(connection):
        for done in range(count):
            number = connection.next_stream
            connection.next_stream += 2
            stream = connection.streams[number] = http2.Stream(number, connection.initial_window)
            connection.send(frame(http2.HEADERS, http2.END_HEADERS, number, block) +
                            frame(http2.DATA, http2.END_STREAM, number, data))
            connection.wait(lambda: stream.over, 10 * ctx.scale)
            if connection.closed or not stream.over:
                ctx.problem(f"after {done} streams of a connection: "
                            f"{'closed' if connection.closed else 'no answer'}")
                return
            del connection.streams[number]
    ctx.in_threads([functools.partial(one_connection, connection)
                    for connection in open_connections])


@case("defect-1/StreamLookup: no store, then two long ones together, 16,000 streams", short=True,
      fresh=True, seconds=60)
def differing_stores_short(ctx):
    differing_stores(ctx, 8, 2000, 100)


@case("defect-1/StreamLookup: no store, then two long ones together, 144,000 streams", fresh=True,
      seconds=240, megabytes=110, memory_megabytes=16)
def differing_stores_long(ctx):
    for connections, count, name_bytes in ((8, 3000, 100), (12, 2000, 300), (16, 1500, 110)) * 2:
        differing_stores(ctx, connections, count, name_bytes)
        if not ctx.server.alive:
            return


def add_third_message(method, name, junk, together):
    """Two good messages, then one that does not parse, then a good one."""
    def run(ctx):
        valid = contract.METHODS[method].valid
        call = ctx.start(method)
        if together:
            call.send_raw(prefixed(valid) * 2 + prefixed(valid + junk) + prefixed(valid))
        else:
            call.send_raw(prefixed(valid) * 2)
            call.wait_messages(2, 5 * ctx.scale)
            call.send_raw(prefixed(valid + junk) + prefixed(valid))
        call.half_close()
        outcome = ctx.finish(call)
        ctx.expect(outcome, contract.INVALID_ARGUMENT, "MALFORMED_MESSAGE")
        # A failing lookup is answered like any other, and does not end the stream.
        answers = 4 if method == "StreamLookup" else 2
        ctx.check(len(outcome.messages) == answers,
                  f"{len(outcome.messages)} answers came, not {answers}")
        if len(outcome.messages) == 4:
            error = contract.MESSAGES["LookupResponse"].FromString(outcome.messages[2]).error
            ctx.check(error.code == contract.INVALID_ARGUMENT, f"the third answer: {error}")
    how = "together" if together else "after two answers"
    add_case(f"defect-4/{method}: the third message is {name}, {how}", run, short=name == "a varint cut")


for _name, _junk in UNPARSABLE:
    for _method in ("StreamAppend", "StreamLookup"):
        add_third_message(_method, _name, _junk, together=len(_name) % 2 == 0)
        if _name == "a varint cut":
            add_third_message(_method, _name, _junk, together=len(_name) % 2 != 0)


@case("streams/StreamAppend: what is behind a message that does not parse is not applied", short=True)
def nothing_behind_junk(ctx):
    def rows():
        outcome = ctx.call("GetStore", new("GetStoreRequest", name=SCRATCH_STORE))
        return contract.MESSAGES["Store"].FromString(outcome.messages[0]).row_count
    before = rows()
    valid = contract.METHODS["StreamAppend"].valid
    call = ctx.start("StreamAppend")
    call.send_raw(prefixed(valid) + prefixed(valid + JUNK) + prefixed(valid) * 20)
    call.half_close()
    ctx.finish(call)
    ctx.check(rows() == before + 1, f"{rows() - before} rows were appended, not 1")


# How streams and calls may end in the middle: (name, DATA, end of the stream?, whole messages)
WHOLE, PART = prefixed(LOOKUP.valid), prefixed(LOOKUP.valid)[:-10]
UNFINISHED = [
    ("no message", b"", True, 0), ("one byte of a prefix", b"\0", True, 0),
    ("a prefix of four bytes", b"\0\0\0\0", True, 0),
    ("a prefix alone", prefixed(b"", length=10), True, 0), ("half a message", PART, True, 0),
    ("a message and half of the next", WHOLE + PART, True, 1),
    ("a declared length of 2^32-1", prefixed(b"x" * 100, length=0xFFFFFFFF), True, 0),
    ("a declared length of 2^31", prefixed(b"x" * 100, length=1 << 31), True, 0),
    ("a declared length of 2^32-1, left open", prefixed(b"x" * 100, length=0xFFFFFFFF), False, 0),
    ("a declared length over the limit, left open", prefixed(b"x" * 100, length=1 << 30), False, 0),
    ("compressed without an encoding", prefixed(LOOKUP.valid, compressed=1), True, 1),
    ("compressed flag 2", prefixed(LOOKUP.valid, compressed=2), True, 1),
    ("compressed flag 255", prefixed(LOOKUP.valid, compressed=255), True, 1),
]


def add_unfinished(name, method, data, end, whole):
    def run(ctx):
        call = ctx.start(method, 2.0)
        call.send_raw(data, end)
        outcome = ctx.finish(call)
        ctx.notes.append(str(outcome))
        # gRPC takes the end of a stream within a message for its end: nothing of it may be answered.
        ctx.expect_ended(outcome)
        ctx.check(len(outcome.messages) <= whole, f"{len(outcome.messages)} answers, of {whole}")
        if not end or not (whole or method.startswith("Stream")):
            ctx.expect_refused(outcome)
    add_case(f"streams/{method}: {name}", run, short=method == "Lookup" and "2^32-1" in name)


for _name, _data, _end, _whole in UNFINISHED:
    for _method in ("Lookup", "StreamLookup", "StreamAppend"):
        add_unfinished(_name, _method, _data, _end, _whole)


@case("streams/Lookup: two messages in a unary call")
def two_messages_in_a_unary_call(ctx):
    ctx.expect_ended(ctx.call("Lookup", LOOKUP.valid, LOOKUP.valid))


@case("defect-10/StreamAppend: a second store that exists is written to or refused, not missing",
      short=True)
def second_store_of_an_append_stream(ctx):
    ctx.expect(ctx.call("CreateStore", contract.METHODS["CreateStore"].request()), contract.OK)
    outcome = ctx.call("StreamAppend", contract.append_request(1, SCRATCH_STORE),
                       contract.append_request(1, "made"))
    ctx.expect(outcome, (contract.OK, contract.INVALID_ARGUMENT))
    ctx.check(len(outcome.messages) == (2 if outcome.code == contract.OK else 1),
              f"{len(outcome.messages)} answers, {outcome}")


@case("streams/StreamLookup: a second store that exists is read or refused", short=True)
def second_store_of_a_lookup_stream(ctx):
    outcome = ctx.call("StreamLookup", contract.lookup_request(KNOWN_STORE),
                       contract.lookup_request(SCRATCH_STORE), contract.lookup_request("nobody/s"),
                       contract.lookup_request(""))
    ctx.expect(outcome, contract.OK)
    codes = [contract.MESSAGES["LookupResponse"].FromString(message).error.code
             for message in outcome.messages]
    ctx.check(len(codes) == 4 and codes[0] == 0 and codes[2] == contract.NOT_FOUND,
              f"the codes are {codes}")


@case("streams/a stream whose first message names no store", short=True)
def no_store_first(ctx):
    ctx.expect(ctx.call("StreamAppend", contract.append_request(1, "")),
               (contract.INVALID_ARGUMENT, contract.NOT_FOUND))


# At most 2,048 calls of some 18 KiB are taken before the connection is cut (docs/limits.md).
@case("streams/20,000 calls opened and reset at once: rapid reset", short=True, fresh=True, seconds=60,
      memory_megabytes=16)
def rapid_reset(ctx):
    # The frames of a call are 240 bytes.
    connection = ctx.connect()
    for _ in range(200):
        first = connection.next_stream
        data = b"".join(
            stream_bytes(number, contract.METHODS["Lookup"].path, [LOOKUP.valid], end=False) +
            http2.rst_stream(number) for number in range(first, first + 200, 2))
        connection.next_stream += 200
        if not connection.send(data):
            break
    connection.wait_processed(20 * ctx.scale)
    ctx.expect_cut_for_its_rate(connection)


@case("streams/800 calls reset at once, and again, have the connection cut", short=True, seconds=60)
def reset_in_bursts(ctx):
    connection = ctx.connect()
    block = http2.hpack.encode_headers(headers_of(contract.METHODS["GetStore"].path))
    # A second that ends in the middle of a burst counts each half for itself: another burst follows.
    for _ in range(10):
        numbers = range(connection.next_stream, connection.next_stream + 1600, 2)
        connection.next_stream += 1600
        connection.send(b"".join(frame(http2.HEADERS, http2.END_HEADERS, number, block) for number in numbers))
        while not connection.closed and ctx.server.calls_in_progress() < 800:
            connection.poll(0.01)
        connection.send(b"".join(http2.rst_stream(number) for number in numbers))
        while not connection.closed and ctx.server.calls_in_progress() > 0:
            connection.poll(0.01)
        if connection.closed:
            break
    ctx.expect_cut_for_its_rate(connection)


@case("streams/20,000 lookups with a deadline of a nanosecond", fresh=True, seconds=60)
def nanosecond_deadlines(ctx):
    connection = ctx.connect()
    late = http2.hpack.encode_headers(headers_of(LOOKUP.path) + [("grpc-timeout", "1n")])
    for _ in range(200):
        first = connection.next_stream
        connection.next_stream += 200
        if not connection.send(b"".join(frame(http2.HEADERS, http2.END_HEADERS, number, late)
                                        for number in range(first, first + 200, 2))):
            break
        connection.poll(0)
    connection.wait_processed(20 * ctx.scale)
    ctx.notes.append("closed" if connection.closed or connection.goaway else "the connection lives")


@case("streams/20,000 calls of unknown methods whose answers nobody reads", fresh=True, seconds=60)
def unread_unknown_methods(ctx):
    connection = ctx.connect(acknowledge=False, small_buffers=True)
    block = http2.hpack.encode_headers(headers_of("/softlookup.v1.SoftLookup/Nothing"))
    for _ in range(200):
        first = connection.next_stream
        connection.next_stream += 200
        data = b"".join(frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, number, block)
                        for number in range(first, first + 200, 2))
        try:
            connection.socket.settimeout(0.5)
            connection.socket.sendall(data)
            ctx.meter.sent += len(data)
        except OSError:
            break  # It is cut, or the server reads no more.


@case("streams/HEADERS and RST_STREAM 20,000 times, without a message", seconds=60, memory_megabytes=16)
def rapid_reset_of_headers(ctx):
    # docs/limits.md: 2,048 calls may be cancelled before the connection is cut, and each takes some
    # 18 KiB until its end has been seen. How many are there at once is the scheduler's luck.
    connection = ctx.connect()
    block = http2.hpack.encode_headers(headers_of(LOOKUP.path))
    for _ in range(200):
        first = connection.next_stream
        connection.next_stream += 200
        connection.send(b"".join(frame(http2.HEADERS, http2.END_HEADERS, number, block) +
                                 http2.rst_stream(number) for number in range(first, first + 200, 2)))
        connection.poll(0)
    connection.wait_processed(20 * ctx.scale)


@case("streams/appends cancelled in the middle of a message", short=True)
def cancelled_messages(ctx):
    for size in range(0, 120, 3):
        call = ctx.start("StreamAppend")
        call.send_raw(prefixed(contract.METHODS["StreamAppend"].valid)[:size])
        call.reset()


@case("streams/a cancel storm of lookups on eight connections", seconds=60)
def cancel_storm(ctx):
    def storm():
        connection = ctx.connect()
        for i in range(600):
            call = ctx.start("Lookup", connection=connection)
            call.send(LOOKUP.valid, end=True)
            connection.poll(0.001 * (i % 3))
            call.reset()
    ctx.in_threads([storm] * 8)


@case("streams/lookups that are never read: 3,000 on one stream", fresh=True, memory_megabytes=8)
def lookups_never_read(ctx):
    connection = ctx.connect(settings={http2.SETTINGS_INITIAL_WINDOW_SIZE: 0}.items())
    call = ctx.start("StreamLookup", None, connection)
    message = contract.lookup_request(queries=100).SerializeToString()
    for _ in range(3000):
        # Beyond what the server reads ahead, it gives no window.
        if call.stream.send_window < len(message) + 5 or connection.send_window < len(message) + 5:
            connection.poll(0.2)
            if call.stream.send_window < len(message) + 5:
                break
        call.send(message)
    ctx.notes.append(f"{ctx.meter.sent >> 10} KiB were taken")
    ctx.check(ctx.meter.sent < 4 << 20, "the server read on without being read")


@case("streams/messages in pieces of every size", short=True)
def messages_in_pieces(ctx):
    data = prefixed(LOOKUP.valid) * 3
    for size in (1, 2, 3, 5, 7, 64, 100):
        call = ctx.start("StreamLookup")
        for at in range(0, len(data), size):
            call.send_raw(data[at:at + size])
        call.half_close()
        outcome = ctx.finish(call)
        ctx.expect(outcome, contract.OK)
        ctx.check(len(outcome.messages) == 3, f"{len(outcome.messages)} answers")
