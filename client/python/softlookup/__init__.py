"""Soft lookups in stores of vectors: a client of softlookup-server.

    import softlookup as sl

    with sl.connect("127.0.0.1:7471") as client:
        store = client.create_store("people", key_dim=1, value_dim=5, score="dot")
        store.append(keys, values)
        answer = store.lookup([1.0], weights=3)

docs/python.md walks through it. softlookup.aio has the same for asyncio.
"""

import os as _os

# gRPC reads this once, when it is first imported: a forked process can then make calls of its own.
_os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "1")

from softlookup._client import Client, connect
from softlookup._core.answer import Answer
from softlookup._core.errors import (
    AlreadyExistsError,
    DeadlineError,
    Error,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    UnavailableError,
)
from softlookup._core.local_attention import attend
from softlookup._core.results import (
    AppendProgress,
    Backup,
    Compacted,
    Deleted,
    Memory,
    MemorySpec,
    Projection,
    Receipt,
    Renamed,
    Row,
    RowFilter,
    Rows,
    StoreInfo,
    WriterState,
    rows,
)
from softlookup._core.retry import Retry
from softlookup._core.weights import QueryWeights, Weights
from softlookup._store import Store
from softlookup._version import __version__
from softlookup._writer import Writer
from softlookup.tables import from_frame, from_npy

# These need the names above.
from softlookup import aio, testing  # isort: skip

__all__ = [
    "AlreadyExistsError",
    "Answer",
    "AppendProgress",
    "Backup",
    "Client",
    "Compacted",
    "DeadlineError",
    "Deleted",
    "Error",
    "InvalidArgumentError",
    "Memory",
    "MemorySpec",
    "NotFoundError",
    "PermissionDeniedError",
    "Projection",
    "QueryWeights",
    "Receipt",
    "Renamed",
    "Retry",
    "Row",
    "RowFilter",
    "Rows",
    "Store",
    "StoreInfo",
    "UnavailableError",
    "Weights",
    "Writer",
    "WriterState",
    "__version__",
    "aio",
    "attend",
    "connect",
    "from_frame",
    "from_npy",
    "rows",
    "testing",
]
