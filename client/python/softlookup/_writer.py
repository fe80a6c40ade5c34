"""A writer of the sync client: threads and calls around writing.Machine."""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from types import TracebackType
from typing import Any, Iterator, Optional, Sequence, Type

import grpc

from softlookup._connection import Connection
from softlookup._core import row_calls
from softlookup._core.appends import STREAM_METHOD, Batch, RowLabels
from softlookup._core.call import Call, check_seconds, guard
from softlookup._core.details import make_error
from softlookup._core.errors import Error
from softlookup._core.results import AppendProgress, Rows, WriterState
from softlookup._core.resume_check import open_writer
from softlookup._core.writing import (
    Machine,
    OnProgress,
    WriterOptions,
    internal_failure,
    report,
)


class Writer:
    """Appends rows exactly once, whatever breaks. Made by Store.writer(), and a context manager.

    Entering asks the store what it has of the writer's name. Leaving without an exception waits
    until all rows are acknowledged, or for finish_timeout seconds, and raises an Error if they are
    not; leaving with one cancels.
    One thread at a time may append.
    """

    def __init__(
        self, connection: Connection, options: WriterOptions, on_progress: OnProgress
    ) -> None:
        self._connection = connection
        self._options = options
        self._on_progress = on_progress
        self._changed = threading.Condition()
        self._entered: Optional[Machine] = None
        self._call: Any = None
        self._pid = 0
        self._thread = threading.Thread(target=self._run, daemon=True, name="softlookup-writer")

    def __enter__(self) -> Writer:
        if self._entered is not None:
            raise ValueError("a writer is entered once; make another one")
        options = self._options
        opening = open_writer(options.store, options.name, options.from_start)
        state, last_row = self._connection.run_all(opening)
        page = None if last_row is None else self._first_page(last_row)
        self._entered = Machine(options, self._connection.settings.retry, state, page)
        self._pid = os.getpid()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        if kind is not None:
            self.cancel()
            return
        try:
            self.finish(timeout=self._options.finish_timeout)
        except BaseException:  # An interrupt of the program, for example.
            self.cancel()
            raise

    @property
    def _machine(self) -> Machine:
        if self._entered is None:
            raise ValueError("a writer appends inside `with`")
        return self._entered

    @property
    def resumed_from(self) -> WriterState:
        """The writer as the store knew it on entering: last_sequence is its number of rows."""
        return self._machine.resumed_from

    @property
    def progress(self) -> AppendProgress:
        """What the server has acknowledged so far."""
        return self._machine.progress

    def append(
        self,
        keys: Any = None,
        values: Any = None,
        *,
        inputs: Any = None,
        ids: Optional[Sequence[int]] = None,
        labels: Optional[RowLabels] = None,
    ) -> None:
        """Hands over rows, as Store.append() takes them; blocks while too many wait.

        That it returns does not mean that they are written: only leaving the writer does. What
        interrupts it ends the writer, as some of the rows may then be sent and others not.
        """
        machine, options = self._own_machine(), self._options
        batch = Batch(
            keys,
            values,
            inputs,
            ids,
            labels,
            options.on_conflict,
            options.acknowledge,
            batch_rows=options.batch_rows,
        )
        with self._changed:
            machine.check_takes_rows()  # Rows that are refused as a whole end nothing.
        try:
            with self._changed:
                for cut in batch.cuts(machine.skip(batch)):
                    rows = cut[1] - cut[0]
                    self._changed.wait_for(lambda: machine.has_room(rows, batch.row_bytes))
                    machine.push(batch, cut)
                    self._changed.notify_all()
        except BaseException:
            self.cancel()
            raise

    def finish(self, *, timeout: Optional[float] = None) -> AppendProgress:
        """Waits until all rows are acknowledged. Raises an Error if they will not be.

        timeout         Seconds to wait. Default: as long as it takes, which can be for ever if the
                        server holds the connection and does not answer.

        The Error after the timeout is a DeadlineError with acknowledged_rows. The writer then takes
        no more rows, and goes on to send those that it has: finish() can be called again.
        """
        machine = self._own_machine()
        check_seconds("timeout", timeout)
        with self._changed:
            machine.finish()
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: machine.over, timeout):
                assert timeout is not None
                raise machine.late(timeout)
            if machine.result is not None:
                raise machine.result
            return machine.progress

    def cancel(self) -> None:
        """Ends the writer soon. Rows that are not acknowledged may or may not be written."""
        machine = self._machine
        if self._pid != os.getpid():
            return  # The thread of the writer, and perhaps its lock, stayed with its process.
        with self._changed:
            machine.cancel()
            self._changed.notify_all()
            call = self._call
        if call is not None:
            call.cancel()

    def _first_page(self, call: Call[Rows]) -> Optional[Rows]:
        """The first page of rows; None if they cannot be read."""
        try:
            with contextlib.closing(
                self._connection.stream(call, self._connection.settings.deadline)
            ) as pages:
                return next(pages, None)
        except Error:
            return None

    def _own_machine(self) -> Machine:
        machine = self._machine
        if self._pid != os.getpid():
            raise ValueError("a writer belongs to the process that entered it")
        return machine

    def _run(self) -> None:
        failure: Optional[Error] = None
        machine = self._machine
        try:
            while self._await_work():
                try:
                    if machine.positioned:
                        self._stream()
                    else:
                        self._reposition()
                except Error as error:
                    with self._changed:
                        delay = machine.failed(error, time.monotonic(), random.random())
                    self._report()
                    with self._changed:
                        self._changed.wait_for(lambda: machine.cancelled, delay)
        except Error as error:
            failure = error
        except BaseException as error:  # Of on_progress, for example.
            failure = internal_failure(error)
        with self._changed:
            machine.end(failure)
            self._changed.notify_all()

    def _await_work(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: not self._machine.may_idle)
            return self._machine.has_work()

    def _stream(self) -> None:
        """One StreamAppend call. Raises its failure, unless all is done."""
        machine = self._machine
        ended = False

        def requests() -> Iterator[bytes]:  # gRPC runs this in a thread of its own.
            while True:
                with self._changed:
                    self._changed.wait_for(
                        lambda: ended or machine.finishing or not machine.has_all_sent
                    )
                    request = None if ended else machine.next_to_send()
                if request is None:
                    return
                yield request

        server = self._connection.server(time.monotonic() + self._connection.settings.deadline)
        answers = self._connection.pipeline(server, STREAM_METHOD, requests())
        with self._changed:
            self._call = answers
            if machine.cancelled:
                answers.cancel()
        failure: Optional[Error] = None
        try:
            for data in answers:
                with self._changed:
                    guard("StreamAppend", machine.answered, data)
                    self._changed.notify_all()
                self._report()
        except grpc.RpcError as error:
            failure = self._connection.failure(server, error)
        finally:
            answers.cancel()
            with self._changed:
                ended = True
                self._call = None
                self._changed.notify_all()
        with self._changed:
            machine.stream_ended(failure)

    def _reposition(self) -> None:
        """One GetWriter call, which waits for a connection."""
        machine, options, connection = self._machine, self._options, self._connection
        call = row_calls.get_writer(options.store, options.name, None)
        begin = time.monotonic()
        end = begin + machine.reposition_seconds(begin, connection.settings.deadline)
        answer: Optional[WriterState] = None
        is_alone = connection.servers.count == 1
        if not is_alone:
            connection.await_server(end)
        server = connection.server(end)
        try:
            seconds = max(0.001, end - time.monotonic())
            data = connection.unary(server, call.method, call.request, seconds, wait=is_alone)
            answer = call.result(data)
        except Error as error:
            connection.servers.failed(server, error)
            if error.code == "DEADLINE_EXCEEDED":
                text = "the server cannot be reached or does not answer"
                raise make_error("UNAVAILABLE", text) from None
            if not row_calls.is_new_writer(error):
                raise
        with self._changed:
            machine.repositioned(answer)

    def _report(self) -> None:
        report(self._on_progress, self.progress)
