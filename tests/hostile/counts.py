"""Many of what costs a sender two bytes and a careless server hundreds: empty messages, empty
strings, ids of one byte, unknown fields. Memory is judged by the common bound."""
import contract
from cases import add_case, case
from contract import DIM, KNOWN_STORE, SCRATCH_STORE, new
from protobytes import BYTES, block, empty, groups, integer, tag, varint

MILLIONS = 4_200_000  # Two bytes each: 8.4 MB.
THOUSANDS = 5_000

ENDED_WELL = (contract.OK, contract.INVALID_ARGUMENT, contract.NOT_FOUND,
              contract.RESOURCE_EXHAUSTED, contract.FAILED_PRECONDITION)
TOO_MANY = (contract.INVALID_ARGUMENT, contract.RESOURCE_EXHAUSTED)


def create_store(inside):
    store = new("Store", name="counted", key_dim=DIM, value_dim=DIM).SerializeToString()
    return block(1, store + inside)


def update_store(inside, mask):
    store = new("Store", name=SCRATCH_STORE).SerializeToString()
    return block(1, store + inside) + block(2, mask)


def append(inside):
    return contract.append_request(2).SerializeToString() + inside


def lookup(inside):
    return contract.lookup_request().SerializeToString() + inside


def filtered(method, inside):
    number = {"Lookup": 5, "ReadRows": 2, "DeleteRows": 2}[method]
    store = SCRATCH_STORE if method == "DeleteRows" else KNOWN_STORE
    if method == "Lookup":
        return lookup(block(number, inside))
    return block(1, store) + block(number, inside)


def packed(number, count):
    """`count` numbers of one byte each, in one packed field."""
    return tag(number, BYTES) + varint(count) + b"\x07" * count


def short_map(count):
    return b"".join(block(10, block(1, str(i))) for i in range(min(count, 1_000_000)))


