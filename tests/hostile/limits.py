"""Messages at, beyond and far beyond the limits; bombs; memory that must be counted."""
import gzip
import zlib

import contract
import grpc_call
import http2
from cases import ENDLESS_SECONDS, PATIENT, add_case, case
from contract import DIM, SCRATCH_STORE, matrix, new
from grpc_call import prefixed
from protobytes import BYTES, tag, varint

MIB = 1 << 20
LIMIT = 1 * MIB  # Of the servers for messages around the limit: the default is 64 MiB.
SMALL = (f"--max-message-bytes={LIMIT}",)


def sized(method, size):
    """A valid request with an unknown string that makes it `size` bytes."""
    head = contract.METHODS[method].valid + tag(1007, BYTES)
    left = size - len(head)
    message = head + varint(left - len(varint(left))) + bytes(left - len(varint(left)))
    assert len(message) == size
    return message


def add_sizes(method):
    def run(ctx):
        for size, served in ((LIMIT - 1, True), (LIMIT, True), (LIMIT + 1, False),
                             (2 * LIMIT, False), (2 * LIMIT + 1, False), (3 * LIMIT, False)):
            deadline = ENDLESS_SECONDS if served and contract.METHODS[method].endless else PATIENT
            outcome = ctx.call(method, sized(method, size), deadline=deadline)
            if served:
                ctx.check(outcome.code != contract.RESOURCE_EXHAUSTED, f"{size} bytes: {outcome}")
                ctx.expect_ended(outcome, f"{size} bytes")
            elif method == "StreamLookup" and outcome.messages:
                error = contract.MESSAGES["LookupResponse"].FromString(outcome.messages[0]).error
                ctx.check(error.code == contract.RESOURCE_EXHAUSTED, f"{size} bytes: {error}")
            else:
                ctx.expect(outcome, contract.RESOURCE_EXHAUSTED, what=f"{size} bytes")
    add_case(f"limits/{method}: messages around the limit", run, flags=SMALL, megabytes=14,
             short=method in ("Lookup", "StreamAppend"))


for _method in contract.METHODS:
    add_sizes(_method)


@case("limits/messages of 65 MiB at the default limit", seconds=60, megabytes=150, fresh=True)
def messages_beyond_the_default_limit(ctx):
    for method in ("Append", "GetStore"):
        outcome = ctx.call(method, sized(method, 65 * MIB), deadline=ctx.patience(20))
        ctx.expect(outcome, contract.RESOURCE_EXHAUSTED)


BOMB_BYTES = 335_000_000  # 0.3 MB when compressed.


