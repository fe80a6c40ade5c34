"""The calls of the asyncio client over gRPC: channels of each event loop, retries, deadlines."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import time
import weakref
from typing import Any, AsyncGenerator, Dict, Iterator, Optional, Tuple, TypeVar

import grpc
import grpc.aio

from softlookup._connection import error_of
from softlookup._core.call import Call, Calls, check_seconds
from softlookup._core.details import make_error
from softlookup._core.errors import Error
from softlookup._core.retry import Attempts, Budget
from softlookup._core.servers import HEALTH, TURN, Servers, is_answer
from softlookup._core.settings import Settings

T = TypeVar("T")


class Connection:
    """A channel of gRPC to each server for each process and event loop that uses it.

    A channel is made at the first call there.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._budget = Budget(settings.retry.budget)
        self._owner: Tuple[int, Any] = (0, None)
        self.servers = Servers(len(settings.addresses))
        self._channels: Dict[int, Any] = {}
        self._calls: "weakref.WeakSet[Any]" = weakref.WeakSet()  # Of the channels.
        self._closed = False

    def channel(self, server: int) -> Any:
        """The grpc.aio.Channel of this process and event loop to a server."""
        self._begin_loop()
        if server not in self._channels:
            self._channels[server] = self._open(self.settings.addresses[server])
        return self._channels[server]

    def _begin_loop(self) -> None:
        """Forgets what is of another process or event loop."""
        owner = (os.getpid(), asyncio.get_running_loop())
        if self._owner == owner:
            return
        if self._closed:
            raise ValueError("the client is closed")
        self.servers = Servers(len(self.settings.addresses))
        self._channels = {}
        self._calls = weakref.WeakSet()
        self._owner = owner

    def _open(self, address: str) -> Any:
        settings = self.settings
        options = settings.channel_options()
        if not settings.uses_tls:
            return grpc.aio.insecure_channel(address, options)
        credentials = grpc.ssl_channel_credentials(
            settings.tls_ca, settings.tls_key, settings.tls_certificate
        )
        return grpc.aio.secure_channel(address, credentials, options)

    async def close(self) -> None:
        """Ends the calls in progress. Calls that begin later raise ValueError."""
        self._closed = True
        if self._owner == (os.getpid(), asyncio.get_running_loop()):
            for call in list(self._calls):  # gRPC leaves those that it does not find in a task.
                call.cancel()
            for channel in self._channels.values():
                await channel.close()
        self._owner = (0, None)

    async def server(self, end: float) -> int:
        """The server for a call that may take until `end`."""
        self._begin_loop()
        current = self.servers.current
        if current is not None:
            return current
        search = self.servers.search(end - time.monotonic())
        try:
            server, seconds = next(search)
            while True:
                server, seconds = search.send(await self._ask(server, seconds))
        except StopIteration as found:
            index: int = found.value
            return index

    async def await_server(self, end: float) -> None:
        """Waits until one of several servers answers, or until `end`."""
        while True:
            for server in range(self.servers.count):
                now = time.monotonic()
                turn_end = min(now + TURN, end)
                if now >= end:
                    return
                if is_answer(await self._ask(server, turn_end - now, wait=True)):
                    self.servers.found(server)
                    return
                await asyncio.sleep(max(0.0, turn_end - time.monotonic()))

    async def _ask(self, server: int, seconds: float, wait: bool = False) -> Optional[Error]:
        """Asks a server for its health; the Error, if there is one."""
        try:
            await self.unary(server, HEALTH, b"", seconds, wait)
        except Error as error:
            return error
        return None

    async def unary(
        self, server: int, method: str, request: bytes, seconds: float, wait: bool = False
    ) -> bytes:
        """One attempt of a call of one answer. Raises an Error."""
        call = self.channel(server).unary_unary(method)(
            request,
            timeout=seconds,
            metadata=self.settings.metadata,
            wait_for_ready=True if wait else None,
        )
        self._calls.add(call)
        with self._errors():
            answer: bytes = await call
            return answer

    async def run(self, call: Call[T]) -> T:
        """The result of a call of one answer, with its retries. Raises an Error."""
        deadline = check_seconds("deadline", call.deadline) or self.settings.deadline
        end = time.monotonic() + deadline
        attempts = Attempts(self.settings.retry, self._budget, call.safe, end, self.servers.count)
        while True:
            server = await self.server(end)
            left = end - time.monotonic()
            try:
                data = await self.unary(server, call.method, call.request, max(left, 0.001))
                attempts.succeeded()
                return call.result(data)
            except Error as error:
                self.servers.failed(server, error)
                if error.code == "DEADLINE_EXCEEDED" and not error.reason:
                    error.message += f" ({call.name} had {deadline:g} s)"
                delay = attempts.failed(error, time.monotonic(), random.random())
                for server in range(self.servers.count):
                    self.channel(server).get_state(try_to_connect=True)
                await asyncio.sleep(delay)

    async def run_all(self, calls: Calls[T]) -> T:
        """What comes of calls that are made one after the other, each as run() makes it."""
        try:
            call = next(calls)
            while True:
                try:
                    result = await self.run(call)
                except Error as error:
                    call = calls.throw(error)
                else:
                    call = calls.send(result)
        except StopIteration as end:
            whole: T = end.value
            return whole

    async def stream(self, call: Call[T], idle: Optional[float]) -> AsyncGenerator[T, None]:
        """The results of a stream of answers, which must not be `idle` seconds apart; None: any.

        Leaving the iterator ends the call.
        """
        check_seconds("deadline", idle)
        server = await self.server(time.monotonic() + (idle or self.settings.deadline))
        method = self.channel(server).unary_stream(call.method)
        answers = method(call.request, metadata=self.settings.metadata)
        self._calls.add(answers)
        try:
            while True:
                data = await self.read(server, answers, idle, call.name)
                if data is None:
                    return
                yield call.result(data)
        finally:
            answers.cancel()

    def pipeline(self, server: int, method: str) -> Any:
        """A call of a stream of requests and answers, with write(), done_writing() and read()."""
        call = self.channel(server).stream_stream(method)(metadata=self.settings.metadata)
        self._calls.add(call)
        return call

    async def read(
        self, server: int, answers: Any, idle: Optional[float], name: str
    ) -> Optional[bytes]:
        """The next message of a stream at a server; None at its end.

        An Error, also after `idle` seconds.
        """
        try:
            with self._errors():
                try:
                    data = await asyncio.wait_for(answers.read(), idle)
                except asyncio.TimeoutError:
                    answers.cancel()
                    text = f"{name} had no message for {idle:g} s"
                    raise make_error("DEADLINE_EXCEEDED", text) from None
                return None if data is grpc.aio.EOF else bytes(data)
        except Error as error:
            self.servers.failed(server, error)
            raise

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Makes an Error of what gRPC raises where a message is awaited."""
        try:
            yield
        except grpc.RpcError as error:
            raise error_of(error) from None
        except asyncio.CancelledError:
            if not self._closed or _is_cancelled(asyncio.current_task()):
                raise
            raise make_error("CANCELLED", "the client was closed") from None


def _is_cancelled(task: Any) -> bool:
    """Whether the task itself is to end, rather than a call that it awaits; False before 3.11."""
    return hasattr(task, "cancelling") and task.cancelling() > 0
