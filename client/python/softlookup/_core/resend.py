"""What a writer has to send, and what was acknowledged. docs/writers.md has the protocol.

ResendQueue is the C++ client's class of the same name; tests/conformance/writers.json has the cases
that both keep.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Callable, Deque, Optional

from softlookup._core.arrays import invalid
from softlookup._core.errors import Error, InvalidArgumentError, internal
from softlookup._core.results import AppendProgress

_SEQUENCE_MAX = (1 << 64) - 1


@dataclass
class _Entry:
    request: bytes
    sequence: int
    rows: int
    sent_before: bool = False  # On an earlier connection, which may have applied it.


class ResendQueue:
    """The requests of one writer that are not acknowledged yet, oldest first. Not thread-safe.

    A request's sequence is the number of rows that the writer has sent up to the end of the request,
    so the writer's last sequence tells which row comes next, however the rows were cut.
    """

    def __init__(self, last_sequence: int) -> None:
        self._entries: Deque[_Entry] = deque()
        self._sent = 0  # Entries sent since the last rewind: the first so many.
        self._bytes = 0
        self._last_pushed = last_sequence
        self._last_sent = last_sequence
        self._acknowledged_sequence = last_sequence
        self.progress = AppendProgress()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def byte_size(self) -> int:
        """Bytes of the requests that are not acknowledged."""
        return self._bytes

    @property
    def all_sent(self) -> bool:
        """Whether each request was sent since the last rewind."""
        return self._sent == len(self._entries)

    def push(self, rows: int, build: Callable[[int], bytes]) -> None:
        """Adds the request that `build` makes for its sequence. OUT_OF_RANGE if none is left."""
        rows = max(1, rows)  # So that no two requests have one sequence. The server refuses it.
        if self._last_pushed > _SEQUENCE_MAX - rows:
            text = f"no sequences are left after {self._last_pushed}; use another writer"
            raise InvalidArgumentError("OUT_OF_RANGE", text)
        request = build(self._last_pushed + rows)
        self._last_pushed += rows
        self._entries.append(_Entry(request, self._last_pushed, rows))
        self._bytes += len(request)

    def next_to_send(self) -> Optional[bytes]:
        """The oldest request that was not sent since the last rewind; None if there is none."""
        if self.all_sent:
            return None
        entry = self._entries[self._sent]
        self._sent += 1
        self._last_sent = max(self._last_sent, entry.sequence)
        return entry.request

    def acknowledge(
        self, sequence: int, duplicate: bool, appended_rows: int, row_count: int, revision: int
    ) -> None:
        """Takes an answer as that to the oldest request, and drops the request.

        INTERNAL if it cannot be its answer. FAILED_PRECONDITION if the request counts as a duplicate
        but was sent once: then another sender uses the writer's name.
        """
        oldest = self._entries[0] if self._sent else None
        if oldest is None or sequence != oldest.sequence or appended_rows > oldest.rows:
            text = f"the server answered sequence {sequence}, which is not the next to be answered"
            raise internal(text)
        if duplicate and not oldest.sent_before:
            raise _another_sender(sequence, "which this writer has sent only once")
        # The first answer to a duplicate was lost. It alone said how many rows were left out.
        self._pop(oldest.rows if duplicate else appended_rows)
        self.progress = replace(self.progress, row_count=row_count, revision=revision, outage=None)

    def rewind(self, last_sequence: int) -> None:
        """Prepares for a new connection, before which the server has told the last sequence.

        The newest request always stays: if the server has it, the answer to its duplicate tells the
        store's row count and revision. DATA_LOSS if the server lacks what it had acknowledged.
        FAILED_PRECONDITION if it has more than was ever sent.
        """
        if last_sequence < self._acknowledged_sequence:
            raise Error(
                "DATA_LOSS",
                f"the server knows the writer's rows up to sequence {last_sequence} only, but had "
                f"acknowledged {self._acknowledged_sequence}",
            )
        if last_sequence > self._last_sent:
            text = f"and the last that this writer has sent is {self._last_sent}"
            raise _another_sender(last_sequence, text)
        for i in range(self._sent):
            self._entries[i].sent_before = True
        self._sent = 0
        while len(self._entries) > 1 and self._entries[0].sequence <= last_sequence:
            self._pop(self._entries[0].rows)

    def begin_reconnection(self, failure: Error) -> None:
        """Counts a reconnection after `failure`, which is an outage if requests are waiting."""
        outage = failure if self._entries else self.progress.outage
        count = self.progress.reconnections + 1
        self.progress = replace(self.progress, reconnections=count, outage=outage)

    def _pop(self, rows: int) -> None:
        entry = self._entries.popleft()
        self._acknowledged_sequence = entry.sequence
        self._bytes -= len(entry.request)
        self._sent = max(0, self._sent - 1)
        self.progress = replace(
            self.progress,
            rows=self.progress.rows + rows,
            requests=self.progress.requests + 1,
        )


def _another_sender(sequence: int, why: str) -> Error:
    return Error(
        "FAILED_PRECONDITION",
        "another sender uses this writer's name, or requests of an earlier one arrived late: the "
        f"server already has its sequence {sequence}, {why}; if all of them send the same rows, a "
        "new writer goes on after its resumed_from",
    )


def check_writer_name(name: str) -> None:
    """InvalidArgumentError unless the name has 1 to 128 bytes."""
    if not isinstance(name, str) or not 0 < len(name.encode(errors="replace")) <= 128:
        raise invalid("writer", "a writer's name has 1 to 128 bytes")
