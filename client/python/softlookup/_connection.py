"""The calls of the sync client over gRPC: channels of each process, retries, deadlines."""

from __future__ import annotations

import os
import random
import threading
import time
import weakref
from typing import Any, Callable, Dict, Generator, Iterator, Optional, Tuple, TypeVar

import grpc

from softlookup._core.call import Call, Calls, check_seconds
from softlookup._core.details import make_error
from softlookup._core.errors import Error
from softlookup._core.retry import Attempts, Budget
from softlookup._core.servers import HEALTH, TURN, Servers, is_answer
from softlookup._core.settings import Settings

T = TypeVar("T")


class Connection:
    """A channel of gRPC to each server in each process that uses it. Thread-safe.

    A channel is made at the first call there.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._closed = False
        self.begin_process()
        _connections.add(self)

    def begin_process(self) -> None:
        """Forgets the channels, which are the parent's, and locks that no thread here can hold."""
        self._budget = Budget(self.settings.retry.budget)
        self._lock = threading.Lock()
        self.servers = Servers(len(self.settings.addresses))
        self._channels: Dict[int, Any] = {}
        self._methods: Dict[Tuple[int, str], Any] = {}

    def channel(self, server: int) -> Any:
        """The grpc.Channel of this process to a server."""
        channel = self._channels.get(server)
        if channel is not None:
            return channel
        with self._lock:
            if self._closed:
                raise ValueError("the client is closed")
            if server not in self._channels:
                self._channels[server] = self._open(self.settings.addresses[server])
            return self._channels[server]

    def _open(self, address: str) -> Any:
        settings = self.settings
        options = settings.channel_options()
        if not settings.uses_tls:
            return grpc.insecure_channel(address, options)
        credentials = grpc.ssl_channel_credentials(
            settings.tls_ca, settings.tls_key, settings.tls_certificate
        )
        return grpc.secure_channel(address, credentials, options)

    def close(self) -> None:
        """Ends the calls in progress. Calls that begin later raise ValueError."""
        with self._lock:
            self._closed = True
            channels, self._channels = self._channels, {}
            self._methods = {}
        for channel in channels.values():
            channel.close()

    def server(self, end: float) -> int:
        """The server for a call that may take until `end`."""
        current = self.servers.current
        if current is not None:
            return current
        search = self.servers.search(end - time.monotonic())
        try:
            server, seconds = next(search)
            while True:
                server, seconds = search.send(self._ask(server, seconds))
        except StopIteration as found:
            index: int = found.value
            return index

    def await_server(self, end: float) -> None:
        """Waits until a server answers, or until `end`.

        gRPC connects only while a call waits for the connection, so each of several has its turns.
        """
        if self.servers.count == 1:
            self._ask(0, end - time.monotonic(), wait=True)
            return
        while True:
            for server in range(self.servers.count):
                now = time.monotonic()
                turn_end = min(now + TURN, end)
                if now >= end:
                    return
                if is_answer(self._ask(server, turn_end - now, wait=True)):
                    self.servers.found(server)
                    return
                time.sleep(max(0.0, turn_end - time.monotonic()))

    def _ask(self, server: int, seconds: float, wait: bool = False) -> Optional[Error]:
        """Asks a server for its health; the Error, if there is one."""
        try:
            self.unary(server, HEALTH, b"", seconds, wait)
        except Error as error:
            return error
        return None

    def unary(
        self, server: int, method: str, request: bytes, seconds: float, wait: bool = False
    ) -> bytes:
        """One attempt of a call of one answer. Raises an Error."""
        call = self._methods.get((server, method))
        if call is None:
            call = self._methods[server, method] = self.channel(server).unary_unary(method)
        try:
            answer: bytes = call(
                request,
                timeout=seconds,
                metadata=self.settings.metadata,
                wait_for_ready=True if wait else None,
            )
            return answer
        except grpc.RpcError as error:
            raise error_of(error) from None

    def failure(self, server: int, error: grpc.RpcError) -> Error:
        """Takes the failure of a stream at a server; the Error."""
        failure = error_of(error)
        self.servers.failed(server, failure)
        return failure

    def run(self, call: Call[T]) -> T:
        """The result of a call of one answer, with its retries. Raises an Error."""
        deadline = check_seconds("deadline", call.deadline) or self.settings.deadline
        end = time.monotonic() + deadline
        attempts = Attempts(self.settings.retry, self._budget, call.safe, end, self.servers.count)
        while True:
            server = self.server(end)
            left = end - time.monotonic()
            try:
                data = self.unary(server, call.method, call.request, max(left, 0.001))
                attempts.succeeded()
                return call.result(data)
            except Error as error:
                self.servers.failed(server, error)
                if error.code == "DEADLINE_EXCEEDED" and not error.reason:
                    error.message += f" ({call.name} had {deadline:g} s)"
                delay = attempts.failed(error, time.monotonic(), random.random())
                self._pause(delay, error)

    def run_all(self, calls: Calls[T]) -> T:
        """What comes of calls that are made one after the other, each as run() makes it."""
        try:
            call = next(calls)
            while True:
                try:
                    result = self.run(call)
                except Error as error:
                    call = calls.throw(error)
                else:
                    call = calls.send(result)
        except StopIteration as end:
            whole: T = end.value
            return whole

    def _pause(self, seconds: float, error: Error) -> None:
        """Waits for so long before the attempt after `error`. If there is no connection, connects."""
        end = time.monotonic() + seconds
        if error.code == "UNAVAILABLE" and "failed to connect" in error.message:
            self.await_server(end)
        time.sleep(max(0.0, end - time.monotonic()))

    def stream(self, call: Call[T], idle: Optional[float]) -> Generator[T, None, None]:
        """The results of a stream of answers, which must not be `idle` seconds apart; None: any.

        Leaving the iterator ends the call.
        """
        check_seconds("deadline", idle)
        server = self.server(time.monotonic() + (idle or self.settings.deadline))
        method = self.channel(server).unary_stream(call.method)
        answers = method(call.request, metadata=self.settings.metadata)
        with Watchdog(idle, answers.cancel) as watchdog:
            try:
                for data in answers:
                    watchdog.rest()
                    yield call.result(data)
                    watchdog.wake()
            except grpc.RpcError as error:
                raise watchdog.explain(self.failure(server, error), call.name) from None
            finally:
                answers.cancel()

    def pipeline(self, server: int, method: str, requests: Iterator[bytes]) -> Any:
        """A call of a stream of requests and answers: an iterator with cancel()."""
        call = self.channel(server).stream_stream(method)
        return call(requests, metadata=self.settings.metadata)


