"""Rows from files of NumPy and from DataFrames of pandas."""

from __future__ import annotations

import os
from typing import Any, Dict, Optional, Sequence, Union

import numpy as np

from softlookup._core import arrays
from softlookup._core.wire import Array


def from_npy(path: Union[str, "os.PathLike[str]"]) -> Array:
    """The rows of a .npy file, [rows, columns], which are read from the disk as they are used.

    InvalidArgumentError if it has another shape, or no numbers; OSError if it cannot be read.
    """
    name = os.fspath(path)
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        raise arrays.invalid(name, f"{name} is no file of numbers: {error}") from None
    if not isinstance(array, np.ndarray):
        raise arrays.invalid(name, f"{name} is an archive of arrays, not a .npy file")
    return arrays.matrix(name, array)


def from_frame(
    frame: Any,
    *,
    keys: Sequence[str],
    values: Sequence[str],
    ids: Optional[str] = None,
    labels: Union[str, Sequence[str], None] = None,
) -> Dict[str, Any]:
    """The arguments of Store.append() for the rows of a pandas DataFrame.

        store.append(**sl.from_frame(frame, keys=["x", "y"], values=["class"], ids="id"))

    keys, values    Names of the columns that make a key and a value.
    ids             Name of the column with whole numbers.
    labels          Name of one column with a text each, or names of several. Missing values and
                    empty texts are no labels.
    """
    arguments: Dict[str, Any] = {
        "keys": _columns("keys", frame, keys),
        "values": _columns("values", frame, values),
    }
    if ids is not None:
        arguments["ids"] = frame[ids].to_numpy()
    if labels is not None:
        names = [labels] if isinstance(labels, str) else list(labels)
        columns = [frame[name].tolist() for name in names]
        arguments["labels"] = [
            tuple(text for text in row if isinstance(text, str) and text) for row in zip(*columns)
        ]
    return arguments


def _columns(name: str, frame: Any, columns: Sequence[str]) -> Array:
    if isinstance(columns, str):
        columns = [columns]
    return arrays.matrix(name, frame[list(columns)].to_numpy())
