"""Fields of well-formed requests at and beyond their ends: matrices, options, filters, names."""
import math
import struct

import contract
from cases import add_case
from contract import DIM, KNOWN_ROWS, KNOWN_STORE, SCRATCH_STORE, matrix, new

INVALID = contract.INVALID_ARGUMENT
LARGEST32, LARGEST64 = (1 << 32) - 1, (1 << 64) - 1
NUMBERS = {"NaN": math.nan, "inf": math.inf, "-inf": -math.inf}


def add(name, method, request, codes, reasons=(), short=False):
    """A case of one call. `request` is a function; in StreamLookup the error is in the answer."""
    def run(ctx):
        ctx.expect(ctx.call(method, request()), codes, reasons)
    add_case(f"fields/{name}", run, short=short)


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


# Every matrix of every request: (method, field, request with the matrix `m` in it).
def with_matrix(method, field):
    def request(m):
        message = contract.METHODS[method].request()
        owner = message
        *way, last = field.split(".")
        for part in way:
            owner = getattr(owner, part)
            owner = owner[0] if hasattr(owner, "add") else owner
        getattr(owner, last).CopyFrom(m)
        return message
    return request


def gated_store(m):
    return new("CreateStoreRequest", store=new(
        "Store", name="gated", key_dim=DIM, value_dim=DIM,
        memories=[contract.MESSAGES["MemorySpec"](name="g", kind=4, gate=m)]))


def projected_store(part):
    def request(m):
        matrices = {name: matrix(DIM, DIM) for name in ("query", "key", "value")}
        return new("CreateStoreRequest", store=new(
            "Store", name="projected", key_dim=DIM, value_dim=DIM,
            projection={**matrices, part: m}))
    return request


def projected_attend(part):
    def request(m):
        matrices = {name: matrix(DIM, DIM) for name in ("query", "key", "value")}
        return new("AttendRequest", inputs=matrix(3, DIM), self=True,
                   projection={**matrices, part: m})
    return request


MATRICES = [
    *[(method, field, with_matrix(method, field)) for method, field in (
        ("Append", "keys"), ("Append", "values"), ("StreamAppend", "keys"), ("Lookup", "queries"),
        ("Attend", "queries"), ("Attend", "keys"), ("Attend", "values"))],
    ("CreateStore", "memories.gate", gated_store),
    *[("CreateStore", f"projection.{part}", projected_store(part))
      for part in ("query", "key", "value")],
    *[("Attend", f"projection.{part}", projected_attend(part))
      for part in ("query", "key", "value")],
]

# Matrices that are wrong wherever they stand. (name, matrix, reason; None is any)
BAD_MATRICES = [
    ("2^32-1 rows and columns", dict(rows=LARGEST32, cols=LARGEST32, data=b"1234")),
    ("2^31 rows of 2 columns, empty", dict(rows=1 << 31, cols=2, data=b"")),
    ("2^32-1 rows of no columns", dict(rows=LARGEST32, cols=0)),
    ("no rows of 2^32-1 columns", dict(rows=0, cols=LARGEST32)),
    ("2^16 x 2^16, whose product is 0 in 32 bits", dict(rows=1 << 16, cols=1 << 16, data=b"")),
    ("2^31 x 2^31 of eight bytes, whose size is 0 in 64 bits",
     dict(rows=1 << 31, cols=1 << 31, element_type=2, data=b"")),
    ("a byte too few", dict(rows=1, cols=DIM, data=floats(*range(DIM))[:-1])),
    ("a byte too many", dict(rows=1, cols=DIM, data=floats(*range(DIM)) + b"\0")),
    ("a number too many", dict(rows=1, cols=DIM, values=range(DIM + 1))),
    ("a number too few", dict(rows=1, cols=DIM, values=range(DIM - 1))),
    ("data and values", dict(rows=1, cols=DIM, data=floats(*range(DIM)), values=range(DIM))),
    ("neither data nor values", dict(rows=1, cols=DIM)),
    ("INT8 elements", dict(rows=1, cols=DIM, element_type=4, data=b"1234")),
    ("elements of type 99", dict(rows=1, cols=DIM, element_type=99, data=b"1234" * DIM)),
    ("elements of type -1", dict(rows=1, cols=DIM, element_type=-1, data=b"1234" * DIM)),
    ("one column too many", dict(rows=1, cols=DIM + 2, values=range(DIM + 2))),
    ("a FLOAT64 beyond float32",
     dict(rows=1, cols=DIM, element_type=2, data=struct.pack(f"<{DIM}d", 1e39, 0, 0, 0))),
    ("a BFLOAT16 infinity", dict(rows=1, cols=DIM, element_type=3, data=b"\x80\x7f" + b"\0" * 6)),
    *[(f"{name} in data", dict(rows=1, cols=DIM, data=floats(0, value, 0, 0)))
      for name, value in NUMBERS.items()],
    *[(f"{name} in values", dict(rows=1, cols=DIM, values=[0, value, 0, 0]))
      for name, value in NUMBERS.items()],
]