#: Those of this process, to be told of a fork.
_connections: "weakref.WeakSet[Connection]" = weakref.WeakSet()


def _begin_process() -> None:
    for connection in list(_connections):
        connection.begin_process()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_process)


class Watchdog:
    """Calls `bite` once if it is neither told of a message, nor rests, for `seconds`; None: never.

    gRPC has a deadline for a whole stream, but none between its messages.
    """

    def __init__(self, seconds: Optional[float], bite: Callable[[], Any]) -> None:
        self._seconds = seconds
        self._bite = bite
        self._changed = threading.Condition()
        self._until: Optional[float] = None  # None while it rests.
        self._ended = False
        self._has_bitten = False
        self._thread = threading.Thread(target=self._run, daemon=True, name="softlookup-watchdog")

    def __enter__(self) -> Watchdog:
        self.wake()
        if self._seconds is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify()

    def wake(self) -> None:
        """A message is awaited, from now on."""
        if self._seconds is not None:
            self._until = time.monotonic() + self._seconds

    def rest(self) -> None:
        """No message is awaited."""
        self._until = None

    def explain(self, error: Error, name: str) -> Error:
        """`error`, or why it came, if this ended the call."""
        if not self._has_bitten or error.code != "CANCELLED":
            return error
        return make_error("DEADLINE_EXCEEDED", f"{name} had no message for {self._seconds:g} s")

    def _run(self) -> None:
        assert self._seconds is not None
        with self._changed:
            while not self._ended:
                until = self._until
                left = self._seconds if until is None else until - time.monotonic()
                if left <= 0:
                    self._has_bitten = True
                    self._bite()
                    return
                self._changed.wait(left)


def error_of(error: Any) -> Error:
    """The Error of a grpc.RpcError."""
    try:
        trailers = error.trailing_metadata() or ()
        return make_error(error.code().name, error.details() or "", tuple(trailers))
    except AttributeError:  # Not of a call: the channel was closed, for example.
        return make_error("UNKNOWN", str(error))
