"""Calls about rows and memories of a store."""

from __future__ import annotations

import functools
from typing import Any, Optional, Sequence

import numpy as np

from softlookup._core import wire
from softlookup._core.arrays import check_number, invalid
from softlookup._core.attention import filter_message
from softlookup._core.call import SERVICE, Call, fill
from softlookup._core.errors import Error, internal
from softlookup._core.results import Deleted, Memory, RowFilter, Rows, WriterState
from softlookup._core.wire import Array
from softlookup._proto.softlookup.v1 import memory_pb2, row_pb2


def read_rows(
    store: str,
    where: Optional[RowFilter],
    keys: bool,
    values: bool,
    page_rows: int,
    deadline: Optional[float],
) -> Call[Rows]:
    """A stream of pages. The fields that are not asked for are not sent."""
    request = fill(row_pb2.ReadRowsRequest(), store=store, page_rows=page_rows)
    request.filter.CopyFrom(filter_message(where))
    if not (keys and values):
        wanted = ["key"] * keys + ["value"] * values
        request.read_mask.paths.extend(["position", "id", "labels", *wanted])
    decode = functools.partial(decode_page, keys=keys, values=values)
    return Call(SERVICE + "ReadRows", request.SerializeToString(), decode, deadline=deadline)


def decode_page(data: bytes, keys: bool, values: bool) -> Rows:
    """Of a ReadRowsResponse. INTERNAL if its rows differ in their dimensions."""
    message = wire.parse(row_pb2.ReadRowsResponse, data)
    rows = message.rows
    count = len(rows)
    ids = [row.id for row in rows]
    return Rows(
        np.fromiter((row.position for row in rows), np.uint64, count),
        np.array(ids, np.uint64),
        np.array([i != 0 or row.HasField("id") for i, row in zip(ids, rows)], np.bool_),
        tuple(tuple(row.labels) for row in rows),
        _stack([row.key for row in rows] if keys else [], count),
        _stack([row.value for row in rows] if values else [], count),
        message.revision,
    )


def _stack(matrices: Sequence[Any], count: int) -> Array:
    """The single rows of float32 matrices, [count, columns]; [count, 0] of none."""
    if not matrices:
        return np.zeros((count, 0), np.float32)
    first = matrices[0]
    size = 4 * first.cols
    parts = [matrix.data for matrix in matrices]
    is_float32 = first.element_type in (0, 1)
    if first.rows != 1 or not is_float32 or any(len(part) != size for part in parts):
        raise internal("the server sent rows that do not have one dimension")
    return np.frombuffer(b"".join(parts), "<f4").reshape(count, first.cols)


def delete_rows(store: str, where: RowFilter, deadline: Optional[float]) -> Call[Deleted]:
    """DeleteRows."""
    request = fill(row_pb2.DeleteRowsRequest(), store=store)
    request.filter.CopyFrom(filter_message(where))

    def decode(data: bytes) -> Deleted:
        answer = wire.parse(row_pb2.DeleteRowsResponse, data)
        return Deleted(answer.deleted_count, answer.revision)

    return Call(SERVICE + "DeleteRows", request.SerializeToString(), decode, deadline=deadline)


def get_memory(
    store: str, name: str, begin: Optional[int], end: Optional[int], deadline: Optional[float]
) -> Call[Memory]:
    """GetMemory."""
    request = fill(memory_pb2.GetMemoryRequest(), store=store, name=name, begin=begin, end=end)
    return Call(
        SERVICE + "GetMemory",
        request.SerializeToString(),
        _decode_memory,
        safe=True,
        deadline=deadline,
    )


def watch_memory(store: str, name: str, min_interval: float) -> Call[Memory]:
    """A stream of memories, without a deadline."""
    check_number("min_interval", min_interval)
    if not 0 <= min_interval <= 4294967.295:
        raise invalid("min_interval", "min_interval must be in [0, 4294967.295] seconds")
    milliseconds = round(min_interval * 1000)
    request = fill(
        memory_pb2.WatchMemoryRequest(), store=store, name=name, min_interval_ms=milliseconds
    )
    return Call(SERVICE + "WatchMemory", request.SerializeToString(), _decode_memory)


def _decode_memory(data: bytes) -> Memory:
    return memory_of(wire.parse(memory_pb2.Memory, data))


def memory_of(message: Any) -> Memory:
    """Of a Memory message. INTERNAL if it is not one key and one value."""
    key, value = (_one_row(matrix) for matrix in (message.key, message.value))
    return Memory(
        message.name, key, value, message.begin, message.end, message.weight, message.revision
    )


def _one_row(message: Any) -> Array:
    array = wire.decode_matrix(memoryview(message.SerializeToString()))
    if len(array) != 1:
        raise internal("the server sent a memory that is not one row")
    row: Array = array[0]
    return row


def get_writer(store: str, writer: str, deadline: Optional[float]) -> Call[WriterState]:
    """GetWriter."""
    request = fill(row_pb2.GetWriterRequest(), store=store, writer=writer)

    def decode(data: bytes) -> WriterState:
        answer = wire.parse(row_pb2.Writer, data)
        return WriterState(answer.writer, answer.last_sequence, answer.last_position)

    return Call(
        SERVICE + "GetWriter",
        request.SerializeToString(),
        decode,
        safe=True,
        deadline=deadline,
    )


def is_new_writer(error: Error) -> bool:
    """Whether a GetWriter says that the store has nothing of the writer yet."""
    return error.reason == "WRITER_NOT_FOUND"
