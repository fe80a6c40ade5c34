"""Which of the servers that a client names it uses. The rules are those of the C++ client."""

from __future__ import annotations

import threading
from typing import Generator, Optional, Tuple

from softlookup._core.errors import Error

HEALTH = "/grpc.health.v1.Health/Check"
#: Seconds that a server has to answer before the next one is asked, too.
_PATIENCE = 1.0
#: Seconds for which one of several servers is waited for at a time.
TURN = 0.02
#: Asks servers for their health: yields a server's index and the seconds that it has to answer, is
#: sent the Error, None after an answer, and returns the server to call.
Search = Generator[Tuple[int, float], Optional[Error], int]


class Servers:
    """The servers, by index, of which the first is the current one at the beginning. Thread-safe."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._lock = threading.Lock()
        self._current = 0
        # Whether the current server has answered since a call there failed for lack of it. Always
        # of one server, which is not asked.
        self._answers = count == 1

    @property
    def current(self) -> Optional[int]:
        """The server for the next call; None if one must be searched."""
        return self._current if self._answers else None

    def search(self, left: float) -> Search:
        """Finds the server for a call that has `left` seconds, beginning with the current one.

        Each has a second to answer, and all of them together half of the time. If none answers, it
        is one at which calls fail at once, so that they tell why, or else the current one.
        """
        first, left = self._current, left / 2
        seconds = min(_PATIENCE, left / self.count)
        while True:
            failed: Optional[int] = None
            is_waiting = False
            for i in range(self.count):
                server = (first + i) % self.count
                error = yield server, max(seconds, 0.001)
                if is_answer(error):
                    self.found(server)
                    return server
                assert error is not None
                if error.code == "DEADLINE_EXCEEDED":
                    is_waiting = True
                    left -= seconds
                elif failed is None:
                    failed = server
            if not is_waiting or left <= 0:
                return first if failed is None else failed
            seconds = min(seconds * 2, left)

    def found(self, server: int) -> None:
        """A server has answered, and becomes the current one unless another one has been found."""
        with self._lock:
            if not self._answers:
                self._current, self._answers = server, True

    def failed(self, server: int, error: Error) -> None:
        """Takes the failure of a call at `server`.

        If it is away, or refuses writes because another node is the primary, the following calls go
        to the server after it, unless they go elsewhere already.
        """
        if self.count == 1 or not (_is_away(error) or is_refused_by_follower(error)):
            return
        with self._lock:
            if self._current == server:
                self._current, self._answers = (server + 1) % self.count, False


def is_refused_by_follower(error: Error) -> bool:
    """Whether the server has not made a write because another node of its group is the primary."""
    return (
        error.code == "UNAVAILABLE"
        and error.metadata.get("written") == "no"
        and "primary" in error.metadata
    )


def is_unmade(error: Error) -> bool:
    """Whether no server has begun the call, and another server may make it."""
    has_no_connection = (
        error.code == "UNAVAILABLE"
        and not error.reason
        and ("failed to connect" in error.message or "DNS resolution failed" in error.message)
    )
    return has_no_connection or error.reason == "LOADING" or is_refused_by_follower(error)


def is_answer(error: Optional[Error]) -> bool:
    """Whether a server that was asked for its health has answered, with this Error or none."""
    return (
        error is None
        or bool(error.reason)
        or error.code not in ("UNAVAILABLE", "DEADLINE_EXCEEDED")
    )


def _is_away(error: Error) -> bool:
    """Whether the server cannot serve now, while another one may."""
    return error.code == "UNAVAILABLE" and error.reason in (
        "",
        "LOADING",
        "SHUTTING_DOWN",
        "CLUSTER_UNAVAILABLE",
    )
