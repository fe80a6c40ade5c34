"""A call, as data: what is sent, what the answer means, and whether it may be repeated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Generator, Generic, Optional, TypeVar

from softlookup._core.arrays import invalid
from softlookup._core.errors import Error, internal
from softlookup._core.wire import MalformedError

T = TypeVar("T")

SERVICE = "/softlookup.v1.SoftLookup/"
ADMIN = "/softlookup.admin.v1.Admin/"
SECONDS_MAX = 1e9  # gRPC's clock, and the waits of threads, have 64 bits for nanoseconds.


@dataclass(frozen=True)
class Call(Generic[T]):
    """One call of a method.

    method      Path of the gRPC method.
    request     The serialized request.
    decode      Makes the result of a serialized answer; of each one, if the method is a stream.
    safe        Whether running the call twice has the effect of running it once.
    deadline    Seconds for all attempts together; of a stream, between two of its messages. None:
                the client's.
    """

    method: str
    request: bytes
    decode: Callable[[bytes], T]
    safe: bool = False
    deadline: Optional[float] = None

    @property
    def name(self) -> str:
        """The method's name, for people."""
        return self.method.rsplit("/", 1)[1]

    def result(self, data: bytes) -> T:
        """The result of an answer. Error with the code INTERNAL if it cannot be right."""
        return guard(self.name, self.decode, data)


#: Calls that are made one after the other: yields each, is sent its result or thrown its Error, and
#: returns what comes of them all.
Calls = Generator[Call[Any], Any, T]


def hinted(call: Call[T], code: str, hint: str) -> Calls[T]:
    """The call; an Error with this code also says what helps."""
    try:
        result: T = yield call
    except Error as error:
        if error.code == code:
            error.message += f"; {hint}"
        raise
    return result


def guard(name: str, decode: Callable[..., T], *arguments: Any) -> T:
    """decode(*arguments). Error with the code INTERNAL if the answer to `name` is malformed."""
    try:
        return decode(*arguments)
    except (MalformedError, OverflowError) as error:
        raise internal(f"the server's answer to {name} is malformed: {error}") from None


def fill(message: Any, **fields: Any) -> Any:
    """Sets fields of a message; None leaves one unset. InvalidArgumentError if a value does not fit."""
    for name, value in fields.items():
        if value is None:
            continue
        try:
            if isinstance(value, (tuple, list)):
                getattr(message, name).extend(value)
            else:
                setattr(message, name, value)
        except (TypeError, ValueError) as error:
            raise invalid(name, f"{name} cannot be {value!r:.80}: {error}") from None
    return message


def check_seconds(field: str, seconds: Optional[float]) -> Optional[float]:
    """`seconds`, or InvalidArgumentError unless it is None or in (0, 1e9]."""
    if seconds is not None and not 0 < seconds <= SECONDS_MAX:
        text = f"{field} is {seconds!r}, and must be a number of seconds in (0, 1e9]"
        raise invalid(field, text)
    return seconds
