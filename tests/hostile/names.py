"""Names that are paths, control characters, endless, or nothing, in every field that takes one."""
import contract
from cases import add_case
from contract import DIM, SCRATCH_STORE, matrix, new

# (name of the case, the name, may a store have it?)
NASTY = [
    ("nothing", "", False),
    ("a dot", ".", False),
    ("two dots", "..", False),
    ("a path upwards", "../../etc/passwd", False),
    ("two dots inside", "a/../b", False),
    ("a slash", "/", False),
    ("a slash first", "/a", False),
    ("a slash last", "a/", True),
    ("two slashes", "a//b", True),
    ("a hyphen first", "-rf", False),
    ("a backslash", "a\\b", False),
    ("a space", "a b", False),
    ("a zero byte", "a\0b", False),
    ("an escape sequence", "a\x1b[2J\x1b]0;owned\x07", False),
    ("a line break", "a\r\nlevel=error msg=forged", False),
    ("quotes", "a\"} 1\nforged_metric{x=\"", False),
    ("a percent escape", "%00%2e%2e", False),
    ("a star", "known/*", False),
    ("letters of two bytes", "é", False),
    ("a mark that turns text around", "a\u202eb", False),
    ("128 characters", "a" * 128, True),
    ("129 characters", "a" * 129, False),
    ("64 KiB", "a" * 65536, False),
    ("1 MiB of slashes", "a" + "/" * (1 << 20), False),
]

# Requests in which a name stands: (method, field, request of the name).
PLACES = [
    ("GetStore", "name", lambda name: new("GetStoreRequest", **{"name": name})),
    ("UpdateStore", "store.name", lambda name: new(
        "UpdateStoreRequest", store={"name": name, "score": 1}, update_mask={"paths": ["score"]})),
    ("RenameStore", "store", lambda name: new(
        "RenameStoreRequest", store=name, new_name="nobody/t", replace=True)),
    ("RenameStore", "new_name", lambda name: new(
        "RenameStoreRequest", store="nobody/s", new_name=name, replace=True)),
    ("CompactStore", "name", lambda name: new(
        "CompactStoreRequest", name=name, end_memories=True)),
    ("DeleteStore", "name", lambda name: new("DeleteStoreRequest", **{"name": name})),
    ("Append", "store", lambda name: contract.append_request(1, name)),
    ("Append", "return_memories", lambda name: contract.append_request(
        1, SCRATCH_STORE, return_memories=[name])),
    ("StreamAppend", "store", lambda name: contract.append_request(1, name)),
    ("ReadRows", "store", lambda name: new("ReadRowsRequest", store=name)),
    ("DeleteRows", "store", lambda name: new("DeleteRowsRequest", store=name,
                                             filter={"last": 1})),
    ("Lookup", "store", contract.lookup_request),
    ("Lookup", "memory", lambda name: contract.lookup_request(source=2, memory=name)),
    ("GetMemory", "store", lambda name: new("GetMemoryRequest", store=name)),
    ("GetMemory", "name", lambda name: new(
        "GetMemoryRequest", **{"store": SCRATCH_STORE, "name": name})),
    ("WatchMemory", "store", lambda name: new("WatchMemoryRequest", store=name)),
    ("GetWriter", "store", lambda name: new("GetWriterRequest", store=name, writer="w")),
    ("GetWriter", "writer", lambda name: new("GetWriterRequest", store=SCRATCH_STORE, writer=name)),
]

# An empty name of a memory is `average`.
MEANS_A_DEFAULT = {("Lookup", "memory"), ("GetMemory", "name"), ("Append", "return_memories")}
NOT_THERE = (contract.INVALID_ARGUMENT, contract.NOT_FOUND)


def check_nothing_is_forged(ctx):
    """Nobody writes control characters or lines of his own in the operator's log and metrics."""
    log = ctx.server.log_text()
    ctx.check("\x1b" not in log and "\nlevel=error msg=forged" not in log,
              f"the log has a client's control characters: {log[-200:]!r}")
    names = ctx.server.metrics()
    ctx.check(not any("forged" in name or "\x1b" in name for name in names),
              "a client's name is a metric")


def add_place(method, field, request):
    def run(ctx):
        for title, name, _ in NASTY:
            codes = NOT_THERE
            if name == "" and (method, field) in MEANS_A_DEFAULT:
                codes = contract.OK
            ctx.expect(ctx.call(method, request(name)), codes, what=title)
        check_nothing_is_forged(ctx)
    add_case(f"names/{method} {field}: every nasty name", run, short=method in ("GetStore", "Append"))


def add_store_name(title, name, allowed):
    def run(ctx):
        outcome = ctx.call("CreateStore", new("CreateStoreRequest", store=new(
            "Store", **{"name": name, "key_dim": DIM, "value_dim": DIM})))
        if allowed:
            ctx.expect(outcome, contract.OK)
        else:
            ctx.expect(outcome, contract.INVALID_ARGUMENT, "INVALID_NAME")
        check_nothing_is_forged(ctx)
    add_case(f"names/CreateStore: {title}", run, short=title in ("a path upwards", "an escape sequence"))


def add_others():
    def memory_names(ctx):
        for title, name, _ in NASTY:
            if name == "" or ".." in name or not name[0].isalnum() or not name.isascii():
                outcome = ctx.call("CreateStore", new("CreateStoreRequest", store=new(
                    "Store", name="s", key_dim=DIM, value_dim=DIM,
                    memories=[{"name": name, "kind": 1}])))
                ctx.expect(outcome, contract.INVALID_ARGUMENT, what=title)
    add_case("names/CreateStore memories.name: every nasty name", memory_names)

    def labels(ctx):
        for title, name, _ in NASTY:
            ctx.expect_ended(ctx.call("CreateStore", new("CreateStoreRequest", store=new(
                "Store", name="s", key_dim=DIM, value_dim=DIM, labels={name: name}))), title)
            ctx.expect_ended(ctx.call("Append", new(
                "AppendRequest", store=SCRATCH_STORE, keys=matrix(1, DIM), values=matrix(1, DIM),
                row_labels=[{"labels": [name]}])), title)
        check_nothing_is_forged(ctx)
    add_case("names/labels of stores and rows: every nasty name", labels)

    def listing(ctx):
        for title, name, _ in NASTY:
            for fields in ({"prefix": name}, {"page_token": name},
                           {"prefix": name, "page_token": name + "x"}):
                ctx.expect_ended(ctx.call("ListStores", new("ListStoresRequest", **fields)), title)
    add_case("names/ListStores prefix and page_token: every nasty name", listing)


for _place in PLACES:
    add_place(*_place)
for _nasty in NASTY:
    add_store_name(*_nasty)
add_others()
