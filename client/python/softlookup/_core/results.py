"""What calls return, beside answers: receipts, stores, memories, rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Iterator, Mapping, Optional, Sequence, Tuple

import numpy as np

from softlookup._core.arrays import texts, whole_numbers
from softlookup._core.errors import internal
from softlookup._core.wire import Array


@dataclass(frozen=True)
class RowFilter:
    """Which rows take part: those that meet all conditions. Made by softlookup.rows()."""

    begin: Optional[int] = None
    end: Optional[int] = None
    last: Optional[int] = None
    labels: Optional[Tuple[str, ...]] = None
    without_labels: Tuple[str, ...] = ()
    ids: Optional[Tuple[int, ...]] = None
    without_ids: Tuple[int, ...] = ()


def rows(
    *,
    begin: Optional[int] = None,
    end: Optional[int] = None,
    last: Optional[int] = None,
    labels: Optional[Sequence[str]] = None,
    without_labels: Sequence[str] = (),
    ids: Optional[Sequence[int]] = None,
    without_ids: Sequence[int] = (),
) -> RowFilter:
    """The rows that meet all of these conditions; deleted rows never do.

    begin, end      Positions in [begin, end). Default: from 0 to the row count.
    last            Only the last so many positions of these.
    labels          Rows with at least one of these labels; without_labels: with none of these.
    ids             Rows with one of these ids; without_ids: with none of these. Rows without an id
                    pass the latter.
    No row could pass an empty list of labels or ids, so a call refuses it.
    """
    return RowFilter(
        begin,
        end,
        last,
        None if labels is None else texts("labels", labels),
        texts("without_labels", without_labels),
        None if ids is None else whole_numbers("ids", ids),
        whole_numbers("without_ids", without_ids),
    )


@dataclass(frozen=True)
class MemorySpec:
    """A running memory that a store keeps beside the built-in "average".

    kind    "average", "decayed_sum", "decayed_average", "gated" or "gated_average".
    decay   In (0, 1), for the decayed kinds.
    gate    [key_dim + 1], the bias first, for the gated kinds.
    """

    name: str
    kind: str
    decay: Optional[float] = None
    gate: Optional[Any] = None


@dataclass(frozen=True)
class Projection:
    """Maps inputs to queries, keys and values: q = query x, k = key x, v = value x.

    query, key      [key_dim, input_dim].
    value           [value_dim, input_dim].
    """

    query: Any
    key: Any
    value: Any


@dataclass(frozen=True)
class Memory:
    """The state of a running memory.

    key         [key_dim], float64, and value: [value_dim], float64.
    begin, end  The positions that it covers: [begin, end).
    weight      Its normaliser, such as the number of rows.
    revision    The store's, that it was read from.
    """

    name: str
    key: Array
    value: Array
    begin: int
    end: int
    weight: float
    revision: int


@dataclass(frozen=True)
class Receipt:
    """The acknowledgement of an append.

    first_position      Of the first row that was written; the others follow without a gap, if the
                        append was one request.
    appended_rows       Rows that were written, without those that on_conflict="skip" left out.
    row_count, revision Of the store afterwards. A lookup with this min_revision sees the rows.
    requests            How many requests it took. Each is applied whole or not at all.
    memories            Those that were asked for, as of this append.
    """

    first_position: int
    appended_rows: int
    row_count: int
    revision: int
    requests: int = 1
    memories: Tuple[Memory, ...] = ()


@dataclass(frozen=True)
class WriterState:
    """What a store knows of a writer: its last sequence, and the position of its last row."""

    name: str
    last_sequence: int = 0
    last_position: int = 0


@dataclass(frozen=True)
class AppendProgress:
    """How far a writer is.

    rows                Acknowledged rows, without those that on_conflict="skip" left out. If an
                        answer was lost, all rows of its request count.
    requests            Acknowledged requests.
    row_count, revision Of the store as of the last answer; 0 before the first.
    reconnections       Attempts to connect again after a failure.
    outage              The failure since which nothing was acknowledged; None if there is none.
    """

    rows: int = 0
    requests: int = 0
    row_count: int = 0
    revision: int = 0
    reconnections: int = 0
    outage: Optional[Exception] = None


@dataclass(frozen=True)
class StoreInfo:
    """A store's settings and sizes.

    damage          What is wrong with a damaged store; empty for a whole one.
    projection      None if the store has none.
    """

    name: str
    key_dim: int
    value_dim: int
    num_heads: int
    score: str
    temperature: float
    storage: str
    memories: Tuple[MemorySpec, ...]
    labels: Mapping[str, str]
    revision: int
    row_count: int
    live_row_count: int
    byte_size: int
    create_time: Optional[datetime]
    projection: Optional[Projection] = field(default=None, repr=False)
    damage: str = ""


@dataclass(frozen=True)
class Renamed:
    """A renamed store, and the one that it replaced, if any."""

    store: StoreInfo
    replaced: bool


@dataclass(frozen=True)
class Compacted:
    """What a compaction dropped: rows, and blocks that lost rows."""

    store: StoreInfo
    dropped_rows: int
    compacted_blocks: int


@dataclass(frozen=True)
class Deleted:
    """How many rows were deleted, and the store's revision afterwards."""

    rows: int
    revision: int


@dataclass(frozen=True)
class Backup:
    """A complete backup on the server."""

    name: str
    create_time: Optional[datetime]
    byte_size: int


@dataclass(frozen=True)
class Row:
    """One row. `id` is None if it has none; `key` is [key_dim], `value` [value_dim], float32."""

    position: int
    id: Optional[int]
    labels: Tuple[str, ...]
    key: Array = field(repr=False)
    value: Array = field(repr=False)


@dataclass(frozen=True)
class Rows:
    """Rows of a store in the order of their positions, all of one snapshot.

    positions       [n], uint64.
    ids, has_ids    [n], uint64 and bool: 0 and False for a row without an id.
    labels          A tuple of labels for each row.
    keys, values    [n, key_dim] and [n, value_dim], float32. [n, 0] if they were not asked for.
    revision        The snapshot's.

    Iterating gives one Row after the other.
    """

    positions: Array
    ids: Array
    has_ids: Array
    labels: Tuple[Tuple[str, ...], ...]
    keys: Array = field(repr=False)
    values: Array = field(repr=False)
    revision: int

    def __len__(self) -> int:
        return len(self.positions)

    def __iter__(self) -> Iterator[Row]:
        for i, position in enumerate(self.positions):
            row_id = int(self.ids[i]) if self.has_ids[i] else None
            yield Row(int(position), row_id, self.labels[i], self.keys[i], self.values[i])


def concatenate(pages: Sequence[Rows]) -> Rows:
    """All rows of the pages of one read. INTERNAL if there is no page, or they do not fit."""
    if not pages:
        raise internal("the server sent no page of rows")
    full = [page for page in pages if len(page)] or list(pages[:1])
    if len({(page.keys.shape[1], page.values.shape[1]) for page in full}) > 1:
        raise internal("the server sent pages of rows that do not have one dimension")
    return Rows(
        np.concatenate([page.positions for page in full]),
        np.concatenate([page.ids for page in full]),
        np.concatenate([page.has_ids for page in full]),
        tuple(labels for page in full for labels in page.labels),
        np.concatenate([page.keys for page in full]),
        np.concatenate([page.values for page in full]),
        pages[0].revision,
    )
