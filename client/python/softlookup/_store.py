"""A store, as the sync client sees it."""

from __future__ import annotations

from typing import Any, Callable, Iterator, List, Mapping, Optional, Sequence

from softlookup._appending import append_all
from softlookup._connection import Connection
from softlookup._core import row_calls, stores
from softlookup._core.answer import Answer
from softlookup._core.appends import Batch, RowLabels
from softlookup._core.attention import Lookup, Options, WeightsWish
from softlookup._core.call import hinted
from softlookup._core.lookup_batches import answer_in_batches
from softlookup._core.results import (
    AppendProgress,
    Compacted,
    Deleted,
    Memory,
    Projection,
    Receipt,
    Renamed,
    RowFilter,
    Rows,
    StoreInfo,
    WriterState,
    concatenate,
)
from softlookup._core.writing import WriterOptions
from softlookup._writer import Writer


class Store:
    """A store of a server, by its name. Made by Client.store() or Client.create_store().

    Every method takes a `deadline` in seconds, by default the client's, and raises an Error.
    """

    def __init__(
        self, connection: Connection, name: str, info: Optional[StoreInfo] = None
    ) -> None:
        self._connection = connection
        self._name = name
        self._memories = None if info is None else info.memories

    @property
    def name(self) -> str:
        """The store's name."""
        return self._name

    def __repr__(self) -> str:
        return f"Store({self._name!r})"

    def info(self, *, deadline: Optional[float] = None) -> StoreInfo:
        """The store's settings and sizes."""
        info = self._connection.run(stores.get(self._name, deadline))
        self._memories = info.memories
        return info

    def append(
        self,
        keys: Any = None,
        values: Any = None,
        *,
        inputs: Any = None,
        ids: Optional[Sequence[int]] = None,
        labels: Optional[RowLabels] = None,
        on_conflict: Optional[str] = None,
        acknowledge: Optional[str] = None,
        return_memories: Sequence[str] = (),
        batch_rows: Optional[int] = None,
        progress: bool = False,
        deadline: Optional[float] = None,
    ) -> Receipt:
        """Appends rows: keys [N, key_dim] and values [N, value_dim], or inputs [N, input_dim].

        ids             One whole number a row, all different; no live row may have one of them.
        labels          For each row one text, or a sequence of them; "" or None for a row without.
        on_conflict     If a live row has an id: "fail" (the default), "replace" it and its labels, or
                        "skip" the new one.
        acknowledge     "durable" (the default): once the rows are on disk; "applied": once lookups
                        see them.
        return_memories Names of memories to return as of this append.
        batch_rows      Most rows of a request. Default: 65,536, the server's.
        progress        Shows a line on standard error, if that is a terminal.

        Nothing is sent if an argument is wrong. The request is sent once: after UNAVAILABLE or
        DEADLINE_EXCEEDED the rows may or may not be there, unless a writer() appends them. Rows that
        take more than 16 MiB, or more than batch_rows, go as several requests, each whole or not
        at all, and the deadline holds between two acknowledgements. Then an Error tells how many
        rows were acknowledged.
        """
        batch = Batch(
            keys,
            values,
            inputs,
            ids,
            labels,
            on_conflict,
            acknowledge,
            return_memories,
            batch_rows,
        )
        if len(batch.cuts()) == 1:
            return self._connection.run(batch.call(self._name, deadline))
        return append_all(self._connection, self._name, batch, deadline, progress)

    def lookup(
        self,
        queries: Any,
        *,
        score: Optional[str] = None,
        temperature: Optional[float] = None,
        mode: Optional[str] = None,
        top_k: int = 0,
        min_score: Optional[float] = None,
        recency_decay: Optional[float] = None,
        causal: bool = False,
        causal_offset: int = 0,
        where: Optional[RowFilter] = None,
        weights: WeightsWish = None,
        max_error: Optional[float] = None,
        source: Optional[str] = None,
        memory: Optional[str] = None,
        min_revision: int = 0,
        linearizable: bool = False,
        inputs: bool = False,
        deadline: Optional[float] = None,
    ) -> Answer:
        """The answers to queries, [T, key_dim] or [key_dim]: from one snapshot, if one call has them.

        score           "dot", "scaled_dot", "cosine", "euclidean" or "squared_euclidean".
        temperature     In [1e-6, 1e6]. Both are the store's by default.
        mode            "soft" (the default), "hard" or "linear".
        top_k           Only the rows with so many largest logits count; 0: all.
        min_score       Only rows of at least this score count.
        recency_decay   In (0, 1]: adds age times its logarithm to a logit.
        causal          Query t sees only positions up to causal_offset + t. Without it, there is no
                        causal_offset.
        where           Which rows take part: softlookup.rows().
        weights         How many of the largest weights come back, or "all".
        max_error       In [0, 1]: how far a component may be from the exact one.
        source          "rows" (the default); "memory": the pair of the memory that `memory` names, by
                        default "average", as of the end of `where`, which has no other condition
                        then; or "rows_and_memory": the rows, and the average of all older ones.
        min_revision    The answer is from this revision or a later one.
        linearizable    The answer is not older than any write that was acknowledged to anyone before. A
                        server of a group asks etcd for that.
        inputs          The queries are [T, input_dim], and the store's projection maps them.

        Up to 4,096 queries that take up to 32 MiB go as one call. More, or those of which the server
        says that they or their answer are too large, go as several, one after the other. Each call
        has the deadline, and sees the same store at the revision of the answers before it, or at a
        later one. Error with the code ABORTED if another store takes the name meanwhile.
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
        lookup = Lookup(
            self._name,
            queries,
            options,
            where,
            source,
            memory,
            min_revision,
            linearizable,
            inputs,
            deadline,
        )
        hint = stores.memory_hint(self._memories)
        calls = hinted(answer_in_batches(lookup), "MEMORY_NOT_FOUND", hint)
        return self._connection.run_all(calls)

    def rows(
        self,
        where: Optional[RowFilter] = None,
        *,
        keys: bool = True,
        values: bool = True,
        page_rows: int = 0,
        deadline: Optional[float] = None,
    ) -> Iterator[Rows]:
        """Pages of rows in the order of their positions, all of one snapshot; at least one.

        Without `keys` or `values`, these are not sent. page_rows is the most rows of a page; 0: as
        many as fit. The deadline holds for each page.
        """
        call = row_calls.read_rows(self._name, where, keys, values, page_rows, deadline)
        idle = deadline if deadline is not None else self._connection.settings.deadline
        return self._connection.stream(call, idle)

    def read(
        self,
        where: Optional[RowFilter] = None,
        *,
        keys: bool = True,
        values: bool = True,
        deadline: Optional[float] = None,
    ) -> Rows:
        """All pages of rows() as one."""
        pages = list(self.rows(where, keys=keys, values=values, deadline=deadline))
        return concatenate(pages)

    def delete_rows(self, where: RowFilter, *, deadline: Optional[float] = None) -> Deleted:
        """Deletes the rows that pass a filter, which must have a condition. Sent once."""
        return self._connection.run(row_calls.delete_rows(self._name, where, deadline))

    def memory(
        self,
        name: str = "average",
        *,
        begin: Optional[int] = None,
        end: Optional[int] = None,
        deadline: Optional[float] = None,
    ) -> Memory:
        """A running memory as of the append index `end`; of "average" also from `begin` on."""
        call = row_calls.get_memory(self._name, name, begin, end, deadline)
        hint = stores.memory_hint(self._memories)
        return self._connection.run_all(hinted(call, "MEMORY_NOT_FOUND", hint))

    def watch(
        self,
        name: str = "average",
        *,
        min_interval: float = 0.0,
        deadline: Optional[float] = None,
    ) -> Iterator[Memory]:
        """The memory now, and again after appends, at most one in `min_interval` seconds.

        Several appends may show as one change. Goes on for ever, unless a deadline is given, which
        holds between two memories.
        """
        call = row_calls.watch_memory(self._name, name, min_interval)
        return self._connection.stream(call, deadline)

    def writer(
        self,
        name: str,
        *,
        on_conflict: Optional[str] = None,
        acknowledge: Optional[str] = None,
        from_start: bool = False,
        outage_max: float = 120.0,
        batch_rows: Optional[int] = None,
        finish_timeout: Optional[float] = None,
        on_progress: Optional[Callable[[AppendProgress], None]] = None,
    ) -> Writer:
        """A context manager that appends each row once, whatever breaks (docs/writers.md).

        name            Stands for one series of rows, such as a file. The store remembers it.
        from_start      The program appends its series from the first row on; those that the store
                        has are left out, and InvalidArgumentError says where the series is found
                        to be another one. Without it, all rows are appended: begin after
                        resumed_from.last_sequence rows.
        outage_max      Seconds after a failure without an acknowledgement after which it gives up.
                        A server that holds the connection and does not answer is no failure.
        finish_timeout  Seconds after which leaving gives up on the acknowledgements, with a
                        DeadlineError. Default: never.
        on_progress     Called after each acknowledgement, and before each reconnection, in a thread
                        of the writer. It must not call the writer.
        """
        options = WriterOptions(
            self._name,
            name,
            on_conflict,
            acknowledge,
            from_start,
            outage_max,
            batch_rows,
            finish_timeout,
        )
        return Writer(self._connection, options, on_progress)

    def writer_state(self, name: str, *, deadline: Optional[float] = None) -> WriterState:
        """What the store knows of a writer. NotFoundError if it has never appended."""
        return self._connection.run(row_calls.get_writer(self._name, name, deadline))

    def update(
        self,
        *,
        score: Optional[str] = None,
        temperature: Optional[float] = None,
        labels: Optional[Mapping[str, str]] = None,
        projection: Optional[Projection] = None,
        deadline: Optional[float] = None,
    ) -> StoreInfo:
        """Changes the settings that are given."""
        call = stores.update(self._name, score, temperature, labels, projection, deadline)
        return self._connection.run(call)

    def rename(
        self, name: str, *, replace: bool = False, deadline: Optional[float] = None
    ) -> Renamed:
        """Gives the store another name; with `replace`, also one that another store has.

        This object goes on naming the old one.
        """
        return self._connection.run_all(stores.rename(self._name, name, replace, deadline))

    def compact(self, *, end_memories: bool = False, deadline: Optional[float] = None) -> Compacted:
        """Drops deleted rows for good. Takes up to minutes, so give it a deadline."""
        return self._connection.run(stores.compact(self._name, end_memories, deadline))

    def delete(self, *, deadline: Optional[float] = None) -> None:
        """Deletes the store and all its rows."""
        self._connection.run(stores.delete(self._name, deadline))


__all__: List[str] = ["Store"]