# (name, method, message of a count, codes)
COUNTED = [
    ("empty memories", "CreateStore", lambda n: create_store(empty(8, n)), TOO_MANY),
    ("memories with an empty gate", "CreateStore",
     lambda n: create_store(block(8, block(4, b"")) * (n // 2)), TOO_MANY),
    ("empty entries of labels", "CreateStore", lambda n: create_store(empty(10, n)), ENDED_WELL),
    ("different entries of labels", "CreateStore", lambda n: create_store(short_map(n)), TOO_MANY),
    ("empty projections", "CreateStore", lambda n: create_store(empty(9, n)), ENDED_WELL),
    ("projections of empty matrices", "CreateStore",
     lambda n: create_store(block(9, empty(1, 1) + empty(2, 1) + empty(3, 1)) * (n // 4)), ENDED_WELL),
    ("empty stores", "CreateStore", lambda n: create_store(b"") + empty(1, n), ENDED_WELL),
    ("empty timestamps", "CreateStore", lambda n: create_store(empty(15, n)), ENDED_WELL),
    ("empty memories to update", "UpdateStore",
     lambda n: update_store(empty(8, n), block(1, "score")), ENDED_WELL),
    ("empty paths of a mask", "UpdateStore", lambda n: update_store(b"", empty(1, n)), TOO_MANY),
    ("the path `score` of a mask", "UpdateStore",
     lambda n: update_store(b"", block(1, "score") * (n // 4)), ENDED_WELL),
    ("the path `labels` of a mask, with 60 labels", "UpdateStore",
     lambda n: update_store(short_map(60), block(1, "labels") * (n // 4)), ENDED_WELL),
    ("empty row_labels", "Append", lambda n: append(empty(7, n)), TOO_MANY),
    ("empty labels of a row", "Append", lambda n: append(block(7, empty(1, n)) + empty(7, 1)), TOO_MANY),
    ("row_labels of an empty label each", "Append",
     lambda n: append(block(7, empty(1, 1)) * (n // 2)), TOO_MANY),
    ("ids of one byte", "Append", lambda n: append(packed(5, 2 * n)), TOO_MANY),
    ("ids of one byte, one by one", "Append", lambda n: append(integer(5, 7) * n), TOO_MANY),
    ("empty return_memories", "Append", lambda n: append(empty(11, n)), ENDED_WELL),
    ("return_memories `average`", "Append",
     lambda n: append(block(11, "average") * (n // 5)), ENDED_WELL),
    ("empty matrices", "Append", lambda n: append(empty(2, n)), ENDED_WELL),
    ("zero numbers, one by one", "Append",
     lambda n: append(block(2, (tag(5, 5) + b"\0\0\0\0") * (n // 3))), TOO_MANY),
    ("empty row_labels on a stream", "StreamAppend", lambda n: append(empty(7, n)), TOO_MANY),
    ("empty matrices", "Attend", lambda n: empty(1, n), ENDED_WELL),
    ("empty options", "Lookup", lambda n: lookup(empty(4, n)), ENDED_WELL),
    ("options of one field", "Lookup", lambda n: lookup(block(4, integer(4, 1)) * (n // 2)), ENDED_WELL),
    ("empty filters", "Lookup", lambda n: lookup(empty(5, n)), ENDED_WELL),
    ("unknown numbers", "Lookup", lambda n: lookup(integer(15, 1) * n), ENDED_WELL),
    ("unknown empty strings", "Lookup", lambda n: lookup(empty(15, n)), ENDED_WELL),
    ("unknown groups", "Lookup", lambda n: lookup(groups(15, 1) * n), ENDED_WELL),
    ("unknown groups with a number each", "GetStore",
     lambda n: block(1, SCRATCH_STORE) + (tag(15, 3) + integer(1, 1) + tag(15, 4)) * (n // 2), ENDED_WELL),
    ("unknown numbers", "ListStores", lambda n: integer(15, 1) * n, ENDED_WELL),
    ("unknown numbers", "GetWriter", lambda n: integer(15, 1) * n, ENDED_WELL),
    ("unknown numbers", "ListBackups", lambda n: integer(15, 1) * n, ENDED_WELL),
    ("unknown numbers in a matrix", "Append", lambda n: append(block(2, integer(15, 1) * n)), ENDED_WELL),
    ("the name given over and over", "GetStore", lambda n: block(1, SCRATCH_STORE) * (n // 8), ENDED_WELL),
    ("empty paths of a read_mask", "ReadRows",
     lambda n: block(1, KNOWN_STORE) + block(4, empty(1, n)), TOO_MANY),
    ("the path `key` of a read_mask", "ReadRows",
     lambda n: block(1, KNOWN_STORE) + block(4, block(1, "key") * (n // 3)), ENDED_WELL),
    *[(f"empty {name} of a filter", method, lambda n, method=method, number=number: filtered(
        method, empty(number, n)), ENDED_WELL)
      for name, number in (("any_labels", 4), ("no_labels", 5))
      for method in ("Lookup", "ReadRows", "DeleteRows")],
    *[(f"{name} of one byte in a filter", method, lambda n, method=method, number=number: filtered(
        method, packed(number, 2 * n)), ENDED_WELL)
      for name, number in (("ids", 6), ("exclude_ids", 7))
      for method in ("Lookup", "ReadRows", "DeleteRows")],
]

# The ones of which the table of defects tells, and which the ordinary run has.
DEFECT_3 = {("empty memories", "CreateStore"): 1445, ("empty row_labels", "Append"): 435,
            ("empty any_labels of a filter", "Lookup"): 377, ("ids of one byte", "Append"): 142}


def add_counted(name, method, message, codes):
    def run(ctx, count):
        ctx.expect(ctx.call(method, message(count), deadline=ctx.patience(20)), codes)

    add_case(f"counts/{method}: thousands of {name}", lambda ctx: run(ctx, THOUSANDS))
    was = DEFECT_3.get((name, method))
    title = f"counts/{method}: 8.4 MB of {name}"
    if was:
        title = f"defect-3/{method}: 8.4 MB of {name} made {was} MB"
    add_case(title, lambda ctx: run(ctx, MILLIONS), short=bool(was), fresh=True, seconds=60, megabytes=40)


for _row in COUNTED:
    add_counted(*_row)


@case("defect-3/two CreateStores of 2 MB of empty memories hold nobody up", short=True, fresh=True,
      seconds=60)
def two_stores_of_empty_memories(ctx):
    def create():
        outcome = ctx.call("CreateStore", create_store(empty(8, 1_000_000)), deadline=ctx.patience(20),
                           connection=ctx.connect())
        ctx.expect(outcome, TOO_MANY)
    ctx.in_threads([create, create])


def large_projection():
    """Three matrices of 8.4 MB together, and the store they are for."""
    key_dim, value_dim, inputs = 1024, 64, 990
    dims = {"key_dim": key_dim, "value_dim": value_dim}

    def zeros(rows):
        return {"rows": rows, "cols": inputs, "data": bytes(4 * rows * inputs)}
    projection = {"query": zeros(key_dim), "key": zeros(key_dim), "value": zeros(value_dim)}
    return dims, projection


@case("defect-2/two UpdateStores whose mask names `projection` 20,000 times hold nobody up",
      short=True, fresh=True, seconds=120, megabytes=40, memory_megabytes=40)
def projection_twenty_thousand_times(ctx):
    dims, projection = large_projection()
    ctx.expect(ctx.call("CreateStore", new("CreateStoreRequest", store=new(
        "Store", name="projected", **dims))), contract.OK)
    request = new("UpdateStoreRequest", store=new("Store", name="projected", projection=projection),
                  update_mask={"paths": ["projection"] * 20_000}).SerializeToString()

    def update():
        outcome = ctx.call("UpdateStore", request, deadline=ctx.patience(30), connection=ctx.connect())
        ctx.expect(outcome, ENDED_WELL)
    ctx.in_threads([update, update])


@case("counts/UpdateStore: ten times a projection of 8.4 MB", fresh=True, seconds=90, megabytes=110)
def projection_ten_times(ctx):
    dims, projection = large_projection()
    ctx.expect(ctx.call("CreateStore", new("CreateStoreRequest", store=new(
        "Store", name="projected", **dims))), contract.OK)
    request = new("UpdateStoreRequest", store=new("Store", name="projected", projection=projection),
                  update_mask={"paths": ["projection"]}).SerializeToString()
    for _ in range(10):
        ctx.expect(ctx.call("UpdateStore", request, deadline=ctx.patience(20)), contract.OK)


@case("counts/stores: 2,000 made and listed in pages of every size", seconds=60, memory_megabytes=30)
def many_stores(ctx):
    for i in range(2000):
        ctx.expect(ctx.call("CreateStore", new("CreateStoreRequest", store=new(
            "Store", name=f"many/{i}", key_dim=1, value_dim=1))), contract.OK)
    for size in (1, 7, 100, 999, 1000, 1001, (1 << 31) - 1):
        outcome = ctx.call("ListStores", new("ListStoresRequest", page_size=size, prefix="many/"))
        if ctx.expect(outcome, contract.OK):
            page = contract.MESSAGES["ListStoresResponse"].FromString(outcome.messages[0])
            ctx.check(len(page.stores) == min(size, 1000), f"page of {size}: {len(page.stores)}")