def add_matrices():
    for method, field, request in MATRICES:
        for name, fields in BAD_MATRICES:
            def make(request=request, fields=fields):
                return request(contract.MESSAGES["Matrix"](**fields))
            add(f"{method} {field}: {name}", method, make, INVALID,
                short=(method, field) == ("Append", "keys") and name.startswith("2^"))


def lookup_with(**options):
    return lambda: contract.lookup_request(options=options)


def attend_with(**options):
    def request():
        message = contract.METHODS["Attend"].request()
        message.options.CopyFrom(contract.MESSAGES["AttentionOptions"](**options))
        return message
    return request


# Options of a lookup and of Attend: (name, fields, code).
OPTIONS = [
    *[(f"{option} {name}", {option: value}, INVALID) for name, value in NUMBERS.items()
      for option in ("temperature", "min_score", "recency_decay", "max_error")],
    *[(f"temperature {value}", {"temperature": value}, INVALID)
      for value in (0.0, -0.0, -1.0, 5e-324, 9.9e-7, 1.1e6, 1.7e308)],
    *[(f"recency_decay {value}", {"recency_decay": value}, INVALID)
      for value in (0.0, -0.0, -1.0, 1.0000001, 1.7e308)],
    *[(f"max_error {value}", {"max_error": value}, INVALID)
      for value in (-5e-324, -0.1, 1.0000001, 1.7e308)],
    *[(f"max_error {value}", {"max_error": value}, contract.OK)
      for value in (0.0, -0.0, 5e-324, 1.0)],
    ("max_error 1 in mode LINEAR", {"max_error": 1.0, "mode": 3}, contract.OK),
    ("recency_decay 5e-324", {"recency_decay": 5e-324}, contract.OK),
    ("the smallest temperature", {"temperature": 1e-6}, contract.OK),
    ("the largest temperature", {"temperature": 1e6}, contract.OK),
    *[(f"min_score {value}", {"min_score": value}, contract.OK) for value in (1.7e308, -1.7e308)],
    *[(f"{option} {value}", {option: value}, INVALID) for option in ("score", "mode", "weights")
      for value in (99, -1, (1 << 31) - 1, -(1 << 31))],
    ("top_k 2^32-1", {"top_k": LARGEST32}, contract.OK),
    ("top_k 2^32-1 in mode HARD", {"top_k": LARGEST32, "mode": 2}, contract.OK),
    ("top_weights 1025", {"weights": 2, "top_weights": 1025}, INVALID),
    ("top_weights 2^32-1", {"weights": 2, "top_weights": LARGEST32}, INVALID),
    ("causal_offset 2^64-1", {"causal": True, "causal_offset": LARGEST64}, contract.OK),
    ("causal_offset 2^64-2", {"causal": True, "causal_offset": LARGEST64 - 1}, contract.OK),
    ("causal_offset 2^63", {"causal": True, "causal_offset": 1 << 63}, contract.OK),
    ("causal_offset 2^64-1 without causal", {"causal_offset": LARGEST64}, contract.OK),
]


def add_options():
    for name, options, code in OPTIONS:
        add(f"Lookup {name}", "Lookup", lookup_with(**options), code,
            short=name in ("temperature NaN", "top_k 2^32-1", "causal_offset 2^64-1"))
        add(f"Attend {name}", "Attend", attend_with(**options), code)


