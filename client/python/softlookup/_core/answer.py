"""The answer of a lookup, and how answers merge."""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence, Tuple

import numpy as np

from softlookup._core import wire
from softlookup._core.arrays import invalid
from softlookup._core.errors import internal
from softlookup._core.weights import Weights, decode_query_weights, merge_weights
from softlookup._core.wire import Array

EXACTNESS = 1e-5  # The least that AttentionOptions.max_error counts as.

_COLUMNS: Dict[str, Any] = {
    "log_sum_exp": np.float64,
    "max_logit": np.float64,
    "counted_rows": np.uint64,
    "entropy": np.float64,
    "empty": np.bool_,
    "error_bound": np.float64,
    "summed_rows": np.uint64,
}


class Answer:
    """The answers to T queries, from one snapshot if one call had them all. It never changes.

    The properties are arrays of one element a query, [T]; with several heads, [T, heads].
    """

    __slots__ = ("_values", "_heads", "_messages", "_columns", "_weights", "_facts")

    def __init__(
        self,
        values: Array,
        heads: int,
        messages: Any,
        columns: Dict[str, Array],
        weights: Optional[Weights],
        facts: Tuple[int, int, float, int],
    ) -> None:
        """For this package. `messages` are the stats of which `columns` are made when asked for;
        `facts` are revision, row_count, the error of log_sum_exp, and the number of parts."""
        self._values = _frozen(values)  # Also what was pickled: NumPy makes that writeable.
        self._heads = heads
        self._messages = messages
        self._columns = {name: _frozen(column) for name, column in columns.items()}
        self._weights = weights
        self._facts = facts

    @staticmethod
    def of(
        values: Any,
        log_sum_exp: Any,
        *,
        entropy: Any = 0.0,
        max_logit: Any = np.nan,
        counted_rows: Any = 0,
        error_bound: Any = 0.0,
    ) -> Answer:
        """An answer of your own attention, to be merged with others.

        values          [T, value_dim]: the sums of the values by weight.
        log_sum_exp     [T], or [T, heads]: ln of the sum of exp(logit); -inf if no row counts.
        The others have the shape of log_sum_exp, or are one number for all. Without an entropy, that
        of the merged answer has no meaning.
        """
        array = np.array(values, np.float64)
        lse = np.array(log_sum_exp, np.float64)
        if array.ndim != 2 or lse.ndim not in (1, 2) or lse.shape[0] != array.shape[0]:
            raise ValueError("values must be [T, value_dim], and log_sum_exp [T] or [T, heads]")
        heads = lse.shape[1] if lse.ndim == 2 else 1
        if heads == 0 or array.shape[1] % heads:
            raise ValueError("value_dim must be divisible by the number of heads")
        given = {
            "log_sum_exp": lse,
            "entropy": entropy,
            "max_logit": max_logit,
            "counted_rows": counted_rows,
            "summed_rows": counted_rows,
            "error_bound": error_bound,
            "empty": lse == -np.inf,
        }
        columns = {
            name: np.array(np.broadcast_to(column, lse.shape), _COLUMNS[name]).reshape(-1)
            for name, column in given.items()
        }
        return Answer(array, heads, (), columns, None, (0, 0, 0.0, 1))

    @property
    def values(self) -> Array:
        """[T, value_dim]: float32 from the server, float64 of a merged answer."""
        return self._values

    @property
    def num_heads(self) -> int:
        """How many heads the store has."""
        return self._heads

    @property
    def log_sum_exp(self) -> Array:
        """ln of the sum of exp(logit) over the counted rows; -inf if there are none, or not soft."""
        return self._column("log_sum_exp")

    @property
    def max_logit(self) -> Array:
        """Largest logit of the counted rows; -inf if there are none."""
        return self._column("max_logit")

    @property
    def counted_rows(self) -> Array:
        """How many rows count."""
        return self._column("counted_rows")

    @property
    def summed_rows(self) -> Array:
        """How many rows' values were added up."""
        return self._column("summed_rows")

    @property
    def entropy(self) -> Array:
        """Entropy of the weights in nats; 0 if not soft."""
        return self._column("entropy")

    @property
    def empty(self) -> Array:
        """Where no row counts. The values are then 0."""
        return self._column("empty")

    @property
    def error_bound(self) -> Array:
        """How far a component may be from the exact one, as a part of the largest in the store."""
        return self._column("error_bound")

    @property
    def weights(self) -> Optional[Weights]:
        """The weights that were asked for; None if none were."""
        return self._weights

    @property
    def revision(self) -> int:
        """Of the snapshot that answered; of several calls the first one's; 0 of a merged answer."""
        return self._facts[0]

    @property
    def row_count(self) -> int:
        """Of that snapshot: every row that was ever appended; 0 of a merged answer."""
        return self._facts[1]

    def __len__(self) -> int:
        return len(self._values)

    def __reduce__(self) -> Tuple[Any, ...]:
        columns = {name: self._flat(name) for name in _COLUMNS}
        return Answer, (self._values, self._heads, (), columns, self._weights, self._facts)

    def __repr__(self) -> str:
        shape = "x".join(map(str, self._values.shape))
        return f"Answer({shape} values at revision {self.revision})"

    def _column(self, name: str) -> Array:
        column = self._flat(name)
        return column if self._heads == 1 else column.reshape(-1, self._heads)

    def _flat(self, name: str) -> Array:
        if name not in self._columns:
            items = (getattr(each, name) for each in self._messages)
            made = np.fromiter(items, _COLUMNS[name], count=len(self._messages))
            self._columns[name] = _frozen(made)
        return self._columns[name]

    def merge(self, other: Answer) -> Answer:
        """The answer over the rows of both, which must have no row in common.

        Both must be of the same score and temperature. An answer does not tell its own, so others
        give a wrong answer.

        Exact up to float64: y = sum_s p_s y_s with the shares p_s = exp(lse_s - lse); the entropy is
        sum_s p_s (entropy_s - ln p_s). error_bound has the unit of the store with the larger values.
        There are weights if both have them.
        ValueError if the shapes differ, or if an answer is not soft.
        """
        if not isinstance(other, Answer):
            text = f"merge takes an Answer, not {type(other).__name__}"
            hint = "softlookup.Answer.of(values, log_sum_exp) makes one of arrays"
            raise invalid("other", f"{text}; {hint}")
        if self._values.shape != other._values.shape or self._heads != other._heads:
            raise ValueError("merged answers need equal numbers of queries, columns and heads")
        both = (self, other)
        sums = [each._flat("log_sum_exp") for each in both]
        for each, lse in zip(both, sums):
            if np.isnan(lse).any() or (lse == np.inf).any():
                raise ValueError("an answer has a log_sum_exp that is no number")
            if ((lse == -np.inf) & ~each._flat("empty")).any():
                raise ValueError("only answers of the mode soft can be merged")
        with np.errstate(all="ignore"):
            total = np.logaddexp(*sums)
            shares = [np.where(lse > -np.inf, np.exp(lse - total), 0.0) for lse in sums]
            entropies = [
                np.where(share > 0, share * (each._flat("entropy") + (total - lse)), 0.0)
                for each, share, lse in zip(both, shares, sums)
            ]
        bounds = [
            np.where(share > 0, each._flat("error_bound"), 0.0) * share
            for each, share in zip(both, shares)
        ]
        # A log-sum-exp that is wrong by e moves its share by at most e / 4, and what moves from one
        # answer to the other differs by at most 2.
        lse_errors = [each._facts[2] for each in both]
        moved = np.where((shares[0] > 0) & (shares[1] > 0), sum(lse_errors) / 2, 0.0)
        columns = {
            "log_sum_exp": total,
            "entropy": entropies[0] + entropies[1],
            "max_logit": np.fmax(self._flat("max_logit"), other._flat("max_logit")),
            "counted_rows": self._flat("counted_rows") + other._flat("counted_rows"),
            "summed_rows": self._flat("summed_rows") + other._flat("summed_rows"),
            "error_bound": bounds[0] + bounds[1] + moved,
            "empty": self._flat("empty") & other._flat("empty"),
        }
        weights = None
        if self._weights is not None and other._weights is not None:
            weights = merge_weights(self._weights, other._weights, shares, self._facts[3])
        values = _scaled(self._values, shares[0]) + _scaled(other._values, shares[1])
        facts = (0, 0, max(lse_errors), self._facts[3] + other._facts[3])
        return Answer(values, self._heads, (), columns, weights, facts)