def bomb(size, encoding):
    """So many zeros, compressed a thousandfold."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31 if encoding == "gzip" else 15)
    chunk = bytes(MIB)
    out = bytearray()
    for _ in range(size // MIB):
        out += packer.compress(chunk)
    return bytes(out + packer.flush())


def send_compressed(ctx, method, data, encoding):
    call = ctx.start(method, ctx.patience(10), metadata=[*ctx.access.metadata, ("grpc-encoding", encoding)])
    call.send_raw(prefixed(data, compressed=1), end=True)
    return ctx.finish(call)


def add_bomb(encoding, method):
    def run(ctx):
        outcome = send_compressed(ctx, method, bomb(BOMB_BYTES, encoding), encoding)
        ctx.notes.append(str(outcome))
        ctx.expect_refused(outcome)
    add_case(f"defect-5/{method}: 335 MB of zeros as 0.3 MB of {encoding}", run, fresh=True, seconds=60,
             short=(encoding, method) == ("gzip", "Lookup"))


for _encoding in ("gzip", "deflate"):
    for _method in ("Lookup", "StreamAppend", "ListBackups"):
        add_bomb(_encoding, _method)


@case("defect-5/eight bombs of 60 MB at once, each below the message limit", fresh=True, seconds=60)
def bombs_below_the_limit(ctx):
    data = bomb(60_000_000, "gzip")

    def send():
        call = ctx.start("Append", ctx.patience(20), ctx.connect(),
                         metadata=[*ctx.access.metadata, ("grpc-encoding", "gzip")])
        call.send_raw(prefixed(data, compressed=1), end=True)
        ctx.expect_refused(ctx.finish(call))
    ctx.in_threads([send] * 8)


@case("limits/gzip in gzip in gzip")
def nested_gzip(ctx):
    data = bomb(50 * MIB, "gzip")
    outcome = send_compressed(ctx, "Lookup", gzip.compress(gzip.compress(data)), "gzip")
    ctx.expect_refused(outcome)


# Encodings and what they hold: (name, encoding, bytes).
BAD_ENCODINGS = [
    ("an unknown encoding", "brotli", b"\x00" * 100),
    ("an encoding of 4 KiB", "x" * 4096, b"\x00" * 100),
    ("identity with the flag", "identity", contract.METHODS["Lookup"].valid),
    ("gzip of nothing", "gzip", b""),
    ("no gzip at all", "gzip", b"not gzip" * 10),
    ("gzip cut", "gzip", gzip.compress(contract.METHODS["Lookup"].valid)[:-9]),
    ("gzip with a wrong checksum", "gzip",
     gzip.compress(contract.METHODS["Lookup"].valid)[:-8] + b"\0" * 8),
    ("gzip with more behind it", "gzip", gzip.compress(contract.METHODS["Lookup"].valid) + b"more" * 99),
    ("no deflate at all", "deflate", b"\xff" * 50),
]


def add_encoding(name, encoding, data):
    def run(ctx):
        outcome = send_compressed(ctx, "Lookup", data, encoding)
        ctx.notes.append(str(outcome))
        ctx.check(outcome.over or outcome.closed, f"no end: {outcome}")
    add_case(f"limits/encoding: {name}", run, short=name == "gzip cut")


for _row in BAD_ENCODINGS:
    add_encoding(*_row)


@case("limits/answers beyond the limit: weights of all rows and 4,096 queries", flags=SMALL)
def answer_too_large(ctx):
    request = contract.lookup_request(queries=1000, options={"weights": 3})
    ctx.expect(ctx.call("Lookup", request), contract.RESOURCE_EXHAUSTED, "ANSWER_TOO_LARGE")


@case("limits/Append: 65,537 rows")
def too_many_rows(ctx):
    data = bytes(4 * DIM * 65537)
    rows = {"rows": 65537, "cols": DIM, "data": data}
    ctx.expect(ctx.call("Append", new("AppendRequest", store=SCRATCH_STORE, keys=rows, values=rows)),
               contract.INVALID_ARGUMENT, "LIMIT_EXCEEDED")


@case("limits/65,537 writers of one store", seconds=120, fresh=True, megabytes=16,
      memory_megabytes=24)
def too_many_writers(ctx):
    ctx.expect(ctx.call("CreateStore", contract.METHODS["CreateStore"].request()), contract.OK)
    call = ctx.start("StreamAppend", ctx.patience(100))
    batch = 512
    for begin in range(0, 66_048, batch):
        data = b"".join(prefixed(contract.append_request(
            1, "made", writer=f"w{i}", sequence=1).SerializeToString())
            for i in range(begin, begin + batch))
        if not call.send_raw(data):
            break
    call.half_close()
    ctx.expect(ctx.finish(call), contract.RESOURCE_EXHAUSTED, "TOO_MANY_WRITERS")


def store_of(ctx, name, rows, cols):
    """A store of zeros, key and value of `cols` columns."""
    ctx.expect(ctx.call("CreateStore", new("CreateStoreRequest", store=new(
        "Store", **{"name": name, "key_dim": cols, "value_dim": cols}))), contract.OK)
    at_once = min(rows, 32_768, 16 * MIB // (4 * cols))
    for done in range(0, rows, at_once):
        count = min(at_once, rows - done)
        part = {"rows": count, "cols": cols, "data": bytes(4 * count * cols)}
        ctx.expect(ctx.call("Append", new("AppendRequest", store=name, keys=part, values=part),
                            deadline=ctx.patience(20)), contract.OK)


USED = "softlookup_memory_used_bytes"


@case("defect-8/a deleted store that a slow ReadRows holds is still counted", fresh=True, short=True,
      flags=("--memory-limit=200MiB",), seconds=60, megabytes=120, memory_megabytes=0)
def deleted_store_is_counted(ctx):
    store_of(ctx, "large", 26_000, 512)
    reader = ctx.connect(settings={http2.SETTINGS_INITIAL_WINDOW_SIZE: 100}.items(), give_windows=False)
    call = ctx.start("ReadRows", None, reader)
    call.send(new("ReadRowsRequest", store="large").SerializeToString(), end=True)
    reader.wait(lambda: call.stream.data, 5 * ctx.scale)
    before = ctx.server.metrics()[USED]
    ctx.expect(ctx.call("DeleteStore", new("DeleteStoreRequest", **{"name": "large"})), contract.OK)
    held, after = ctx.server.memory(), ctx.server.metrics()[USED]
    ctx.notes.append(f"{before / MIB:.0f} MiB used before, {after / MIB:.0f} after, "
                     f"{held / MIB:.0f} MiB of the process")
    ctx.check(after > before - 20 * MIB or held < 60 * MIB,
              f"{held / MIB:.0f} MiB are held, and {after / MIB:.0f} MiB counted")


@case("defect-8/four lookups with top_k = rows - 1 take no more memory than is counted",
      fresh=True, seconds=90, megabytes=20)
def top_k_of_nearly_all_rows(ctx):
    rows = 200_000
    store_of(ctx, "rows", rows, 2)
    before = ctx.server.memory()
    ctx.server.reset_memory_peak()
    used = ctx.server.metrics()[USED]

    def look():
        request = new("LookupRequest", store="rows", queries=matrix(16, 2), options={"top_k": rows - 1})
        outcome = ctx.call("Lookup", request, deadline=ctx.patience(30), connection=ctx.connect())
        ctx.expect(outcome, (contract.OK, contract.RESOURCE_EXHAUSTED))
    ctx.in_threads([look] * 4)
    grown = ctx.server.memory_peak() - before
    counted = max(0, ctx.server.metrics()[USED] - used)
    ctx.check(grown < 48 * MIB + counted,
              f"{grown / MIB:.0f} MiB more, of which {counted / MIB:.0f} MiB were counted")


@case("limits/a full memory refuses appends and serves lookups", fresh=True, seconds=60,
      flags=("--memory-limit=24MiB",), megabytes=40)
def full_memory(ctx):
    ctx.expect(ctx.call("CreateStore", new("CreateStoreRequest", store=new(
        "Store", name="large", key_dim=256, value_dim=256))), contract.OK)
    part = {"rows": 1000, "cols": 256, "data": bytes(1000 * 256 * 4)}
    request = new("AppendRequest", store="large", keys=part, values=part)
    codes = [ctx.call("Append", request).code for _ in range(16)]
    ctx.check(codes[0] == contract.OK and codes[-1] == contract.RESOURCE_EXHAUSTED, f"codes: {codes}")


@case("limits/a request of which the window never opens for its answer", fresh=True, seconds=60)
def answers_never_taken(ctx):
    connection = ctx.connect(settings={http2.SETTINGS_INITIAL_WINDOW_SIZE: 0}.items(), give_windows=False)
    message = prefixed(contract.lookup_request(queries=1000).SerializeToString())
    calls = []
    for _ in range(300):
        calls.append(grpc_call.Call(connection, contract.METHODS["Lookup"].path, None,
                                    ctx.access.metadata))
        calls[-1].send_raw(message, end=True)
    connection.wait(lambda: False, 1.0)
