"""The calls of the sync client over gRPC: channels of each process, retries, deadlines."""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
import weakref
from typing import Any, Callable, Dict, Generator, Iterator, Optional, TypeVar

import grpc

from softlookup._core.call import Call, Calls, check_seconds
from softlookup._core.details import make_error
from softlookup._core.errors import Error
from softlookup._core.retry import Attempts, Budget
from softlookup._core.settings import Settings

T = TypeVar("T")
_HEALTH = "/grpc.health.v1.Health/Check"


class Connection:
    """A channel of gRPC for each process that uses it, made at its first call. Thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._closed = False
        self.begin_process()
        _connections.add(self)

    def begin_process(self) -> None:
        """Forgets the channel, which is the parent's, and locks that no thread here can hold."""
        self._budget = Budget(self.settings.retry.budget)
        self._lock = threading.Lock()
        self._channel: Any = None
        self._methods: Dict[str, Any] = {}

    def channel(self) -> Any:
        """The grpc.Channel of this process."""
        channel = self._channel
        if channel is not None:
            return channel
        with self._lock:
            if self._closed:
                raise ValueError("the client is closed")
            if self._channel is None:
                self._channel = self._open()
            return self._channel

    def _open(self) -> Any:
        settings = self.settings
        options = settings.channel_options()
        if not settings.uses_tls:
            return grpc.insecure_channel(settings.address, options)
        credentials = grpc.ssl_channel_credentials(
            settings.tls_ca, settings.tls_key, settings.tls_certificate
        )
        return grpc.secure_channel(settings.address, credentials, options)

    def close(self) -> None:
        """Ends the calls in progress. Calls that begin later raise ValueError."""
        with self._lock:
            self._closed = True
            channel, self._channel = self._channel, None
            self._methods = {}
        if channel is not None:
            channel.close()

    def unary(self, method: str, request: bytes, seconds: float, wait: bool = False) -> bytes:
        """One attempt of a call of one answer. Raises an Error."""
        call = self._methods.get(method)
        if call is None:
            call = self._methods[method] = self.channel().unary_unary(method)
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

    def run(self, call: Call[T]) -> T:
        """The result of a call of one answer, with its retries. Raises an Error."""
        deadline = check_seconds("deadline", call.deadline) or self.settings.deadline
        end = time.monotonic() + deadline
        attempts = Attempts(self.settings.retry, self._budget, call.safe, end)
        while True:
            left = end - time.monotonic()
            try:
                data = self.unary(call.method, call.request, max(left, 0.001))
                attempts.succeeded()
                return call.result(data)
            except Error as error:
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
        """Waits for so long before the attempt after `error`.

        gRPC connects only while a call waits for the connection. So if there is none, a question for
        the server's health does.
        """
        end = time.monotonic() + seconds
        if error.code == "UNAVAILABLE" and "failed to connect" in error.message:
            with contextlib.suppress(Error):
                self.unary(_HEALTH, b"", seconds, wait=True)
        time.sleep(max(0.0, end - time.monotonic()))

    def stream(self, call: Call[T], idle: Optional[float]) -> Generator[T, None, None]:
        """The results of a stream of answers, which must not be `idle` seconds apart; None: any.

        Leaving the iterator ends the call.
        """
        check_seconds("deadline", idle)
        method = self.channel().unary_stream(call.method)
        answers = method(call.request, metadata=self.settings.metadata)
        with Watchdog(idle, answers.cancel) as watchdog:
            try:
                for data in answers:
                    watchdog.rest()
                    yield call.result(data)
                    watchdog.wake()
            except grpc.RpcError as error:
                raise watchdog.explain(error_of(error), call.name) from None
            finally:
                answers.cancel()

    def pipeline(self, method: str, requests: Iterator[bytes]) -> Any:
        """A call of a stream of requests and answers: an iterator with cancel()."""
        call = self.channel().stream_stream(method)
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
