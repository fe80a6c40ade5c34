"""Arrays of the caller: what is taken, and what is wrong with the rest."""

from __future__ import annotations

import numbers
import operator
from typing import Any, Optional, Sequence, Tuple

import numpy as np

from softlookup._core.errors import InvalidArgumentError
from softlookup._core.wire import Array

_FLOAT32_MAX = float(np.finfo(np.float32).max)
_BLOCK_ELEMENTS = 1 << 16  # Checked at a time: they stay in a core's cache.


def matrix(name: str, value: Any, *, one_row: bool = False) -> Array:
    """`value` as an array [rows, columns] of float32 or float64, without a copy if it is one.

    Numbers of other types become float32. With `one_row`, [columns] counts as one row.
    InvalidArgumentError, which names the argument `name`, for another shape or type.
    """
    try:
        array = np.asarray(value)
    except ValueError as error:  # Lists of unlike lengths, for example.
        raise invalid(name, f"{name} is no array: {error}") from None
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise invalid(name, f"{name} has elements of type {array.dtype}, not numbers")
    if array.ndim == 1 and one_row:
        array = array[None, :]
    if array.ndim != 2:
        shape = "[rows, columns]" + (" or [columns]" if one_row else "")
        if array.ndim == 1:
            shape += f"; for rows of one number each, give {name}[:, None]"
            if array.dtype.kind in "iu":
                shape += f"; class labels, as whole numbers from 0, become one-hot rows by np.eye(classes)[{name}]"
        raise invalid(name, f"{name} has the shape {list(array.shape)}, not {shape}")
    if array.dtype.kind != "f" or array.dtype.itemsize < 4:
        array = array.astype(np.float32)
    return array


def same_rows(name: str, array: Array, other_name: str, other: Array) -> None:
    """InvalidArgumentError unless both arrays have as many rows."""
    if len(array) != len(other):
        text = f"{name} has {len(array)} rows, but {other_name} has {len(other)}"
        raise invalid(other_name, text)


def check_finite(name: str, array: Array) -> None:
    """InvalidArgumentError, which names the first row with an element that is no finite float32.

    `array` is [rows, columns]. Float64 elements must be within float32's range.
    """
    if array.size == 0:
        return
    step = max(1, _BLOCK_ELEMENTS // array.shape[1])
    with np.errstate(all="ignore"):
        for begin in range(0, len(array), step):
            block = array[begin : begin + step]
            # A sum is finite only if each of its terms is, and takes the least time.
            if np.isfinite(np.add.reduce(block, axis=None)) and block.dtype.itemsize == 4:
                continue
            wrong = ~(np.abs(block) <= _FLOAT32_MAX).all(axis=1)
            if wrong.any():
                row = begin + int(wrong.argmax())
                column = int((~(np.abs(array[row]) <= _FLOAT32_MAX)).argmax())
                text = (
                    f"{name}: row {row}, column {column} is {array[row, column]}, "
                    "which is no finite float32"
                )
                raise invalid(name, text, row)


def contiguous(array: Array) -> Array:
    """`array` in C order and little-endian; itself if it is so."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))


def invalid(field: str, message: str, row: Optional[int] = None) -> InvalidArgumentError:
    """The error of an argument, for the caller to raise."""
    metadata = {"field": field}
    if row is not None:
        metadata["row"] = str(row)
    return InvalidArgumentError("INVALID_ARGUMENT", message, metadata=metadata)


def check_number(field: str, value: Any) -> None:
    """InvalidArgumentError unless `value` is one number."""
    is_scalar = isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "fiu"
    if not isinstance(value, numbers.Real) and not is_scalar:
        raise invalid(field, f"{field} is {value!r:.80}, and must be one number")


def texts(field: str, given: Sequence[str]) -> Tuple[str, ...]:
    """The texts of a sequence. One text alone is refused: its letters are not meant."""
    if isinstance(given, (str, bytes)):
        raise invalid(field, f"{field} is one text; it takes a sequence of texts")
    return tuple(given)


def whole_numbers(field: str, given: Sequence[int]) -> Tuple[int, ...]:
    """The numbers of a sequence. InvalidArgumentError if one is not whole."""
    try:
        return tuple(operator.index(i) for i in given)
    except TypeError as error:
        raise invalid(field, f"{field} are whole numbers: {error}") from None
