"""The wire contract: the compiled .proto files, and one small valid request for every method."""
import importlib
import os
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
PROTO = os.path.join(ROOT, "proto")

(OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS,
 PERMISSION_DENIED, RESOURCE_EXHAUSTED, FAILED_PRECONDITION, ABORTED, OUT_OF_RANGE, UNIMPLEMENTED,
 INTERNAL, UNAVAILABLE, DATA_LOSS, UNAUTHENTICATED) = range(17)

CODE_NAMES = ("OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS "
              "PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE "
              "UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED").split()


def code_name(code):
    return CODE_NAMES[code] if isinstance(code, int) and code < len(CODE_NAMES) else str(code)


def compile_protos():
    """Makes and imports the Python classes of all .proto files. Returns {message name: class}."""
    paths = [os.path.relpath(os.path.join(base, name), PROTO)
             for base, _, names in os.walk(PROTO) for name in sorted(names)
             if name.endswith(".proto")]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.check_call(["protoc", "-I" + PROTO, "--python_out=" + folder, *paths])
        # google/ is Debian's package as well; ours has google/rpc beside it.
        import google
        google.__path__.append(os.path.join(folder, "google"))
        sys.path.insert(0, folder)
        sys.dont_write_bytecode = True
        modules = [importlib.import_module(path[:-6].replace("/", ".") + "_pb2") for path in paths]
        sys.path.remove(folder)
    classes = {}
    for module in modules:
        for name, descriptor in module.DESCRIPTOR.message_types_by_name.items():
            package = "rpc." if module.DESCRIPTOR.package == "google.rpc" else ""
            classes[package + name] = getattr(module, descriptor.name)
    return classes


MESSAGES = compile_protos()


def new(message, /, **fields):
    return MESSAGES[message](**fields)


# Two stores that every server of the suite holds. Nobody writes to the first.
KNOWN_STORE = "known/store"
SCRATCH_STORE = "known/scratch"
KNOWN_PREFIX = "known/"
DIM = 4
KNOWN_ROWS = 512
SCRATCH_ROWS = 64


def matrix(rows, cols, start=0):
    """A small matrix of different finite numbers."""
    values = [((start + i) * 37 % 101 - 50) / 25 for i in range(rows * cols)]
    return new("Matrix", rows=rows, cols=cols, values=values)


def append_request(rows, store=SCRATCH_STORE, **fields):
    return new("AppendRequest", store=store, keys=matrix(rows, DIM), values=matrix(rows, DIM, 7),
               **fields)


def lookup_request(store=KNOWN_STORE, queries=3, **fields):
    return new("LookupRequest", store=store, queries=matrix(queries, DIM, 3), **fields)


class Method:
    """One method: how it is called, a valid request, and how that one ends."""

    def __init__(self, service, name, request, code=OK, endless=False):
        self.name, self.path = name, f"/{service}/{name}"
        self.request, self.code, self.endless = request, code, endless

    @property
    def valid(self):
        return self.request().SerializeToString()


SERVICE = "softlookup.v1.SoftLookup"
ADMIN_SERVICE = "softlookup.admin.v1.Admin"

METHODS = {method.name: method for method in (
    Method(SERVICE, "CreateStore", lambda: new("CreateStoreRequest", store=new(
        "Store", name="made", key_dim=DIM, value_dim=DIM))),
    Method(SERVICE, "GetStore", lambda: new("GetStoreRequest", name=SCRATCH_STORE)),
    Method(SERVICE, "ListStores", lambda: new("ListStoresRequest", prefix=KNOWN_PREFIX)),
    Method(SERVICE, "UpdateStore", lambda: new(
        "UpdateStoreRequest", store=new("Store", name=SCRATCH_STORE, labels={"a": "b"}),
        update_mask={"paths": ["labels"]})),
    Method(SERVICE, "RenameStore", lambda: new("RenameStoreRequest", store="nobody/s", new_name="nobody/t"),
           code=NOT_FOUND),
    Method(SERVICE, "CompactStore", lambda: new("CompactStoreRequest", name="nobody/s"),
           code=NOT_FOUND),
    Method(SERVICE, "DeleteStore", lambda: new("DeleteStoreRequest", name="nobody/s"),
           code=NOT_FOUND),
    Method(SERVICE, "Append", lambda: append_request(1)),
    Method(SERVICE, "StreamAppend", lambda: append_request(1)),
    Method(SERVICE, "ReadRows", lambda: new("ReadRowsRequest", store=KNOWN_STORE)),
    Method(SERVICE, "DeleteRows", lambda: new("DeleteRowsRequest", store=SCRATCH_STORE,
                                              filter={"ids": [1 << 60]})),
    Method(SERVICE, "Lookup", lookup_request),
    Method(SERVICE, "StreamLookup", lookup_request),
    Method(SERVICE, "Attend", lambda: new("AttendRequest", queries=matrix(2, DIM),
                                          keys=matrix(3, DIM), values=matrix(3, DIM))),
    Method(SERVICE, "GetMemory", lambda: new("GetMemoryRequest", store=KNOWN_STORE)),
    Method(SERVICE, "WatchMemory", lambda: new("WatchMemoryRequest", store=KNOWN_STORE,
                                               min_interval_ms=1000),
           endless=True),
    Method(SERVICE, "GetWriter", lambda: new("GetWriterRequest", store=SCRATCH_STORE,
                                             writer="known-writer")),
    # The servers of the suite keep everything in memory, and make no backups.
    Method(ADMIN_SERVICE, "CreateBackup", lambda: new("CreateBackupRequest", name="b"),
           code=FAILED_PRECONDITION),
    Method(ADMIN_SERVICE, "ListBackups", lambda: new("ListBackupsRequest"),
           code=FAILED_PRECONDITION),
    Method(ADMIN_SERVICE, "RestoreStore", lambda: new(
        "RestoreStoreRequest", backup="b", store="nobody/s", name="nobody/t"),
           code=FAILED_PRECONDITION),
    # Nor are they replicas.
    Method(ADMIN_SERVICE, "GetGroup", lambda: new("GetGroupRequest"), code=FAILED_PRECONDITION),
    Method(ADMIN_SERVICE, "AddReplica", lambda: new("AddReplicaRequest", node="n"),
           code=FAILED_PRECONDITION),
    Method(ADMIN_SERVICE, "RemoveReplica", lambda: new("RemoveReplicaRequest", node="n"),
           code=FAILED_PRECONDITION),
    Method(ADMIN_SERVICE, "MovePrimary", lambda: new("MovePrimaryRequest"),
           code=FAILED_PRECONDITION),
    Method(ADMIN_SERVICE, "SplitStore", lambda: new(
        "SplitStoreRequest", store=SCRATCH_STORE, range_count=2), code=FAILED_PRECONDITION),
    Method(ADMIN_SERVICE, "MoveRange", lambda: new("MoveRangeRequest", store=SCRATCH_STORE, nodes=["n"]),
           code=FAILED_PRECONDITION),
    Method(ADMIN_SERVICE, "GetRanges", lambda: new("GetRangesRequest", store=SCRATCH_STORE),
           code=FAILED_PRECONDITION),
)}
