"""A writer, without its connections: what to do after each event. docs/writers.md."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Callable, Optional, Tuple

from softlookup._core import wire
from softlookup._core.appends import Batch
from softlookup._core.arrays import check_number, invalid
from softlookup._core.call import check_seconds
from softlookup._core.errors import DeadlineError, Error, internal
from softlookup._core.resend import ResendQueue, check_writer_name
from softlookup._core.results import AppendProgress, Rows, WriterState
from softlookup._core.resume_check import ResumeCheck
from softlookup._core.retry import Retry, delay_before_retry
from softlookup._proto.softlookup.v1 import row_pb2


OnProgress = Optional[Callable[[AppendProgress], None]]


@dataclass(frozen=True)
class WriterOptions:
    """What store.writer() is given.

    outage_max          Longest time without an acknowledgement, in seconds, while requests wait.
    finish_timeout      Seconds that leaving the writer waits for all acknowledgements; None: any.
    window_requests     Most requests that are not acknowledged, and window_bytes: most bytes of
                        them. A larger request is sent alone.
    """

    store: str
    name: str
    on_conflict: Optional[str] = None
    acknowledge: Optional[str] = None
    from_start: bool = False
    outage_max: float = 120.0
    batch_rows: Optional[int] = None
    finish_timeout: Optional[float] = None
    window_requests: int = 64
    window_bytes: int = 32 << 20

    def __post_init__(self) -> None:
        check_writer_name(self.name)
        check_number("outage_max", self.outage_max)
        if not 0 < self.outage_max:
            raise invalid("outage_max", "outage_max must be above 0 seconds")
        check_seconds("finish_timeout", self.finish_timeout)


class Machine:
    """The state of one writer. Its owner holds a lock around each call.

    The owner makes the calls, one after another: StreamAppend as long as `positioned`, else
    GetWriter. What comes of a call goes to one of the methods below "The connection".
    """

    def __init__(
        self,
        options: WriterOptions,
        retry: Retry,
        state: WriterState,
        last_row: Optional[Rows] = None,
    ) -> None:
        """`last_row` is the row at `state.last_position`, if it was read."""
        self.options = options
        self.resumed_from = state
        self.finishing = False  # finish() was called: no rows follow.
        self.cancelled = False
        self._cut_short = False  # Cancelled while rows could follow.
        self.over = False
        self.result: Optional[Error] = None  # Once over; None if all is acknowledged.
        # Whether the server has told the last sequence since the last StreamAppend.
        self.positioned = True
        self._queue = ResendQueue(state.last_sequence)
        self._retry = Retry(1 << 62, retry.backoff_min, retry.backoff_max)
        self._skip = state.last_sequence if options.from_start else 0
        self._resume_check: Optional[ResumeCheck] = None
        if self._skip > 0:
            self._resume_check = ResumeCheck(options.store, state, last_row)
        self._failures = 0
        self._outage_begin = math.inf
        self._requests_at_outage = 0

    @property
    def progress(self) -> AppendProgress:
        """What the server has acknowledged so far."""
        return self._queue.progress

    # The caller.

    def skip(self, batch: Batch) -> int:
        """How many of the first rows of `batch` the store has from earlier writers of the name.

        InvalidArgumentError if they were of another input.
        """
        skipped = min(self._skip, batch.rows)
        if self._resume_check is not None:
            self._resume_check.look(batch, skipped)
        self._skip -= skipped
        return skipped

    def has_room(self, rows: int, row_bytes: int) -> bool:
        """Whether a request of so many rows may be pushed; also once the writer is over."""
        if self.over or self.cancelled or len(self._queue) == 0:
            return True
        fits = self._queue.byte_size + rows * row_bytes <= self.options.window_bytes
        return fits and len(self._queue) < self.options.window_requests

    def check_takes_rows(self) -> None:
        """Raises what ended the writer, if it is over, or that it is finished."""
        if self.over and self.result is not None:
            raise self.result
        if self.cancelled:
            raise _cancelled()
        if self.finishing or self.over:
            raise Error("FAILED_PRECONDITION", "the writer is finished")

    def push(self, batch: Batch, cut: Tuple[int, int]) -> None:
        """Adds a request, if the writer takes rows."""
        self.check_takes_rows()
        store, writer = self.options.store, self.options.name
        self._queue.push(
            cut[1] - cut[0],
            lambda sequence: batch.request(store, *cut, writer=writer, sequence=sequence),
        )

    def finish(self) -> None:
        """No rows follow. InvalidArgumentError if the input ends within the rows sent before."""
        if self._resume_check is not None:
            self._resume_check.check_end()
        self.finishing = True

    def late(self, timeout: float) -> Error:
        """The error of a finish() that had so many seconds while the writer was not over."""
        waiting = len(self._queue)
        text = f"the writer was not done after {timeout:g} s; unacknowledged requests: {waiting}"
        error = DeadlineError("DEADLINE_EXCEEDED", text)
        error.acknowledged_rows = self.progress.rows
        return error

    def cancel(self) -> None:
        """The writer is to end soon."""
        if not self.over:
            self.cancelled = True
            self._cut_short = self._cut_short or not self.finishing

    # The connection.

    def has_work(self) -> bool:
        """Whether a call is to be made now; if there is nothing to send, an outage is over."""
        if len(self._queue) == 0:
            self._failures = 0  # A connection that breaks with nothing to send is no outage.
        return not self.cancelled and len(self._queue) > 0

    @property
    def may_idle(self) -> bool:
        """Whether the owner waits for rows before it makes a call."""
        return not self.cancelled and not self.finishing and len(self._queue) == 0

    @property
    def has_all_sent(self) -> bool:
        """Whether the stream has nothing to send now."""
        return self._queue.all_sent

    def next_to_send(self) -> Optional[bytes]:
        """The next request of the stream; None if there is none now."""
        return self._queue.next_to_send()

    def answered(self, data: bytes) -> None:
        """Takes a message of the stream. An Error, which ends the writer, if it is wrong."""
        answer = wire.parse(row_pb2.AppendResponse, data)
        self._queue.acknowledge(
            answer.sequence,
            answer.duplicate,
            answer.appended_count,
            answer.row_count,
            answer.revision,
        )

    def stream_ended(self, failure: Optional[Error]) -> None:
        """Takes the end of a stream. Raises its failure unless all is done."""
        self.positioned = False
        if self.finishing and len(self._queue) == 0:
            return
        if failure is None:
            text = "the server ended the stream before it answered every request"
            failure = internal(text)
        raise failure

    def reposition_seconds(self, now: float, deadline: float) -> float:
        """How long a GetWriter call may take."""
        return max(0.001, min(deadline, self._outage_end() - now))

    def repositioned(self, answer: Optional[WriterState]) -> None:
        """Takes the answer of GetWriter, None if the store does not know the writer."""
        self._queue.rewind(answer.last_sequence if answer is not None else 0)
        self.positioned = True

    def failed(self, error: Error, now: float, jitter: float) -> float:
        """Takes the failure of a call; seconds to wait before the next one. Raises a final one."""
        requests = self.progress.requests
        if self._failures == 0 or self._requests_at_outage < requests:
            self._failures, self._outage_begin, self._requests_at_outage = 0, now, requests
        self._failures += 1
        delay = delay_before_retry(self._retry, self._failures, error, jitter)
        if delay is None or self.cancelled or now + delay >= self._outage_end():
            raise error
        self._queue.begin_reconnection(error)
        return delay

    def end(self, failure: Optional[Error]) -> None:
        """No call is made any more, because of `failure`, a cancellation, or because all is done."""
        self.over = True
        waits = len(self._queue) > 0
        if self._cut_short or waits and (failure is None or self.cancelled):
            failure = _cancelled()
        if failure is not None:
            failure.acknowledged_rows = self.progress.rows
        self.result = failure

    def _outage_end(self) -> float:
        return math.inf if self._failures == 0 else self._outage_begin + self.options.outage_max


def _cancelled() -> Error:
    return Error("CANCELLED", "the writer was cancelled")


class ProgramError(Exception):
    """on_progress raised something. It ends the writer, even if it is an Error that may pass."""


def report(on_progress: OnProgress, progress: AppendProgress) -> None:
    """Calls on_progress, if there is one. Raises a ProgramError for what it raises."""
    if on_progress is None:
        return
    try:
        on_progress(progress)
    except Exception as error:
        raise ProgramError(f"on_progress raised {error!r}") from error


def internal_failure(error: BaseException) -> Error:
    """The failure of a writer by what is no Error, which becomes its cause."""
    failure = internal(f"the writer failed: {error if str(error) else repr(error)}")
    failure.__cause__ = error.__cause__ or error
    return failure
