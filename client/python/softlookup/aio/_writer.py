"""A writer of the asyncio client: tasks and calls around writing.Machine."""

from __future__ import annotations

import asyncio
import random
import time
from types import TracebackType
from typing import Any, Callable, Optional, Sequence, Type

import grpc

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
from softlookup.aio._connection import Connection


class Writer:
    """Appends rows exactly once, whatever breaks. Made by Store.writer(), and a context manager.

    Entering asks the store what it has of the writer's name. Leaving without an exception waits
    until all rows are acknowledged, or for finish_timeout seconds, and raises an Error if they are
    not; leaving with one cancels.
    One task at a time may append.
    """

    def __init__(
        self, connection: Connection, options: WriterOptions, on_progress: OnProgress
    ) -> None:
        self._connection = connection
        self._options = options
        self._on_progress = on_progress
        self._entered: Optional[Machine] = None
        self._changed: Any = None  # Of the event loop that enters.
        self._call: Any = None
        self._task: Any = None

    async def __aenter__(self) -> Writer:
        if self._entered is not None:
            raise ValueError("a writer is entered once; make another one")
        options = self._options
        opening = open_writer(options.store, options.name, options.from_start)
        state, last_row = await self._connection.run_all(opening)
        page = None if last_row is None else await self._first_page(last_row)
        self._entered = Machine(options, self._connection.settings.retry, state, page)
        self._changed = asyncio.Condition()
        self._task = asyncio.ensure_future(self._run())
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        if kind is not None:
            await self.cancel()
            return
        try:
            await self.finish(timeout=self._options.finish_timeout)
        except BaseException:  # The task is cancelled, for example.
            await self.cancel()
            raise

    @property
    def _machine(self) -> Machine:
        if self._entered is None:
            raise ValueError("a writer appends inside `async with`")
        return self._entered

    @property
    def resumed_from(self) -> WriterState:
        """The writer as the store knew it on entering: last_sequence is its number of rows."""
        return self._machine.resumed_from

    @property
    def progress(self) -> AppendProgress:
        """What the server has acknowledged so far."""
        return self._machine.progress

    async def append(
        self,
        keys: Any = None,
        values: Any = None,
        *,
        inputs: Any = None,
        ids: Optional[Sequence[int]] = None,
        labels: Optional[RowLabels] = None,
    ) -> None:
        """Hands over rows, as Store.append() takes them; waits while too many wait.

        That it returns does not mean that they are written: only leaving the writer does. What
        interrupts it ends the writer, as some of the rows may then be sent and others not.
        """
        machine, options = self._machine, self._options
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
        machine.check_takes_rows()  # Rows that are refused as a whole end nothing.
        try:
            async with self._changed:
                for cut in batch.cuts(machine.skip(batch)):
                    rows = cut[1] - cut[0]
                    await self._changed.wait_for(lambda: machine.has_room(rows, batch.row_bytes))
                    machine.push(batch, cut)
                    self._changed.notify_all()
        except BaseException:
            await self.cancel()
            raise

    async def finish(self, *, timeout: Optional[float] = None) -> AppendProgress:
        """Waits until all rows are acknowledged. Raises an Error if they will not be.

        timeout         Seconds to wait. Default: as long as it takes, which can be for ever if the
                        server holds the connection and does not answer.

        The Error after the timeout is a DeadlineError with acknowledged_rows. The writer then takes
        no more rows, and goes on to send those that it has: finish() can be called again.
        """
        machine = self._machine
        check_seconds("timeout", timeout)
        async with self._changed:
            machine.finish()
            self._changed.notify_all()
        try:
            await asyncio.wait_for(self._await(lambda: machine.over), timeout)
        except asyncio.TimeoutError:
            assert timeout is not None
            raise machine.late(timeout) from None
        if machine.result is not None:
            raise machine.result
        return machine.progress

    async def cancel(self) -> None:
        """Ends the writer soon. Rows that are not acknowledged may or may not be written."""
        self._machine.cancel()
        if self._call is not None:
            self._call.cancel()
        async with self._changed:
            self._changed.notify_all()

    async def _first_page(self, call: Call[Rows]) -> Optional[Rows]:
        """The first page of rows; None if they cannot be read."""
        pages = self._connection.stream(call, self._connection.settings.deadline)
        try:
            async for page in pages:
                return page
        except Error:
            pass
        finally:
            await pages.aclose()
        return None

    async def _run(self) -> None:
        failure: Optional[Error] = None
        machine = self._machine
        try:
            while await self._await_work():
                try:
                    if machine.positioned:
                        await self._stream()
                    else:
                        await self._reposition()
                except Error as error:
                    delay = machine.failed(error, time.monotonic(), random.random())
                    self._report()
                    await self._pause(delay)
        except Error as error:
            failure = error
        except asyncio.CancelledError:
            failure = make_error("CANCELLED", "the event loop ended the writer")
        except Exception as error:  # Of on_progress, for example.
            failure = internal_failure(error)
        async with self._changed:
            machine.end(failure)
            self._changed.notify_all()

    async def _await_work(self) -> bool:
        async with self._changed:
            await self._changed.wait_for(lambda: not self._machine.may_idle)
            return self._machine.has_work()

    async def _await(self, condition: Callable[[], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(condition)

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._await(lambda: self._machine.cancelled), seconds)
        except asyncio.TimeoutError:
            pass

    async def _stream(self) -> None:
        """One StreamAppend call. Raises its failure, unless all is done."""
        machine = self._machine
        connection = self._connection
        server = await connection.server(time.monotonic() + connection.settings.deadline)
        answers = connection.pipeline(server, STREAM_METHOD)
        self._call = answers
        if machine.cancelled:
            answers.cancel()
        sending = asyncio.ensure_future(self._send(answers))
        failure: Optional[Error] = None
        try:
            while True:
                try:
                    data = await connection.read(server, answers, None, "StreamAppend")
                except Error as error:
                    failure = error
                    break
                except asyncio.CancelledError:
                    if not machine.cancelled:
                        raise  # The event loop ends the task.
                    failure = make_error("CANCELLED", "the call was cancelled")
                    break
                if data is None:
                    break
                async with self._changed:
                    guard("StreamAppend", machine.answered, data)
                    self._changed.notify_all()
                self._report()
        finally:
            self._call = None
            answers.cancel()
            sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        machine.stream_ended(failure)

    async def _send(self, answers: Any) -> None:
        machine = self._machine
        try:
            while True:
                async with self._changed:
                    await self._changed.wait_for(
                        lambda: machine.finishing or not machine.has_all_sent
                    )
                    request = machine.next_to_send()
                if request is None:
                    await answers.done_writing()
                    return
                await answers.write(request)
        except (grpc.RpcError, asyncio.InvalidStateError):
            pass  # The stream is over, and its reader learns why.
        except Exception:  # Nothing more is sent, so the reader would wait for ever.
            answers.cancel()
            raise

    async def _reposition(self) -> None:
        """One GetWriter call, which waits for a connection."""
        machine, options, connection = self._machine, self._options, self._connection
        call = row_calls.get_writer(options.store, options.name, None)
        begin = time.monotonic()
        end = begin + machine.reposition_seconds(begin, connection.settings.deadline)
        answer: Optional[WriterState] = None
        is_alone = connection.servers.count == 1
        if not is_alone:
            await connection.await_server(end)
        server = await connection.server(end)
        try:
            seconds = max(0.001, end - time.monotonic())
            data = await connection.unary(server, call.method, call.request, seconds, wait=is_alone)
            answer = call.result(data)
        except Error as error:
            connection.servers.failed(server, error)
            if error.code == "DEADLINE_EXCEEDED":
                text = "the server cannot be reached or does not answer"
                raise make_error("UNAVAILABLE", text) from None
            if not row_calls.is_new_writer(error):
                raise
        machine.repositioned(answer)

    def _report(self) -> None:
        report(self._on_progress, self.progress)