# Filters: (name, fields, code).
FILTERS = [
    ("end 2^64-1", {"end": LARGEST64}, INVALID),
    ("end one past the rows", {"end": KNOWN_ROWS + 1}, INVALID),
    ("begin 2^64-1", {"begin": LARGEST64}, INVALID),
    ("begin past end", {"begin": 5, "end": 4}, INVALID),
    ("begin 2^63, end 2^63", {"begin": 1 << 63, "end": 1 << 63}, INVALID),
    ("last 2^64-1", {"last": LARGEST64}, contract.OK),
    ("last 0", {"last": 0}, contract.OK),
    ("begin, end and last at the row count",
     {"begin": KNOWN_ROWS, "end": KNOWN_ROWS, "last": LARGEST64}, contract.OK),
    ("id 2^64-1", {"ids": [LARGEST64]}, contract.OK),
    ("the same id ten thousand times", {"ids": [7] * 10_000}, (contract.OK, INVALID)),
    ("exclude_ids and ids alike", {"ids": [1, 2], "exclude_ids": [1, 2]}, contract.OK),
    ("an empty label", {"any_labels": [""]}, (contract.OK, INVALID)),
    ("a label of 64 KiB", {"any_labels": ["x" * 65536]}, (contract.OK, INVALID)),
    ("a label of zeros", {"no_labels": ["\0" * 10]}, (contract.OK, INVALID)),
]

# Requests with a filter: what is behind the end of the rows is refused alike.
FILTERED = {
    "Lookup": lambda f: contract.lookup_request(filter=f),
    "ReadRows": lambda f: new("ReadRowsRequest", store=KNOWN_STORE, filter=f),
    "DeleteRows": lambda f: new("DeleteRowsRequest", store="nobody/rows", filter=f),
}


def add_filters():
    for name, fields, code in FILTERS:
        for method, request in FILTERED.items():
            # The suite deletes no row of the known store; a store that is not there has no rows.
            codes = (INVALID, contract.NOT_FOUND) if method == "DeleteRows" else code
            add(f"{method} filter: {name}", method,
                lambda request=request, fields=fields: request(fields), codes,
                short=method == "Lookup" and name.startswith("end 2^64"))


def append(**fields):
    return lambda: contract.append_request(2, **fields)


def create(**fields):
    return lambda: new("CreateStoreRequest", store=new(
        "Store", **{"name": "x", "key_dim": DIM, "value_dim": DIM, **fields}))


def add_forged_damage():
    """Only the server says what is damaged."""
    def run(ctx):
        created = ctx.call("CreateStore", create(name="forged", damage="torn")())
        ctx.expect(created, contract.OK)
        got = ctx.call("GetStore", new("GetStoreRequest", name="forged"))
        for outcome in (created, got):
            store = contract.MESSAGES["Store"].FromString(outcome.messages[0])
            ctx.check(not store.damage, f"its damage is {store.damage}")
        ctx.expect(ctx.call("DeleteStore", new("DeleteStoreRequest", name="forged")), contract.OK)
    add_case("fields/CreateStore says that the store is damaged", run)


def update(paths, **fields):
    return lambda: new("UpdateStoreRequest", store=new("Store", name=SCRATCH_STORE, **fields),
                       update_mask={"paths": paths})


