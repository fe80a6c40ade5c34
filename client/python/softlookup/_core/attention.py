"""Requests that weigh rows: lookups, and attention over what the request carries."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, List, Optional, Tuple, Union

import numpy as np

from softlookup._core import arrays, wire
from softlookup._core.answer import Answer, decode_answer
from softlookup._core.arrays import invalid, whole_numbers
from softlookup._core.call import SERVICE, Call, fill
from softlookup._core.results import Projection, RowFilter
from softlookup._core.wire import Array
from softlookup._core.words import MODES, SCORES, SOURCES
from softlookup._proto.softlookup.v1 import attention_pb2, lookup_pb2, row_pb2

#: Which weights come back: None, the so many largest ones, or "all".
WeightsWish = Union[None, int, str]
_CAUSAL_OFFSET_MAX = (1 << 64) - 1


@dataclass(frozen=True)
class Options:
    """How keys are scored, and how scores become weights; None is the store's setting."""

    score: Optional[str] = None
    temperature: Optional[float] = None
    mode: Optional[str] = None
    top_k: int = 0
    min_score: Optional[float] = None
    recency_decay: Optional[float] = None
    causal: bool = False
    causal_offset: int = 0
    weights: WeightsWish = None
    max_error: Optional[float] = None

    def message(self) -> Any:
        """The AttentionOptions."""
        message = attention_pb2.AttentionOptions()
        check_causal(self.causal, self.causal_offset)
        is_wrong_word = isinstance(self.weights, str) and self.weights != "all"
        if is_wrong_word or isinstance(self.weights, bool):
            raise invalid("weights", f'weights is {self.weights!r}, not a number, "all" or None')
        if isinstance(self.weights, str):
            message.weights = attention_pb2.WEIGHTS_MODE_ALL
        elif self.weights is not None:
            (count,) = whole_numbers("weights", [self.weights])
            if count == 0:
                raise invalid("weights", "weights is 0: leave it out to have none")
            if not 0 < count < 1 << 32:
                raise invalid("weights", f"weights is {count}, and must be in [1, 2^32)")
            message.top_weights = count
            message.weights = attention_pb2.WEIGHTS_MODE_TOP
        return fill(
            message,
            score=SCORES.number("score", self.score),
            temperature=self.temperature,
            mode=MODES.number("mode", self.mode),
            top_k=self.top_k,
            min_score=self.min_score,
            recency_decay=self.recency_decay,
            causal=self.causal,
            causal_offset=self.causal_offset,
            max_error=self.max_error,
        )


def check_causal(causal: bool, causal_offset: int) -> None:
    """InvalidArgumentError for an offset that would have no effect."""
    (offset,) = whole_numbers("causal_offset", [causal_offset])
    if offset and not causal:
        raise invalid("causal_offset", "causal_offset goes with causal=True")


def filter_message(where: Optional[RowFilter]) -> Any:
    """The RowFilter message. InvalidArgumentError names `where`, or a condition of it."""
    message = row_pb2.RowFilter()
    if where is None:
        return message
    if not isinstance(where, RowFilter):
        text = f"where is of type {type(where).__name__}; it takes what softlookup.rows() makes"
        raise invalid("where", text)
    for name, given in (("ids", where.ids), ("labels", where.labels)):
        if given is not None and not given:
            text = f"{name} is empty, so that no row could pass; leave it out for all rows"
            raise invalid(name, text)
    return fill(
        message,
        begin=where.begin,
        end=where.end,
        last=where.last,
        any_labels=where.labels,
        no_labels=where.without_labels,
        ids=where.ids,
        exclude_ids=where.without_ids,
    )


