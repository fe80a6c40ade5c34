"""The asyncio client."""

from __future__ import annotations

from types import TracebackType
from typing import Any, List, Mapping, Optional, Sequence, Type

from softlookup._core import attention, stores
from softlookup._core.answer import Answer
from softlookup._core.attention import Options, WeightsWish
from softlookup._core.results import Backup, MemorySpec, Projection, StoreInfo
from softlookup._core.retry import Retry
from softlookup._core.settings import load_settings
from softlookup.aio._connection import Connection
from softlookup.aio._store import Store


class Client:
    """A connection to a server, made by connect(). One is enough for an event loop.

    Every method takes a `deadline` in seconds, by default the client's, and
    raises an Error.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"Client({self._connection.settings.address!r})"

    async def close(self) -> None:
        """Closes the connection. Calls in progress end."""
        await self._connection.close()

    def store(self, name: str) -> Store:
        """The store of this name. The server is not asked."""
        return Store(self._connection, name)

    async def create_store(
        self,
        name: str,
        *,
        key_dim: int,
        value_dim: int,
        num_heads: int = 1,
        score: Optional[str] = None,
        temperature: Optional[float] = None,
        storage: Optional[str] = None,
        memories: Sequence[MemorySpec] = (),
        projection: Optional[Projection] = None,
        labels: Optional[Mapping[str, str]] = None,
        deadline: Optional[float] = None,
    ) -> Store:
        """Makes an empty store. AlreadyExistsError if the name is taken.

        num_heads       Keys and values are split evenly into so many heads.
        score           Of lookups that name none: "dot", "scaled_dot" (the default), "cosine",
                        "euclidean" or "squared_euclidean"; temperature: likewise, 1 by default.
        storage         "float32" (the default), "bfloat16" or "int8".
        memories        Running memories beside "average".
        projection      Maps inputs to keys, values and queries.
        labels          Pairs for the caller's own use.
        """
        calls = stores.create(
            name,
            key_dim,
            value_dim,
            num_heads,
            score,
            temperature,
            storage,
            memories,
            projection,
            labels,
            deadline,
        )
        info = await self._connection.run_all(calls)
        return Store(self._connection, name, info)

    async def stores(
        self, prefix: str = "", *, deadline: Optional[float] = None
    ) -> List[StoreInfo]:
        """The stores whose names begin so, by name. The deadline is that of each page."""
        token, found = "", []
        while True:
            page, token = await self._connection.run(stores.list_page(prefix, token, deadline))
            found += page
            if not token:
                return found

    async def attend(
        self,
        queries: Any = None,
        keys: Any = None,
        values: Any = None,
        *,
        inputs: Any = None,
        projection: Optional[Projection] = None,
        num_heads: int = 1,
        score: Optional[str] = None,
        temperature: Optional[float] = None,
        mode: Optional[str] = None,
        top_k: int = 0,
        min_score: Optional[float] = None,
        recency_decay: Optional[float] = None,
        causal: bool = False,
        causal_offset: int = 0,
        weights: WeightsWish = None,
        max_error: Optional[float] = None,
        deadline: Optional[float] = None,
    ) -> Answer:
        """Attention over keys [N, key_dim] and values [N, value_dim]; the server stores nothing.

        inputs          [N, input_dim], which the projection maps to keys and values. Without
                        queries, it maps them to the queries, too: self attention, which needs no
                        projection.
        The rest is as in Store.lookup(), but one call takes 4,096 queries and 65,536 keys at most.
        More queries go in parts, each over all keys: queries[c : c + 4096] with causal_offset=c.
        """
        options = Options(
            score,
            temperature,
            mode,
            top_k,
            min_score,
            recency_decay,
            causal,
            causal_offset,
            weights,
            max_error,
        )
        call = attention.attend(
            queries, keys, values, inputs, projection, num_heads, options, deadline
        )
        return await self._connection.run(call)

    async def health(self, service: str = "", *, deadline: Optional[float] = None) -> bool:
        """Whether the server takes calls, or one gRPC service of it."""
        return await self._connection.run(stores.health(service, deadline))

    async def create_backup(self, name: str = "", *, deadline: Optional[float] = None) -> Backup:
        """Makes a backup of all stores on the server; without a name, it is named after the time."""
        return await self._connection.run(stores.create_backup(name, deadline))

    async def backups(self, *, deadline: Optional[float] = None) -> List[Backup]:
        """The server's complete backups, oldest first."""
        return await self._connection.run(stores.list_backups(deadline))

    async def restore_store(
        self,
        backup: str,
        store: str,
        *,
        name: str = "",
        keep_ranges: bool = False,
        deadline: Optional[float] = None,
    ) -> Store:
        """Brings a store of a backup into the server, under its name or another one.

        With keep_ranges, it has the ranges of rows that it had (docs/cluster.md). The server reads
        the whole backup and writes the store, and makes way for other calls meanwhile: give a
        deadline that allows for that. If it passes, nothing of the store stays.
        """
        info = await self._connection.run(
            stores.restore(backup, store, name, keep_ranges, deadline)
        )
        return Store(self._connection, info.name, info)


def connect(
    address: Optional[str] = None,
    *,
    tls_ca: Optional[str] = None,
    tls_certificate: Optional[str] = None,
    tls_key: Optional[str] = None,
    token_file: Optional[str] = None,
    deadline: float = 10.0,
    retry: Optional[Retry] = None,
    message_bytes_max: int = 64 << 20,
) -> Client:
    """A client of the server at `address`, HOST:PORT. Does not wait for the server.

    Several addresses have commas between them. The client uses one of these servers at a time, the
    first that it can reach, and goes on at the next one when that one is lost (docs/cluster.md).

    tls_ca          File with the certificates of the authorities that may have signed the server's.
    tls_certificate, tls_key
                    Files with the client's own certificate and private key.
    token_file      File with the token that tells who calls. Without TLS, the network can read it.
    deadline        Seconds that a call may take with all its attempts.
    retry           How failed calls are repeated.
    message_bytes_max
                    Largest message to send or to receive.

    What is not given is taken from SOFTLOOKUP_SERVER, SOFTLOOKUP_TLS_CA and so on, as `softlookup`
    does; the address is 127.0.0.1:7471 by default.
    """
    settings = load_settings(
        address, tls_ca, tls_certificate, tls_key, token_file, deadline, retry, message_bytes_max
    )
    return Client(Connection(settings))
