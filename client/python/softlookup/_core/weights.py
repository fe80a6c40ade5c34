"""The weights that come with an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Sequence, Tuple, Union

import numpy as np

from softlookup._core.errors import internal
from softlookup._core.wire import Array

_PADDING_FACTOR = 16  # Rectangles may be so much larger than what they hold ...
_PADDING_FREE = 1 << 20  # ... beyond this many elements.


@dataclass(frozen=True)
class QueryWeights:
    """The weights of one query and head, the largest first. Entry i of each array is of one row.

    positions       [n], uint64.
    ids, has_ids    [n], uint64 and bool: 0 and False for a row without an id.
    weights         [n], float64. In the mode "soft" in [0, 1].
    scores          [n], float64, not yet divided by the temperature.
    parts           [n], uint32. Which of the merged answers the row is from, 0 without a merge.
    remaining       Sum of the weights of the counted rows that are not listed.
    """

    positions: Array
    ids: Array
    has_ids: Array
    weights: Array
    scores: Array
    parts: Array
    remaining: float

    def __post_init__(self) -> None:
        for each in vars(self).values():
            if isinstance(each, np.ndarray):
                each.flags.writeable = False

    def __setstate__(self, state: Dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()  # NumPy makes what was pickled writeable.

    def __len__(self) -> int:
        return len(self.positions)


@dataclass(frozen=True)
class Weights:
    """The weights of T queries. weights[t] is a query's; with several heads, weights[t, head].

    The properties are arrays over all of them, [T, n], or [T, heads, n]: n is the length of the
    longest list, and the others are filled up with the weight 0, the position 0 and the score NaN.
    """

    lists: Tuple[QueryWeights, ...]
    num_heads: int

    def __len__(self) -> int:
        return len(self.lists) // self.num_heads

    def __repr__(self) -> str:
        rows = max((len(each) for each in self.lists), default=0)
        return f"Weights(queries={len(self)}, heads={self.num_heads}, rows_at_most={rows})"

    def __getitem__(self, index: Union[int, Tuple[int, int]]) -> QueryWeights:
        query, head = index if isinstance(index, tuple) else (index, None)
        if head is None:
            if self.num_heads > 1:
                raise IndexError("the store has several heads: take weights[query, head]")
            head = 0
        if not -len(self) <= query < len(self) or not 0 <= head < self.num_heads:
            raise IndexError(f"no weights of query {query}, head {head}")
        return self.lists[query % len(self) * self.num_heads + head]

    def __iter__(self) -> Iterator[QueryWeights]:
        return iter(self.lists)

    @property
    def positions(self) -> Array:
        """Positions of the rows, uint64."""
        return self._rectangle("positions", np.uint64, 0)

    @property
    def ids(self) -> Array:
        """Ids of the rows, uint64; 0 for a row without one."""
        return self._rectangle("ids", np.uint64, 0)

    @property
    def has_ids(self) -> Array:
        """Which rows have an id, bool."""
        return self._rectangle("has_ids", np.bool_, 0)

    @property
    def parts(self) -> Array:
        """Which of the merged answers the rows are from, uint32; 0 without a merge."""
        return self._rectangle("parts", np.uint32, 0)

    @property
    def weights(self) -> Array:
        """Weights of the rows, float64."""
        return self._rectangle("weights", np.float64, 0)

    @property
    def scores(self) -> Array:
        """Scores of the rows, float64."""
        return self._rectangle("scores", np.float64, np.nan)

    @property
    def remaining(self) -> Array:
        """[T] or [T, heads]: the sums of the weights that are not listed."""
        return self._shape(np.array([each.remaining for each in self.lists], np.float64))

    @property
    def counts(self) -> Array:
        """[T] or [T, heads]: how many rows are listed."""
        return self._shape(np.array([len(each) for each in self.lists], np.int64))

    def _rectangle(self, name: str, dtype: Any, filler: float) -> Array:
        width = max((len(each) for each in self.lists), default=0)
        entries = sum(len(each) for each in self.lists)
        if width * len(self.lists) > _PADDING_FREE + _PADDING_FACTOR * entries:
            raise ValueError("the lists differ too much in length for one array: take them singly")
        out = np.full((len(self.lists), width), filler, dtype)
        for i, each in enumerate(self.lists):
            out[i, : len(each)] = getattr(each, name)
        return self._shape(out)

    def _shape(self, array: Array) -> Array:
        if self.num_heads == 1:
            return array
        return array.reshape(len(self), self.num_heads, *array.shape[1:])


def decode_query_weights(message: Any) -> QueryWeights:
    """Of a QueryWeights message. INTERNAL if its lists do not fit each other or are not finite."""
    count = len(message.positions)
    ids, has_ids = len(message.ids), len(message.has_ids)
    fits = len(message.weights) == count and len(message.scores) == count
    if not fits or ids not in (0, count) or has_ids not in (0, ids):
        raise internal("the server's answer has lists of weights that do not fit each other")
    weights = _array(message.weights, np.float64)
    if not (np.isfinite(weights).all() and np.isfinite(message.remaining_weight)):
        raise internal("the server's answer has a weight that is not finite")
    return QueryWeights(
        _array(message.positions, np.uint64),
        _array(message.ids, np.uint64) if ids else np.zeros(count, np.uint64),
        _array(message.has_ids, np.bool_) if has_ids else np.full(count, ids > 0),
        weights,
        _array(message.scores, np.float64),
        np.zeros(count, np.uint32),
        message.remaining_weight,
    )


def _array(container: Any, dtype: Any) -> Array:
    return np.fromiter(container, dtype, count=len(container))


def merge_weights(
    first: Weights, second: Weights, shares: Sequence[Array], parts_before: int
) -> Weights:
    """The lists of both, scaled by the answers' shares of all weight, the largest first.

    shares          Of each answer, [T * heads].
    parts_before    How many answers `first` was merged from.
    """
    lists: List[QueryWeights] = []
    for i, (a, b) in enumerate(zip(first.lists, second.lists)):
        share, other_share = float(shares[0][i]), float(shares[1][i])
        weights = np.concatenate([share * a.weights, other_share * b.weights])
        parts = np.concatenate([a.parts, b.parts + np.uint32(parts_before)])
        positions = np.concatenate([a.positions, b.positions])
        order = np.lexsort((positions, parts, -weights))
        lists.append(
            QueryWeights(
                positions[order],
                np.concatenate([a.ids, b.ids])[order],
                np.concatenate([a.has_ids, b.has_ids])[order],
                weights[order],
                np.concatenate([a.scores, b.scores])[order],
                parts[order],
                share * a.remaining + other_share * b.remaining,
            )
        )
    return Weights(tuple(lists), first.num_heads)