class Lookup:
    """A lookup of `queries`, [T, key_dim] or [key_dim]; with `inputs` [T, input_dim]. Checked, and
    not yet encoded.

    rows, row_bytes How many queries there are, and the bytes of one.
    is_vector       Whether an array of one dimension was given, which is one query.
    """

    def __init__(
        self,
        store: str,
        queries: Any,
        options: Options,
        where: Optional[RowFilter],
        source: Optional[str],
        memory: Optional[str],
        min_revision: int,
        linearizable: bool,
        inputs: bool,
        deadline: Optional[float],
    ) -> None:
        self._array = arrays.matrix("queries", queries, one_row=True)
        self.is_vector = np.ndim(queries) == 1
        arrays.check_finite("queries", self._array)
        self._message = fill(
            lookup_pb2.LookupRequest(options=options.message()),
            store=store,
            source=SOURCES.number("source", source),
            memory=memory,
            min_revision=min_revision,
            linearizable=linearizable,
        )
        if where is not None:
            self._message.filter.CopyFrom(filter_message(where))
        _check_source(self._message)
        self._field = 3 if inputs else 2
        self._options = options
        self.store = store
        self.deadline = deadline
        self.rows = len(self._array)
        self.row_bytes = self._array.shape[1] * self._array.itemsize

    def call(self, begin: int, end: int) -> Call[Answer]:
        """The lookup of the queries [begin, end).

        If there are queries before these, they were answered. So the store has the revision that was
        asked for, and another one of its name would have a call wait for it in vain. The server
        counts the queries of each call from 0, so causal_offset counts those before.
        """
        message = self._message
        if begin > 0:
            message = lookup_pb2.LookupRequest()
            message.CopyFrom(self._message)
            message.min_revision = 0
            offset = message.options.causal_offset + begin
            message.options.causal_offset = min(offset, _CAUSAL_OFFSET_MAX)
        matrix = (self._field, arrays.contiguous(self._array[begin:end]))
        request = wire.join(message.SerializeToString(), [matrix])
        decode = _decoder(lookup_pb2.LookupResponse, end - begin, self._options)
        return Call(SERVICE + "Lookup", request, decode, safe=True, deadline=self.deadline)


def _check_source(message: Any) -> None:
    """InvalidArgumentError for what a LookupRequest says and its source leaves out."""
    if message.source != lookup_pb2.SOURCE_MEMORY:
        if message.memory:
            text = 'memory goes with source="memory"; "rows_and_memory" has the average alone'
            raise invalid("memory", text)
        return
    rest = row_pb2.RowFilter()
    rest.CopyFrom(message.filter)
    rest.ClearField("end")
    if rest.ByteSize() > 0:
        text = "a memory stands for all rows before an end, so where can have nothing else"
        raise invalid("where", f'with source="memory", {text}')


def attend(
    queries: Any,
    keys: Any,
    values: Any,
    inputs: Any,
    projection: Optional[Projection],
    num_heads: int,
    options: Options,
    deadline: Optional[float],
) -> Call[Answer]:
    """Attention over keys and values, or over inputs. Without queries, it is self attention."""
    given = [
        ("queries", 1, queries),
        ("keys", 2, keys),
        ("values", 3, values),
        ("inputs", 4, inputs),
    ]
    matrices: List[Tuple[int, Array]] = []
    rows = 0
    for name, field, value in given:
        if value is None:
            continue
        array = arrays.matrix(name, value, one_row=name == "queries")
        arrays.check_finite(name, array)
        matrices.append((field, arrays.contiguous(array)))
        if name == ("queries" if queries is not None else "inputs"):
            rows = len(array)
    if (keys is None) != (values is None):
        raise invalid("values" if values is None else "keys", "keys and values go together")
    if (keys is None) == (inputs is None):
        raise invalid("inputs", "attend takes either keys and values, or inputs")
    if queries is None and inputs is None:
        raise invalid("queries", "only self attention, which takes inputs, has no queries")
    if projection is not None and inputs is None:
        raise invalid("projection", "projection goes with inputs, not with keys and values")
    if queries is not None and inputs is not None and projection is None:
        text = "inputs need a projection beside queries; without queries, it is self attention"
        raise invalid("inputs", text)
    message = fill(
        attention_pb2.AttendRequest(options=options.message()),
        num_heads=num_heads,
        self=queries is None,
    )
    if projection is not None:
        projection_to(projection, message.projection)
    request = wire.join(message.SerializeToString(), matrices)
    decode = _decoder(attention_pb2.AttendResponse, rows, options)
    return Call(SERVICE + "Attend", request, decode, safe=True, deadline=deadline)


def projection_to(projection: Projection, message: Any) -> None:
    """Fills a Projection message."""
    for name in ("query", "key", "value"):
        part = getattr(projection, name)
        if part is not None:
            matrix_to(f"projection.{name}", part, getattr(message, name))


def matrix_to(name: str, value: Any, message: Any, *, one_row: bool = False) -> None:
    """Fills a Matrix message inside another, for matrices that are few and small."""
    array = arrays.matrix(name, value, one_row=one_row)
    arrays.check_finite(name, array)
    message.rows, message.cols = array.shape
    message.element_type = array.dtype.itemsize // 4  # FLOAT32 is 1, FLOAT64 2.
    message.data = arrays.contiguous(array).tobytes()


def _decoder(response: Any, queries: int, options: Options) -> Any:
    weights, error = options.weights is not None, options.max_error or 0.0
    return functools.partial(
        decode_answer, response=response, queries=queries, weights=weights, error=error
    )
