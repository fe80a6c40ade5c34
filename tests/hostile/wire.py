"""Bytes, frames and headers that no HTTP/2 library sends."""
import socket
import struct
import time

import contract
import grpc_call
import http2
from cases import add_case, case
from grpc_call import headers_of
from http2 import frame

LOOKUP = contract.METHODS["Lookup"]
VALID_MESSAGE = grpc_call.prefixed(LOOKUP.valid)


def raw_exchange(ctx, data, seconds=3.0):
    """Sends bytes on a fresh socket and reads to its end; returns what came, and whether it ended."""
    came = bytearray()
    with socket.create_connection(ctx.server.address, timeout=seconds * ctx.scale) as sock:
        try:
            sock.sendall(data)
            ctx.meter.sent += len(data)
            while True:
                part = sock.recv(65536)
                if not part:
                    return bytes(came), True
                came += part
        except TimeoutError:
            return bytes(came), False
        except OSError:
            return bytes(came), True


# What is no HTTP/2 at all: the server closes, at once or with a GOAWAY before.
NO_HTTP2 = [
    ("an HTTP/1.1 request", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("an HTTP/1.1 upgrade to h2c", b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, "
     b"HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n"),
    ("a TLS ClientHello", bytes.fromhex("16030100a5010000a10303") + b"\x5a" * 160),
    ("an SSH banner", b"SSH-2.0-OpenSSH_9.2\r\n"),
    ("zeros", b"\0" * 4096),
    ("0xFF", b"\xff" * 4096),
    ("a preface with one wrong byte", http2.PREFACE[:-1] + b"X" + http2.settings_frame({})),
    ("a preface twice", http2.PREFACE + http2.PREFACE),
    ("a preface and HEADERS before SETTINGS",
     http2.PREFACE + frame(http2.HEADERS, http2.END_HEADERS, 1, b"")),
    ("a preface and a frame of 16 MiB declared",
     http2.PREFACE + frame(http2.SETTINGS, 0, 0, b"", length=(1 << 24) - 1) + b"\0" * 20_000),
]


def add_no_http2(name, data):
    def run(ctx):
        _, ended = raw_exchange(ctx, data, 12.0)
        ctx.check(ended, "the connection stays open")
    add_case(f"wire/{name}", run, short=name.startswith(("an HTTP/1.1 req", "a TLS")))


for _name, _data in NO_HTTP2:
    add_no_http2(_name, _data)

# Frames that RFC 9113 calls an error of the connection. All come behind a good preface and a call.
BAD_FRAMES = [
    ("DATA on stream 0", frame(http2.DATA, 0, 0, b"x")),
    ("HEADERS on stream 0", frame(http2.HEADERS, http2.END_HEADERS, 0, b"")),
    ("HEADERS on an even stream",
     frame(http2.HEADERS, http2.END_HEADERS, 2, http2.hpack.encode_headers(headers_of(LOOKUP.path)))),
    ("DATA on a stream that was never opened", frame(http2.DATA, 0, 99, b"x")),
    ("RST_STREAM on stream 0", http2.rst_stream(0)),
    ("RST_STREAM on an idle stream", http2.rst_stream(101)),
    ("RST_STREAM of five bytes", frame(http2.RST_STREAM, 0, 1, b"12345")),
    ("SETTINGS of five bytes", frame(http2.SETTINGS, 0, 0, b"12345")),
    ("SETTINGS on a stream", frame(http2.SETTINGS, 0, 1, b"")),
    ("SETTINGS ACK with a payload", frame(http2.SETTINGS, http2.ACK, 0, b"123456")),
    ("SETTINGS with a window of 2^32-1",
     http2.settings_frame({http2.SETTINGS_INITIAL_WINDOW_SIZE: (1 << 32) - 1})),
    ("SETTINGS with frames of 1 byte", http2.settings_frame({http2.SETTINGS_MAX_FRAME_SIZE: 1})),
    ("SETTINGS with frames of 2^32-1",
     http2.settings_frame({http2.SETTINGS_MAX_FRAME_SIZE: (1 << 32) - 1})),
    ("SETTINGS with push 2", http2.settings_frame({http2.SETTINGS_ENABLE_PUSH: 2})),
    ("PING of seven bytes", frame(http2.PING, 0, 0, b"1234567")),
    ("PING on a stream", frame(http2.PING, 0, 1, b"12345678")),
    ("WINDOW_UPDATE of three bytes", frame(http2.WINDOW_UPDATE, 0, 0, b"123")),
    ("WINDOW_UPDATE of 0 for the connection", http2.window_update(0, 0)),
    ("WINDOW_UPDATE of 0 for a stream", http2.window_update(1, 0)),
    ("WINDOW_UPDATE beyond 2^31-1 for the connection", http2.window_update(0, (1 << 31) - 1) * 3),
    ("WINDOW_UPDATE beyond 2^31-1 for a stream", http2.window_update(1, (1 << 31) - 1) * 3),
    ("PRIORITY of four bytes", frame(http2.PRIORITY, 0, 1, b"1234")),
    ("PRIORITY that depends on itself", frame(http2.PRIORITY, 0, 1, struct.pack(">IB", 1, 1))),
    ("PUSH_PROMISE from a client",
     frame(http2.PUSH_PROMISE, http2.END_HEADERS, 1, struct.pack(">I", 2))),
    ("CONTINUATION without HEADERS", frame(http2.CONTINUATION, http2.END_HEADERS, 1, b"")),
    ("GOAWAY on a stream", frame(http2.GOAWAY, 0, 1, b"\0" * 8)),
    ("GOAWAY of four bytes", frame(http2.GOAWAY, 0, 0, b"\0" * 4)),
    ("HEADERS with padding longer than the frame",
     frame(http2.HEADERS, http2.END_HEADERS | http2.PADDED, 3, b"\xff")),
    ("DATA with padding longer than the frame", frame(http2.DATA, http2.PADDED, 1, b"\xff")),
    ("DATA with an empty padded payload", frame(http2.DATA, http2.PADDED, 1, b"")),
    ("HEADERS with a priority cut",
     frame(http2.HEADERS, http2.END_HEADERS | http2.PRIORITY_FLAG, 3, b"\0")),
    ("HEADERS, then DATA before END_HEADERS",
     frame(http2.HEADERS, 0, 3, b"") + frame(http2.DATA, 0, 1, b"x")),
    ("HEADERS, then CONTINUATION of another stream",
     frame(http2.HEADERS, 0, 3, b"") + frame(http2.CONTINUATION, http2.END_HEADERS, 5, b"")),
    ("a DATA frame of 1 MiB", frame(http2.DATA, 0, 1, b"x" * (1 << 20))),
    ("an unknown frame of 1 MiB", frame(0xEE, 0, 1, b"x" * (1 << 20))),
    ("a frame that declares 2^24-1 bytes and has 20,000",
     frame(http2.DATA, 0, 1, b"x" * 20_000, length=(1 << 24) - 1)),
    ("HPACK: an index beyond the table", frame(http2.HEADERS, http2.END_HEADERS, 3, b"\xff\xff\x7f")),
    ("HPACK: index 0", frame(http2.HEADERS, http2.END_HEADERS, 3, b"\x80")),
    ("HPACK: an integer that does not end", frame(http2.HEADERS, http2.END_HEADERS, 3, b"\xff" * 64)),
    ("HPACK: a string longer than the block",
     frame(http2.HEADERS, http2.END_HEADERS, 3, b"\x00\x7f\xff\xff\x7f")),
    ("HPACK: a Huffman string with an end in it",
     frame(http2.HEADERS, http2.END_HEADERS, 3, b"\x00\x84\xff\xff\xff\xff\x01x")),
    ("HPACK: a table of 2^30 bytes",
     frame(http2.HEADERS, http2.END_HEADERS, 3, http2.hpack.encode_integer(1 << 30, 5, 0x20))),
]


def add_bad_frame(name, data):
    def run(ctx):
        connection = ctx.connect()
        call = ctx.start("Lookup", connection=connection)
        connection.send(data)
        # Whatever the server makes of the frame, the connection ends or this call goes on as ever.
        call.send(LOOKUP.valid, end=True)
        call.wait_over(8 * ctx.scale)
        outcome = call.outcome()
        ctx.check(outcome.refused or outcome.messages != [] or connection.goaway is not None,
                  f"the call hangs: {outcome}")
        ctx.notes.append(str(outcome))
    add_case(f"wire/frame: {name}", run, short=name.startswith(("DATA on stream 0", "HPACK: an int")))


for _name, _data in BAD_FRAMES:
    add_bad_frame(_name, _data)

# Headers of a Lookup that are wrong. (name, changes, may it be served all the same?) gRPC is lenient
# where it does no harm.
BAD_HEADERS = [
    ("no :path", {"without": (":path",)}, False),
    ("no :method", {"without": (":method",)}, False),
    ("no :scheme", {"without": (":scheme",)}, True),
    ("no te", {"without": ("te",)}, True),
    ("no content-type", {"without": ("content-type",)}, True),
    ("no headers at all", {"without": (":method", ":scheme", ":path", ":authority", "te",
                                       "content-type")}, False),
    (":method GET", {"replaced": ((":method", "GET"),)}, False),
    (":method PUT", {"replaced": ((":method", "PUT"),)}, False),
    (":method of 8 KiB", {"replaced": ((":method", "P" * 8192),)}, False),
    (":scheme file", {"replaced": ((":scheme", "file"),)}, True),
    ("te gzip", {"replaced": (("te", "gzip"),)}, True),
    ("content-type text/html", {"replaced": (("content-type", "text/html"),)}, True),
    ("content-type application/grpc-web",
     {"replaced": (("content-type", "application/grpc-web"),)}, True),
    (":path without a slash", {"replaced": ((":path", "Lookup"),)}, False),
    (":path empty", {"replaced": ((":path", ""),)}, False),
    (":path of an unknown method",
     {"replaced": ((":path", "/softlookup.v1.SoftLookup/Nothing"),)}, False),
    (":path of an unknown service", {"replaced": ((":path", "/nobody.v1.Nothing/Lookup"),)}, False),
    (":path with control characters",
     {"replaced": ((":path", LOOKUP.path + "\x1b[2J\r\n\0"),)}, False),
    (":path of 7 KiB", {"replaced": ((":path", "/" + "x" * 7000),)}, False),
    ("a second :path", {"metadata": [(":path", "/other/Path")]}, False),
    ("a second :method", {"metadata": [(":method", "GET")]}, False),
    ("an unknown pseudo-header", {"metadata": [(":unknown", "x")]}, True),
    ("a :status in a request", {"metadata": [(":status", "200")]}, True),
    ("a header of 6 KiB", {"metadata": [("x-large", "x" * 6144)]}, True),
    ("a header of 64 KiB", {"metadata": [("x-large", "x" * 65536)]}, False),
    ("a name in capitals", {"metadata": [("X-Upper", "x")]}, True),
    ("an empty name", {"metadata": [("", "x")]}, True),
    ("a name with spaces", {"metadata": [("a b", "x")]}, True),
    ("a value with control characters", {"metadata": [("x-bell", "\a\x1b[31m\r\n")]}, True),
    ("a value of all bytes", {"metadata": [("x-bytes", bytes(range(256)))]}, True),
    ("a -bin value that is no base64", {"metadata": [("x-data-bin", "*not base64*")]}, True),
    ("connection: close", {"metadata": [("connection", "close")]}, True),
    ("transfer-encoding: chunked", {"metadata": [("transfer-encoding", "chunked")]}, True),
    ("content-length that lies", {"metadata": [("content-length", "1")]}, True),
    ("a grpc-status from a client", {"metadata": [("grpc-status", "0")]}, True),
    ("grpc-timeout -1S", {"metadata": [("grpc-timeout", "-1S")]}, True),
    ("grpc-timeout 99999999999H", {"metadata": [("grpc-timeout", "99999999999H")]}, True),
    ("grpc-timeout abc", {"metadata": [("grpc-timeout", "abc")]}, True),
    ("grpc-timeout empty", {"metadata": [("grpc-timeout", "")]}, True),
    ("grpc-timeout 1x", {"metadata": [("grpc-timeout", "1x")]}, True),
    ("grpc-timeout 1n", {"metadata": [("grpc-timeout", "1n")]}, True),
    ("grpc-timeout 0S", {"metadata": [("grpc-timeout", "0S")]}, True),
    ("grpc-timeout twice", {"metadata": [("grpc-timeout", "1H"), ("grpc-timeout", "1n")]}, True),
]


def add_bad_headers(name, changes, may_serve):
    changes = {"metadata": (), **changes}

    def run(ctx):
        connection = ctx.connect()
        call = ctx.start("Lookup", None, connection, **changes)
        call.send(LOOKUP.valid, end=True)
        call.wait_over(8 * ctx.scale)
        outcome = call.outcome()
        ctx.notes.append(str(outcome))
        if outcome.code == contract.OK:
            ctx.check(may_serve, "it was served")
        else:
            ctx.check(outcome.refused or outcome.over, f"neither served nor refused: {outcome}")
    add_case(f"wire/headers: {name}", run, short=name in ("a header of 64 KiB", "grpc-timeout -1S"))


for _name, _changes, _may_serve in BAD_HEADERS:
    add_bad_headers(_name, _changes, _may_serve)


@case("wire/the longest grpc-timeout there is, 99999999H, is no deadline in the past", short=True)
def longest_timeout(ctx):
    outcome = ctx.call("Lookup", LOOKUP.valid, deadline=None,
                       metadata=[*ctx.access.metadata, ("grpc-timeout", "99999999H")])
    ctx.expect(outcome, contract.OK)


@case("wire/a thousand lookups with a deadline of one nanosecond end", short=True)
def deadline_of_one_nanosecond(ctx):
    calls = []
    for _ in range(1000):
        calls.append(ctx.start("Lookup", None, metadata=[*ctx.access.metadata,
                                                         ("grpc-timeout", "1n")]))
        calls[-1].send(LOOKUP.valid, end=True)
    for call in calls:
        call.wait_over(5 * ctx.scale)
        outcome = call.outcome()
        # A lookup that takes less than gRPC's clock can tell is answered; gRPC may say CANCELLED.
        ctx.check(outcome.code in (contract.DEADLINE_EXCEEDED, contract.CANCELLED, contract.OK)
                  or outcome.reset, str(outcome))


def goes_on_or_is_cut_off(ctx, connection):
    call = ctx.start("Lookup", connection=connection)
    call.send(LOOKUP.valid, end=True)
    call.wait_over(5 * ctx.scale)
    ctx.check(call.outcome().code == contract.OK or connection.closed or connection.goaway,
              f"neither goes on nor ends: {call.outcome()}")


@case("wire/a stream's number is used twice", short=True)
def stream_number_twice(ctx):
    connection = ctx.connect()
    call = ctx.start("Lookup", connection=connection)
    call.send(LOOKUP.valid, end=True)
    call.wait_over(5 * ctx.scale)
    connection.send_headers(headers_of(LOOKUP.path), stream=1)
    goes_on_or_is_cut_off(ctx, connection)


@case("wire/a smaller stream number after a larger one")
def smaller_stream_number(ctx):
    connection = ctx.connect()
    connection.send_headers(headers_of(LOOKUP.path), stream=1001)
    connection.send_headers(headers_of(LOOKUP.path), stream=3)
    connection.next_stream = 1003
    goes_on_or_is_cut_off(ctx, connection)


@case("wire/DATA after END_STREAM")
def data_after_end(ctx):
    connection = ctx.connect()
    call = ctx.start("StreamLookup", connection=connection)
    call.send(LOOKUP.valid, end=True)
    for _ in range(1000):
        connection.send(frame(http2.DATA, 0, call.stream.number, VALID_MESSAGE))
    call.wait_over(5 * ctx.scale)
    ctx.check(len(call.outcome().messages) <= 1, "messages behind the end were answered")


@case("wire/more DATA than the windows allow", megabytes=20)
def data_beyond_windows(ctx):
    connection = ctx.connect()
    call = ctx.start("Append", connection=connection)
    for _ in range(700):
        if not connection.send(frame(http2.DATA, 0, call.stream.number, b"\0" * 16384)):
            break
    # The zeros are an empty message: DATA behind the answer to it is of no call's, and only dropped.
    connection.wait(lambda: connection.goaway is not None or call.stream.over, 5.0 * ctx.scale)
    if not call.stream.over:
        ctx.expect_cut_off(connection, "11 MB without a window")


@case("wire/a preface one byte at a time", short=True)
def preface_byte_by_byte(ctx):
    connection = ctx.connect(settings=None)
    for byte in http2.PREFACE + http2.settings_frame({}):
        connection.send(bytes([byte]))
    outcome = ctx.call("Lookup", LOOKUP.valid, connection=connection)
    ctx.expect(outcome, contract.OK)


@case("wire/a lookup in DATA frames of one byte with padding")
def lookup_in_padded_bytes(ctx):
    call = ctx.start("Lookup", ctx.patience(10))
    for byte in VALID_MESSAGE:
        payload = b"\x10" + bytes([byte]) + b"\0" * 16
        ctx.connection.send(frame(http2.DATA, http2.PADDED, call.stream.number, payload))
    call.half_close()
    # gRPC's C core does not know padding.
    ctx.expect_ended(ctx.finish(call))


@case("wire/GOAWAY from a client, then more calls")
def goaway_then_calls(ctx):
    connection = ctx.connect()
    connection.send(frame(http2.GOAWAY, 0, 0, b"\0" * 8))
    call = ctx.start("Lookup", connection=connection)
    call.send(LOOKUP.valid, end=True)
    call.wait_over(5 * ctx.scale)
    ctx.check(call.stream.over or connection.closed or connection.goaway, "the call hangs")


@case("wire/half-open connections: the client vanishes in the middle of a frame", short=True)
def vanishing_clients(ctx):
    for size in range(1, 60):
        connection = ctx.connect()
        call = ctx.start("Lookup", connection=connection)
        connection.send(frame(http2.DATA, 0, call.stream.number, VALID_MESSAGE)[:size])
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()


@case("wire/a thousand connections that say nothing", short=True, memory_megabytes=20)
def silent_connections(ctx):
    begun = time.monotonic()
    for _ in range(1000):
        ctx.connect(settings=None)
    ctx.notes.append(f"opened in {time.monotonic() - begun:.1f} s")


@case("wire/two thousand connections opened and closed", memory_megabytes=10, seconds=60)
def connections_opened_and_closed(ctx):
    for i in range(2000):
        connection = ctx.connect(settings=() if i % 2 else None)
        connection.close()
