"""Rows to append, cut into requests."""

from __future__ import annotations

from typing import Any, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np

from softlookup._core import arrays, wire
from softlookup._core.arrays import invalid, texts, whole_numbers
from softlookup._core.call import SERVICE, Call, fill
from softlookup._core.errors import Error, internal
from softlookup._core.results import Receipt
from softlookup._core.row_calls import memory_of
from softlookup._core.wire import Array
from softlookup._core.words import ACKNOWLEDGES, CONFLICTS
from softlookup._proto.softlookup.v1 import row_pb2

STREAM_METHOD = SERVICE + "StreamAppend"

BATCH_ROWS_MAX = 65536  # The server's default of --max-append-rows.
# Rows that go as one request. Well under the server's default of --max-message-bytes, 64 MiB.
WHOLE_BYTES_MAX = 16 << 20
BATCH_BYTES_MAX = 4 << 20  # A request of more rows: small enough for several to be under way.
WINDOW_REQUESTS = 8  # Of a large append: most requests that are not acknowledged.

#: One label, several, or none, for each row.
RowLabels = Sequence[Union[str, Sequence[str], None]]


class Batch:
    """Rows of one append: checked, and not yet encoded.

    keys, values    [N, key_dim] and [N, value_dim]; or inputs, [N, input_dim], instead of both.
    ids             One id a row, all different, or None.
    labels          Labels of each row, or None.
    InvalidArgumentError, which names the argument and the row, for what no store can take.
    """

    def __init__(
        self,
        keys: Any,
        values: Any,
        inputs: Any,
        ids: Optional[Sequence[int]],
        labels: Optional[RowLabels],
        on_conflict: Optional[str],
        acknowledge: Optional[str],
        return_memories: Sequence[str] = (),
        batch_rows: Optional[int] = None,
    ) -> None:
        self._matrices: List[Tuple[int, Array]] = []
        given = [("keys", 2, keys), ("values", 3, values), ("inputs", 4, inputs)]
        for name, field, value in given:
            if value is not None:
                array = arrays.matrix(name, value)
                if name == "values" and self._matrices:
                    arrays.same_rows("keys", self._matrices[0][1], name, array)
                arrays.check_finite(name, array)
                self._matrices.append((field, array))
        if (keys is None) != (values is None) or (keys is None) == (inputs is None):
            raise invalid("keys", "an append takes keys and values, or inputs instead of both")
        self.rows = len(self._matrices[0][1])
        self._ids = None if ids is None else _ids(ids, self.rows)
        self._labels = None if labels is None else _labels(labels, self.rows)
        self._on_conflict = CONFLICTS.number("on_conflict", on_conflict)
        self._acknowledge = ACKNOWLEDGES.number("acknowledge", acknowledge)
        self._return_memories = texts("return_memories", return_memories)
        if batch_rows is not None:
            (batch_rows,) = whole_numbers("batch_rows", [batch_rows])
        if batch_rows is not None and not 0 < batch_rows <= 1 << 32:
            raise invalid("batch_rows", f"batch_rows is {batch_rows!r}, and must be at least 1")
        row_bytes = sum(array.shape[1] * array.itemsize for _, array in self._matrices)
        self.row_bytes = row_bytes
        self._step = batch_rows or BATCH_ROWS_MAX
        if self.rows > self._step or self.rows * row_bytes > WHOLE_BYTES_MAX:
            self._step = min(self._step, max(1, BATCH_BYTES_MAX // max(1, row_bytes)))

    @property
    def has_ids(self) -> bool:
        """Whether the rows have ids."""
        return self._ids is not None

    @property
    def has_inputs(self) -> bool:
        """Whether there are inputs in place of keys and values."""
        return len(self._matrices) == 1

    def equals(self, begin: int, end: int, key: Array, value: Array) -> Array:
        """[end - begin], bool: which rows have this float32 key and value once they are float32."""
        equal = np.ones(end - begin, bool)
        for (_, array), row in zip(self._matrices, (key, value)):
            if array.shape[1] != len(row):
                return np.zeros(end - begin, bool)
            equal &= (array[begin:end].astype(np.float32) == row).all(axis=1)
        return equal

    def cuts(self, begin: int = 0) -> List[Tuple[int, int]]:
        """The rows [begin, end) of each request. One without rows if there are none at all."""
        if self.rows == 0:
            return [(0, 0)]
        step = self._step
        return [(at, min(at + step, self.rows)) for at in range(begin, self.rows, step)]

    def request(
        self, store: str, begin: int, end: int, *, writer: str = "", sequence: int = 0
    ) -> bytes:
        """The serialized AppendRequest of the rows [begin, end)."""
        message = fill(
            row_pb2.AppendRequest(),
            store=store,
            on_conflict=self._on_conflict,
            acknowledge=self._acknowledge,
            writer=writer,
            sequence=sequence,
        )
        # Memories as of the append are those after its last request.
        if end == self.rows:
            message.return_memories.extend(self._return_memories)
        if self._ids is not None:
            message.ids.extend(self._ids[begin:end].tolist())
        if self._labels is not None:
            for row in self._labels[begin:end]:
                fill(message.row_labels.add(), labels=row)
        matrices = [(f, arrays.contiguous(array[begin:end])) for f, array in self._matrices]
        return wire.join(message.SerializeToString(), matrices)

    def call(self, store: str, deadline: Optional[float]) -> Call[Receipt]:
        """All rows as one request."""
        request = self.request(store, 0, self.rows)
        rows = self.rows

        def decode(data: bytes) -> Receipt:
            tally = Tally()
            tally.add(data, rows)
            return tally.receipt()

        return Call(SERVICE + "Append", request, decode, deadline=deadline)

    def requests(self, store: str) -> Iterator[Tuple[bytes, int]]:
        """All rows as several requests, each with its number of rows."""
        for begin, end in self.cuts():
            yield self.request(store, begin, end), end - begin


class Tally:
    """Adds up the answers to the requests of an append, in the order of the requests."""

    def __init__(self) -> None:
        self.requests = 0
        self.rows_sent = 0
        self._first: Optional[Any] = None
        self._last: Optional[Any] = None
        self._rows = 0

    @property
    def acknowledged_rows(self) -> int:
        """Rows that were written, as far as the answers tell."""
        return self._rows

    def add(self, data: bytes, rows: int) -> None:
        """Takes the answer to a request of so many rows. INTERNAL if it cannot be its answer."""
        answer = wire.parse(row_pb2.AppendResponse, data)
        if answer.appended_count > rows or answer.duplicate or answer.sequence:
            raise internal("the server acknowledged another request than it was sent")
        if self._first is None or not self._rows:
            self._first = answer
        self._last = answer
        self._rows += answer.appended_count
        self.rows_sent += rows
        self.requests += 1

    def explain(self, error: Error) -> Error:
        """`error` with the rows acknowledged before; a row that it names counted from the first."""
        error.acknowledged_rows = self._rows
        row = error.metadata.get("row", "")
        if row.isdecimal() and len(row) < 20:
            error.metadata["row"] = str(int(row) + self.rows_sent)
        return error

    def receipt(self) -> Receipt:
        """Of all answers. There must have been one."""
        if self._first is None or self._last is None:
            raise internal("the server acknowledged nothing")
        memories = tuple(memory_of(each) for each in self._last.memories)
        return Receipt(
            self._first.first_position,
            self._rows,
            self._last.row_count,
            self._last.revision,
            self.requests,
            memories,
        )


def _ids(ids: Sequence[int], rows: int) -> Array:
    if isinstance(ids, np.ndarray):
        array: Array = ids
    else:
        numbers = whole_numbers("ids", ids)
        row = next((row for row, i in enumerate(numbers) if not 0 <= i < 1 << 64), None)
        if row is not None:
            raise invalid("ids", f"ids: row {row} is {numbers[row]}, not in [0, 2^64)", row)
        array = np.array(numbers, np.uint64)
    if array.dtype.kind not in "iu" and array.size:
        raise invalid("ids", f"ids has elements of type {array.dtype}, not whole numbers")
    if array.shape != (rows,):
        raise invalid("ids", f"ids has the shape {list(array.shape)}, not [{rows}], one id a row")
    if array.dtype.kind == "i" and array.size and array.min() < 0:
        row = int(array.argmin())
        raise invalid("ids", f"ids: row {row} is {array[row]}, not in [0, 2^64)", row)
    return array.astype(np.uint64)


def _labels(labels: RowLabels, rows: int) -> List[Tuple[str, ...]]:
    if isinstance(labels, (str, bytes)) or len(labels) != rows:
        raise invalid("labels", f"labels must have {rows} elements: the labels of each row")
    rows_of: List[Tuple[str, ...]] = []
    for i, row in enumerate(labels):
        try:
            of_row: Tuple[str, ...]
            of_row = (row,) if isinstance(row, str) else () if row is None else tuple(row)
        except TypeError:
            raise invalid("labels", f"labels: row {i} is no text, and no sequence of texts", i) from None
        # What UTF-8 does not have, such as "\ud800", would be found when other rows were sent.
        if not all(isinstance(label, str) and _is_utf8(label) for label in of_row):
            raise invalid("labels", f"labels: row {i} has a label that is no text", i)
        # An empty text is no label, as a blank line of a file of labels is none.
        rows_of.append(() if of_row == ("",) else of_row)
    return rows_of


def _is_utf8(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False
