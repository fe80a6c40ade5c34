"""The parts of the Protobuf wire format that are written and read by hand.

A matrix is by far the largest part of a message. Written here, its elements are copied once, from
the caller's array into the request; read here, an array is a view of the answer's bytes.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

Array = npt.NDArray[Any]

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_FLOAT32, _FLOAT64 = 1, 2  # softlookup.v1.ElementType.
_TYPES: Dict[int, "np.dtype[Any]"] = {
    0: np.dtype("<f4"),
    _FLOAT32: np.dtype("<f4"),
    _FLOAT64: np.dtype("<f8"),
}

#: A field's number, and its value: a number, or the bytes of a field that has a length.
Field = Tuple[int, Union[int, memoryview]]


class MalformedError(ValueError):
    """Bytes are not what the wire format says."""


def parse(kind: Any, data: bytes) -> Any:
    """The message of the class `kind` that `data` is. MalformedError if it is none."""
    message = kind()
    try:
        # A group that ends without a beginning ends the message, with a mere warning.
        whole = message.MergeFromString(data) == len(data)
    except (DecodeError, UnicodeDecodeError, RuntimeWarning) as error:
        raise MalformedError(str(error)) from None
    if not whole:
        raise MalformedError("a message ends early")
    return message


def varint(value: int) -> bytes:
    """The encoding of a whole number in [0, 2^64)."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def length_tag(field: int, length: int) -> bytes:
    """What stands before the `length` bytes of a field."""
    return varint(field << 3 | _LENGTH) + varint(length)


def text_field(field: int, text: str) -> bytes:
    """A string field; no bytes if it is empty."""
    encoded = text.encode()
    return length_tag(field, len(encoded)) + encoded if encoded else b""


def _read_varint(data: memoryview, at: int) -> Tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise MalformedError("a number ends early")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
    raise MalformedError("a number has more than 10 bytes")


def fields(data: memoryview) -> Iterator[Field]:
    """The fields of a message, in the order of its bytes. MalformedError if they do not fit."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        kind = tag & 7
        if kind == _VARINT:
            value, at = _read_varint(data, at)
            yield tag >> 3, value
            continue
        if kind == _LENGTH:
            length, at = _read_varint(data, at)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise MalformedError("a field has an unknown type")
        if length > len(data) - at:
            raise MalformedError("a field is longer than its message")
        yield tag >> 3, data[at : at + length]
        at += length


def matrix_parts(field: int, array: Array) -> List[Union[bytes, Array]]:
    """The bytes of a Matrix field, in parts that are to be joined.

    `array` is [rows, columns], C-contiguous, of little-endian float32 or float64.
    """
    header = b"\x08" + varint(array.shape[0]) + b"\x10" + varint(array.shape[1])
    if array.dtype.itemsize == 8:
        header += b"\x18" + varint(_FLOAT64)
    header += length_tag(4, array.nbytes)
    return [length_tag(field, len(header) + array.nbytes) + header, array]


def join(message: bytes, matrices: Sequence[Tuple[int, Array]]) -> bytes:
    """A request: the serialized `message` with its matrices, (field, array), behind it."""
    parts: List[Any] = [message]  # Arrays are buffers, too.
    for field, array in matrices:
        parts += matrix_parts(field, array)
    return b"".join(parts)


def decode_matrix(data: memoryview) -> Array:
    """The array [rows, columns] of a serialized Matrix: a read-only view of `data` where it can be.

    MalformedError if the matrix has not as many elements as its shape says.
    """
    rows, columns, kind = 0, 0, 0
    elements: Union[memoryview, None] = None
    numbers: List[memoryview] = []
    for field, value in fields(data):
        if isinstance(value, int):
            if field == 1:
                rows = value
            elif field == 2:
                columns = value
            elif field == 3:
                kind = value
        elif field == 4:
            elements = value
        elif field == 5:
            numbers.append(value)
    if numbers:
        elements, kind = memoryview(b"".join(numbers)), _FLOAT32
    if kind not in _TYPES:
        raise MalformedError("a matrix has an unknown type of elements")
    dtype = _TYPES[kind]
    size = 0 if elements is None else len(elements)
    if rows >= 1 << 32 or columns >= 1 << 32 or rows * columns * dtype.itemsize != size:
        raise MalformedError("a matrix has not as many elements as its shape says")
    array: Array = np.frombuffer(elements if elements is not None else b"", dtype)
    array = array.reshape(rows, columns)
    array.flags.writeable = False
    return array


def split_first(data: bytes, field: int) -> Tuple[Union[memoryview, None], bytes]:
    """(The bytes of `field`, all that follows them) if `data` begins with it, else (None, `data`).

    `field` must be below 16, and have a length.
    """
    if not data or data[0] != field << 3 | _LENGTH:
        return None, data
    view = memoryview(data)
    length, at = _read_varint(view, 1)
    if length > len(view) - at:
        raise MalformedError("a field is longer than its message")
    return view[at : at + length], data[at + length :]
