"""A call, as data: what is sent, what the answer means, and whether it may be repeated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, Generator, Generic, Optional, TypeVar, Union

from google.protobuf.descriptor import FieldDescriptor

from softlookup._core.arrays import check_number, invalid
from softlookup._core.errors import Error, internal
from softlookup._core.wire import MalformedError

T = TypeVar("T")

SERVICE = "/softlookup.v1.SoftLookup/"
ADMIN = "/softlookup.admin.v1.Admin/"
_TAKEN: Dict[int, str] = {
    FieldDescriptor.CPPTYPE_BOOL: "True or False",
    FieldDescriptor.CPPTYPE_DOUBLE: "one number",
    FieldDescriptor.CPPTYPE_FLOAT: "one number",
    FieldDescriptor.CPPTYPE_STRING: "a text",
    FieldDescriptor.CPPTYPE_UINT32: "a whole number in [0, 2^32)",
    FieldDescriptor.CPPTYPE_UINT64: "a whole number in [0, 2^64)",
}
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


def hinted(calls: Union[Call[T], Calls[T]], word: str, hint: str) -> Calls[T]:
    """The calls; an Error with this code or reason also says what helps, unless `hint` is empty."""
    result: T
    try:
        if isinstance(calls, Call):
            result = yield calls
        else:
            result = yield from calls
    except Error as error:
        if hint and word in (error.code, error.reason):
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
        kind = message.DESCRIPTOR.fields_by_name[name]
        is_list = hasattr(getattr(message, name), "extend")
        try:
            if is_list:
                getattr(message, name).extend(value)
            else:
                setattr(message, name, value)
        except (TypeError, ValueError) as error:
            if is_list or kind.cpp_type not in _TAKEN:
                raise invalid(name, f"{name} cannot be {value!r:.80}: {error}") from None
            text = f"{name} is {value!r:.80}, and must be {_TAKEN[kind.cpp_type]}"
            raise invalid(name, text) from None
    return message


def check_seconds(field: str, seconds: Optional[float]) -> Optional[float]:
    """`seconds`, or InvalidArgumentError unless it is None or in (0, 1e9]."""
    if seconds is not None:
        check_number(field, seconds)
    if seconds is not None and not 0 < seconds <= SECONDS_MAX:
        text = f"{field} is {seconds!r}, and must be a number of seconds in (0, 1e9]"
        raise invalid(field, text)
    return seconds
