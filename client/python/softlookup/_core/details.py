"""How an error is made of what a failed call carries.

The messages of google/rpc are read by hand: a second definition of them, beside that of
googleapis-common-protos, would be refused by Protobuf in a process that has both.
"""

from __future__ import annotations

import math
import re
from typing import Dict, Iterable, List, Optional, Tuple, Union

from softlookup._core import wire
from softlookup._core.errors import CLASSES, Error

_DETAILS = "grpc-status-details-bin"
_PUSHBACK = "grpc-retry-pushback-ms"
Trailers = Iterable[Tuple[str, Union[str, bytes]]]


def make_error(code: str, message: str, trailers: Trailers = ()) -> Error:
    """The error of a failed call. What of its trailers cannot be read is left out."""
    details: Union[str, bytes] = b""
    pushback: Optional[float] = None
    for key, value in trailers:
        if key == _DETAILS:
            details = value
        elif key == _PUSHBACK:
            pushback = _pushback_seconds(value)
    reason = ""
    fields: Dict[str, str] = {}
    delay: Optional[float] = None
    if isinstance(details, bytes):
        reason, fields, delay = read_details(details)
    return CLASSES.get(code, Error)(
        code,
        message,
        reason=reason,
        metadata=fields,
        retry_after=delay if pushback is None else pushback,
    )


def _pushback_seconds(value: Union[str, bytes]) -> float:
    """What the trailer asks for; infinity, which forbids a retry, if it is negative or no number."""
    text = value if isinstance(value, str) else ""
    return _delay(int(text) / 1000) if re.fullmatch(r"[0-9]{1,18}", text) else math.inf


def _delay(seconds: float) -> float:
    """`seconds`, or infinity: no server asks for a century, and no thread can wait for ten."""
    return seconds if seconds < 3e9 else math.inf


def read_details(data: bytes) -> Tuple[str, Dict[str, str], Optional[float]]:
    """(reason, metadata, seconds until a retry, or None) of a serialized google.rpc.Status.

    Empty if the bytes are none; without a detail that is malformed.
    """
    reason = ""
    metadata: Dict[str, str] = {}
    delay: Optional[float] = None
    for kind, body in _details(data):
        try:
            if kind == b"type.googleapis.com/google.rpc.ErrorInfo":
                reason, metadata = _read_error_info(body)
            elif kind == b"type.googleapis.com/google.rpc.RetryInfo":
                delay = _read_retry_info(body)
        except wire.MalformedError:
            pass
    return reason, metadata, delay


def _details(data: bytes) -> List[Tuple[bytes, memoryview]]:
    """The type and the bytes of each detail; none if one of them is no Any."""
    found: List[Tuple[bytes, memoryview]] = []
    try:
        for field, detail in wire.fields(memoryview(data)):
            if field == 3 and not isinstance(detail, int):
                parts = {n: v for n, v in wire.fields(detail) if not isinstance(v, int)}
                found.append((bytes(parts.get(1, b"")), memoryview(parts.get(2, b""))))
    except wire.MalformedError:
        return []
    return found


def _read_error_info(body: memoryview) -> Tuple[str, Dict[str, str]]:
    reason = ""
    metadata: Dict[str, str] = {}
    for field, value in wire.fields(body):
        if isinstance(value, int):
            continue
        if field == 1:
            reason = bytes(value).decode(errors="replace")
        elif field == 3:
            entry = {n: v for n, v in wire.fields(value) if not isinstance(v, int)}
            key, text = (bytes(entry.get(n, b"")).decode(errors="replace") for n in (1, 2))
            metadata[key] = text
    return reason, metadata


def _read_retry_info(body: memoryview) -> float:
    for field, value in wire.fields(body):
        if field == 1 and not isinstance(value, int):
            numbers = {n: v for n, v in wire.fields(value) if isinstance(v, int)}
            # Negative numbers are near 2^64 here.
            return _delay(numbers.get(1, 0) + numbers.get(2, 0) / 1e9)
    return 0.0