OTHERS = [
    ("Append ids 1 and 1", "Append", append(ids=[1 << 40, 1 << 40]), INVALID),
    ("Append one id for two rows", "Append", append(ids=[1 << 40]), INVALID),
    ("Append three ids for two rows", "Append", append(ids=[1 << 40, 1 << 41, 1 << 42]), INVALID),
    ("Append on_conflict 99", "Append", append(on_conflict=99), INVALID),
    ("Append acknowledge 99", "Append", append(acknowledge=99), INVALID),
    ("Append sequence without writer", "Append", append(sequence=5), INVALID),
    ("Append writer without sequence", "Append", append(writer="w"), INVALID),
    ("Append writer of 129 characters", "Append", append(writer="w" * 129, sequence=1), INVALID),
    ("Append sequence 2^64-1", "Append", append(writer="far", sequence=LARGEST64), contract.OK),
    ("Append sequence 1 after 2^64-1", "Append", append(writer="far", sequence=1), contract.OK),
    ("Append id 2^64-1", "Append", append(ids=[LARGEST64, 0], on_conflict=2), contract.OK),
    ("Append a label of 65 bytes", "Append",
     append(row_labels=[{"labels": ["x" * 65]}, {}]), INVALID),
    ("Append 17 labels of a row", "Append",
     append(row_labels=[{"labels": [str(i) for i in range(17)]}, {}]), INVALID),
    ("Append labels for three rows of two", "Append", append(row_labels=[{}, {}, {}]), INVALID),
    ("Append returns a memory that is not there", "Append", append(return_memories=["none"]),
     contract.NOT_FOUND),
    ("Append keys and inputs", "Append", append(inputs=matrix(2, DIM)),
     (INVALID, contract.FAILED_PRECONDITION)),
    ("Append inputs without a projection", "Append", lambda: new(
        "AppendRequest", store=SCRATCH_STORE, inputs=matrix(2, DIM)), contract.FAILED_PRECONDITION),
    ("Append no rows", "Append", lambda: new("AppendRequest", store=SCRATCH_STORE,
                                             keys={"cols": DIM}, values={"cols": DIM}), INVALID),
    ("Lookup source 99", "Lookup", lambda: contract.lookup_request(source=99), INVALID),
    ("Lookup of a memory that is not there", "Lookup",
     lambda: contract.lookup_request(source=2, memory="none"), contract.NOT_FOUND),
    ("Lookup tag 2^64-1", "Lookup", lambda: contract.lookup_request(tag=LARGEST64), contract.OK),
    ("Lookup inputs without a projection", "Lookup", lambda: new(
        "LookupRequest", store=KNOWN_STORE, inputs=matrix(2, DIM)), contract.FAILED_PRECONDITION),
    ("Lookup of 4097 queries", "Lookup", lambda: contract.lookup_request(queries=4097), INVALID),
    ("Attend num_heads 2^32-1", "Attend", lambda: new(
        "AttendRequest", queries=matrix(1, DIM), keys=matrix(1, DIM), values=matrix(1, DIM),
        num_heads=LARGEST32), INVALID),
    ("Attend self with keys", "Attend", lambda: new(
        "AttendRequest", inputs=matrix(1, DIM), keys=matrix(1, DIM), self=True), INVALID),
    ("GetMemory end 2^64-1", "GetMemory", lambda: new(
        "GetMemoryRequest", store=KNOWN_STORE, end=LARGEST64), INVALID),
    ("GetMemory begin past end", "GetMemory", lambda: new(
        "GetMemoryRequest", store=KNOWN_STORE, begin=3, end=2), INVALID),
    ("GetMemory begin of a decayed memory", "GetMemory", lambda: new(
        "GetMemoryRequest", **{"store": SCRATCH_STORE, "name": "decayed", "begin": 1}), INVALID),
    ("ListStores page_size -1", "ListStores", lambda: new(
        "ListStoresRequest", page_size=-1), INVALID),
    ("ListStores page_size -2^31", "ListStores", lambda: new(
        "ListStoresRequest", page_size=-(1 << 31)), INVALID),
    ("ListStores page_size 2^31-1", "ListStores", lambda: new(
        "ListStoresRequest", page_size=(1 << 31) - 1), contract.OK),
    ("ListStores token of another prefix", "ListStores", lambda: new(
        "ListStoresRequest", prefix="known/", page_token="other/x"), INVALID),
    ("ListStores token of control characters", "ListStores", lambda: new(
        "ListStoresRequest", page_token="\x1b\0\r\n"), (contract.OK, INVALID)),
    ("ReadRows page_rows 2^32-1", "ReadRows", lambda: new(
        "ReadRowsRequest", store=KNOWN_STORE, page_rows=LARGEST32), contract.OK),
    ("ReadRows read_mask of nothing known", "ReadRows", lambda: new(
        "ReadRowsRequest", store=KNOWN_STORE, read_mask={"paths": ["nothing"]}), INVALID),
    ("ReadRows read_mask of a path of 10,000 parts", "ReadRows", lambda: new(
        "ReadRowsRequest", store=KNOWN_STORE, read_mask={"paths": [".".join(["key"] * 10_000)]}),
     INVALID),
    ("DeleteRows without a filter", "DeleteRows", lambda: new(
        "DeleteRowsRequest", store=SCRATCH_STORE), INVALID),
    ("DeleteRows with an empty filter", "DeleteRows", lambda: new(
        "DeleteRowsRequest", store=SCRATCH_STORE, filter={}), INVALID),
    ("GetWriter without a writer", "GetWriter", lambda: new(
        "GetWriterRequest", store=SCRATCH_STORE), (INVALID, contract.NOT_FOUND)),
    *[(f"CreateStore {field} {value}", "CreateStore", create(**{field: value}), INVALID)
      for field, value in (("key_dim", 0), ("key_dim", 65537), ("key_dim", LARGEST32),
                           ("value_dim", 0), ("value_dim", 65537), ("value_dim", LARGEST32),
                           ("num_heads", 3), ("num_heads", LARGEST32), ("score", 99),
                           ("storage_type", 2), ("storage_type", 99), ("temperature", math.nan),
                           ("temperature", math.inf), ("temperature", 0.0), ("temperature", -1.0))],
    *[(f"CreateStore memory: {name}", "CreateStore", create(memories=[spec]), INVALID)
      for name, spec in (
          ("named average", {"name": "average", "kind": 1}), ("without a name", {"kind": 1}),
          ("without a kind", {"name": "m"}), ("of kind 99", {"name": "m", "kind": 99}),
          ("decay 0", {"name": "m", "kind": 2}), ("decay 1", {"name": "m", "kind": 2, "decay": 1.0}),
          ("decay NaN", {"name": "m", "kind": 2, "decay": math.nan}),
          ("decay -inf", {"name": "m", "kind": 3, "decay": -math.inf}),
          ("gated without a gate", {"name": "m", "kind": 4}))],
    ("CreateStore two memories of a name", "CreateStore", create(
        memories=[{"name": "m", "kind": 1}, {"name": "m", "kind": 1}]), INVALID),
    ("CreateStore 65 labels", "CreateStore", create(
        labels={str(i): "" for i in range(65)}), INVALID),
    ("CreateStore a label's key empty", "CreateStore", create(labels={"": "x"}), INVALID),
    ("CreateStore a label's key of 129 bytes", "CreateStore", create(labels={"k" * 129: ""}), INVALID),
    ("CreateStore a label of 1025 bytes", "CreateStore", create(labels={"k": "v" * 1025}), INVALID),
    ("UpdateStore without a mask", "UpdateStore", update([]), INVALID),
    *[(f"UpdateStore mask {path!r}", "UpdateStore", update([path]), INVALID)
      for path in ("name", "key_dim", "memories", "revision", "damage", "*", "", "labels.a", "LABELS")],
    ("RenameStore to its own name", "RenameStore", lambda: new(
        "RenameStoreRequest", store=SCRATCH_STORE, new_name=SCRATCH_STORE, replace=True), INVALID),
    ("RenameStore to a name that is taken", "RenameStore", lambda: new(
        "RenameStoreRequest", store=SCRATCH_STORE, new_name=KNOWN_STORE), contract.ALREADY_EXISTS),
    ("CompactStore without a name", "CompactStore", lambda: new(
        "CompactStoreRequest", end_memories=True), INVALID),
    ("CompactStore with nothing to drop", "CompactStore", lambda: new(
        "CompactStoreRequest", name=KNOWN_STORE, end_memories=True),
     (contract.OK, contract.RESOURCE_EXHAUSTED)),
    ("UpdateStore temperature NaN", "UpdateStore", update(["temperature"], temperature=math.nan),
     INVALID),
    ("WatchMemory of a memory that is not there", "WatchMemory", lambda: new(
        "WatchMemoryRequest", **{"store": KNOWN_STORE, "name": "none"}), contract.NOT_FOUND),
]


add_matrices()
add_options()
add_filters()
add_forged_damage()
for _name, _method, _request, _codes in OTHERS:
    add(_name, _method, _request, _codes, short=_name.endswith(("key_dim 4294967295", "ids 1 and 1")))
