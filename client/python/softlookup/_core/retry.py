"""When a failed call is sent again.

The rules are those of the C++ client (RetryOptions in softlookup/client.h). A call that is safe to
repeat is repeated after UNAVAILABLE, after RESOURCE_EXHAUSTED if the server says how long to wait,
and after CANCELLED without a reason, as a server that stops drops the calls that just arrive. Any
call is repeated that a server refuses because it still reads its stores (LOADING). Of several servers,
each is tried once for a call that none of them has begun.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import Optional

from softlookup._core.errors import Error
from softlookup._core.servers import is_unmade

# What gRPC says of a handshake that no repetition mends, in lower case and without underscores.
_TLS_FAILURES = ("certificate verify failed", "wrong version number")


@dataclass(frozen=True)
class Retry:
    """How a client repeats failed calls.

    attempts_max    Attempts of one call, the first included. At least 1.
    backoff_min     Shortest wait before the next attempt, in seconds. At least 0.
    backoff_max     Longest wait that this client chooses; the server's delay comes on top.
    budget          Retries that all calls of a client may make beyond one for every ten calls that
                    succeed, so that a server under load is not asked more because it refuses. At
                    least 0.
    """

    attempts_max: int = 20
    backoff_min: float = 0.02
    backoff_max: float = 2.0
    budget: float = 500.0

    def __post_init__(self) -> None:
        if self.attempts_max < 1:
            raise ValueError("Retry.attempts_max must be at least 1")
        if not 0 <= self.backoff_min <= self.backoff_max < math.inf:
            raise ValueError("Retry needs 0 <= backoff_min <= backoff_max")
        if not self.budget >= 0:
            raise ValueError("Retry.budget must be at least 0")


class Budget:
    """The retries that a client has left. Thread-safe."""

    _PER_SUCCESS = 0.1

    def __init__(self, most: float) -> None:
        self._most = most
        self._left = most
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Takes one retry; False if none is left."""
        with self._lock:
            if self._left < 1:
                return False
            self._left -= 1
            return True

    def succeeded(self) -> None:
        """Counts a call that succeeded."""
        if self._left < self._most:
            with self._lock:
                self._left = min(self._most, self._left + self._PER_SUCCESS)


def is_tls_failure(error: Error) -> bool:
    """Whether a handshake failed in a way that fails again."""
    if error.code != "UNAVAILABLE":
        return False
    message = error.message.lower().replace("_", " ")
    if "is not in peer certificate" in message:
        return True
    return "ssl handshake failed" in message and any(text in message for text in _TLS_FAILURES)


def delay_before_retry(
    retry: Retry, attempts_made: int, error: Error, jitter: float
) -> Optional[float]:
    """Seconds to wait before the next attempt; None if there must be none.

    `attempts_made` is at least 1, and the last attempt failed with `error`. `jitter`, in [0, 1],
    chooses the wait between the shortest and the longest.
    """
    if attempts_made >= retry.attempts_max or is_tls_failure(error):
        return None
    may_pass = (
        error.code == "UNAVAILABLE"
        or (error.code == "CANCELLED" and not error.reason)
        or (error.code == "RESOURCE_EXHAUSTED" and error.retry_after is not None)
    )
    if not may_pass or error.retry_after == math.inf:
        return None
    ceiling = min(retry.backoff_min * 2.0 ** min(attempts_made, 60), retry.backoff_max)
    backoff = retry.backoff_min + jitter * (ceiling - retry.backoff_min)
    return backoff + (error.retry_after or 0.0)


class Attempts:
    """The attempts of one call, until `end`, a time of the clock whose `now` is passed in.

    What none of `servers` servers has begun goes to each of the others once, without a wait.
    """

    def __init__(
        self, retry: Retry, budget: Budget, safe: bool, end: float, servers: int = 1
    ) -> None:
        self._retry = retry
        self._budget = budget
        self._safe = safe
        self._end = end
        self._made = 0
        self._others = servers - 1

    def failed(self, error: Error, now: float, jitter: float) -> float:
        """Seconds to wait before the next attempt. Raises `error` if there must be none."""
        self._made += 1
        if self._others > 0 and self._made < self._retry.attempts_max and is_unmade(error):
            self._others -= 1
            return 0.0
        # A server that still reads its stores has not looked at the call.
        may_repeat = self._safe or error.reason == "LOADING"
        delay = delay_before_retry(self._retry, self._made, error, jitter) if may_repeat else None
        if delay is None or now + delay >= self._end or not self._budget.take():
            raise error
        return delay

    def succeeded(self) -> None:
        """Counts the success."""
        self._budget.succeeded()
