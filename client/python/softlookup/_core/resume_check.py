"""Whether an input can be the one of which a writer has sent the first rows before.

A writer resumes by the number of these rows alone, so of another input it would leave out as many.
"""

from __future__ import annotations

from typing import Optional, Tuple

from softlookup._core import row_calls, stores
from softlookup._core.appends import Batch
from softlookup._core.arrays import invalid
from softlookup._core.call import Call, Calls
from softlookup._core.errors import Error, InvalidArgumentError
from softlookup._core.results import Row, RowFilter, Rows, StoreInfo, WriterState

_BLOCK_ROWS = 1024  # Compared at a time.

#: A writer on entering, and the call that reads its last row; None if nothing is to be checked.
Opened = Tuple[WriterState, Optional[Call[Rows]]]


def open_writer(store: str, name: str, from_start: bool) -> Calls[Opened]:
    """What the store has of the writer. If `from_start`, also how to read its last row.

    There is nothing to check if the store keeps rounded rows, or cannot be asked.
    """
    state = WriterState(name)
    try:
        state = yield row_calls.get_writer(store, name, None)
    except Error as error:
        if not row_calls.is_new_writer(error):
            raise
    position = state.last_position
    # The position 0 also means that the writer has written no row.
    if not from_start or state.last_sequence == 0 or position == 0:
        return state, None
    try:
        info: StoreInfo = yield stores.get(store, None)
    except Error:
        return state, None
    if info.storage != "float32":
        return state, None
    where = RowFilter(begin=position, end=position + 1)
    return state, row_calls.read_rows(store, where, True, True, 1, None)


class ResumeCheck:
    """The check is about the last row that the writer appended, as the store has it.

    That row must be the last of the rows sent before. If either has an id, it may be any of them,
    because on_conflict="skip" may have left out those behind it. There is nothing to check if the
    row was deleted or could not be read, or if the input has no keys.
    """

    def __init__(self, store: str, state: WriterState, page: Optional[Rows]) -> None:
        """`page` has the last row of the writer, if that could be read."""
        self._store = store
        self._state = state
        found = next(iter(page), None) if page is not None else None
        is_last = found is not None and found.position == state.last_position
        self._row: Optional[Row] = found if is_last else None
        self._handed_rows = 0  # Of the input, so far.
        self._any_equals = False  # Of the rows that were sent before.
        self._last_equals = False

    def look(self, batch: Batch, sent: int) -> None:
        """Takes the next rows of the input, of which the first `sent` were sent before.

        InvalidArgumentError if those that were sent before end here and the input is another one.
        """
        self._handed_rows += batch.rows
        if self._row is None or sent == 0:
            return
        if batch.has_inputs:
            self._row = None
            return
        for begin in range(0, sent, _BLOCK_ROWS):
            end = min(begin + _BLOCK_ROWS, sent)
            equal = batch.equals(begin, end, self._row.key, self._row.value)
            self._last_equals = bool(equal[-1])
            self._any_equals = self._any_equals or bool(equal.any())
        if self._handed_rows < self._state.last_sequence:
            return
        is_last = not batch.has_ids and self._row.id is None
        if not (self._last_equals if is_last else self._any_equals):
            raise self._another(is_last)

    def check_end(self) -> None:
        """No rows follow. InvalidArgumentError if the rows handed over end within those sent before.

        A program that handed over none has no input to check.
        """
        sent = self._state.last_sequence
        if 0 < self._handed_rows < sent:
            text = f"has sent {_rows(sent)} before, but the input has {self._handed_rows}"
            raise invalid("writer", f"the writer {self._state.name} {text}; {_REMEDY}")

    def _another(self, is_last: bool) -> InvalidArgumentError:
        state = self._state
        sent = _rows(state.last_sequence)
        which = f"none of its first {sent} is"
        if is_last:
            which = f"its row {state.last_sequence - 1} (from 0) is not"
        return invalid(
            "writer",
            f"the writer {state.name} has sent {sent} before, but not of this input: {which} the "
            f"last row that {state.name} appended, at position {state.last_position} of "
            f"{self._store}; {_REMEDY}, or to append all but its first {sent}, hand over only the "
            "others without from_start",
        )


_REMEDY = "give this input a writer of its own"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"