def concatenate(answers: Sequence[Answer]) -> Answer:
    """The answers of one lookup's calls as one, in the order given; there is at least one.

    Its revision and row count are those of the first. INTERNAL if heads or dimensions differ.
    """
    first = answers[0]
    if len(answers) == 1:
        return first
    shapes = {(each.num_heads, each.values.shape[1], each.weights is None) for each in answers}
    if len(shapes) > 1:
        raise internal("the server's answers to the queries of one lookup do not fit each other")
    weights = None
    if first.weights is not None:
        lists = (one for each in answers for one in each.weights or ())
        weights = Weights(tuple(lists), first.num_heads)
    columns = {name: np.concatenate([each._flat(name) for each in answers]) for name in _COLUMNS}
    values = np.concatenate([each.values for each in answers])
    return Answer(values, first.num_heads, (), columns, weights, first._facts)


def _frozen(array: Array) -> Array:
    array.flags.writeable = False
    return array


def _scaled(values: Array, shares: Array) -> Array:
    """`values` [T, value_dim], each head's part by its share, [T * heads]; 0 without a share."""
    queries, columns = values.shape
    heads = len(shares) // queries if queries else 1
    parts = values.astype(np.float64).reshape(queries, heads, columns // heads)
    shares = shares.reshape(queries, heads, 1)
    # The sums over no rows can be NaN, as those of an attention of the caller's own.
    scaled: Array = (np.where(shares > 0, parts, 0.0) * shares).reshape(queries, columns)
    return scaled


def decode_answer(data: bytes, response: Any, queries: int, weights: bool, error: float) -> Answer:
    """The answer to `queries` queries of a LookupResponse or AttendResponse, the class `response`.

    weights     Whether weights were asked for.
    error       The max_error that was asked for.
    Error with the code INTERNAL if the answer does not fit the queries.
    """
    matrix, rest = wire.split_first(data, 1)
    message = wire.parse(response, rest)
    if message.HasField("values"):  # In several parts, or not at the beginning.
        matrix = memoryview(wire.parse(response, data).values.SerializeToString())
    values = wire.decode_matrix(matrix if matrix is not None else memoryview(b""))
    count, listed = len(message.stats), len(message.weights)
    heads = count // queries if queries else 1
    fits = len(values) == queries and count == heads * queries and heads > 0
    if not fits or values.shape[1] % heads or (weights or listed) and listed != count:
        raise internal("the server's answer does not fit the queries")
    lists = None
    if weights:
        lists = Weights(tuple(decode_query_weights(each) for each in message.weights), heads)
    revision = getattr(message, "revision", 0)
    facts = (revision, getattr(message, "row_count", 0), max(error, EXACTNESS), 1)
    return Answer(values, heads, message.stats, {}, lists, facts)
