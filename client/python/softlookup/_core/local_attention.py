"""Attention in this process, in float64: the definitions of docs/concepts.md, in NumPy."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np

from softlookup._core import arrays
from softlookup._core.answer import Answer
from softlookup._core.arrays import invalid
from softlookup._core.attention import check_causal
from softlookup._core.wire import Array


def _dot(q: Array, k: Array) -> Array:
    product: Array = q @ k.T
    return product


def _scaled_dot(q: Array, k: Array) -> Array:
    return _dot(q, k / np.sqrt(q.shape[1]))


def _cosine(q: Array, k: Array) -> Array:
    norms = np.outer(np.linalg.norm(q, axis=1), np.linalg.norm(k, axis=1))
    quotient: Array = np.divide(q @ k.T, norms, out=np.zeros_like(norms), where=norms > 0)
    return quotient


def _squared_euclidean(q: Array, k: Array) -> Array:
    squares = [((row - k) ** 2).sum(axis=1) for row in q]
    distances: Array = -np.array(squares).reshape(len(q), len(k))
    return distances


def _euclidean(q: Array, k: Array) -> Array:
    distances: Array = -np.sqrt(-_squared_euclidean(q, k))
    return distances


_SCORES: Dict[str, Callable[[Array, Array], Array]] = {
    "dot": _dot,
    "scaled_dot": _scaled_dot,
    "cosine": _cosine,
    "euclidean": _euclidean,
    "squared_euclidean": _squared_euclidean,
}


def attend(
    queries: Any,
    keys: Any,
    values: Any,
    *,
    num_heads: int = 1,
    score: str = "scaled_dot",
    temperature: float = 1.0,
    min_score: Optional[float] = None,
    causal: bool = False,
    causal_offset: int = 0,
    mask: Any = None,
) -> Answer:
    """Soft attention in this process, without a server, to be merged with the answers of stores.

    queries     [T, key_dim] or [key_dim].
    keys        [N, key_dim], and values: [N, value_dim].
    score       And temperature: by default those of a new store. For a merge, give those of the
                lookup: Store.info() has the store's.
    mask        [N] or [T, N], bool: which rows count for which query. Default: all.
    The rest is as in Store.lookup(). All arithmetic is float64. Client.attend() has a server do it.
    """
    q = arrays.matrix("queries", queries, one_row=True).astype(np.float64)
    k, v = (
        arrays.matrix(name, value).astype(np.float64)
        for name, value in (("keys", keys), ("values", values))
    )
    arrays.same_rows("keys", k, "values", v)
    for name, array in (("queries", q), ("keys", k), ("values", v)):
        arrays.check_finite(name, array)
    if q.shape[1] != k.shape[1]:
        raise invalid("queries", f"queries has {q.shape[1]} columns, but keys has {k.shape[1]}")
    if num_heads < 1 or k.shape[1] % num_heads or v.shape[1] % num_heads:
        raise invalid("num_heads", "num_heads must divide the dimensions of keys and values")
    arrays.check_number("temperature", temperature)
    if not 1e-6 <= temperature <= 1e6:
        raise invalid("temperature", "temperature must be in [1e-6, 1e6]")
    find_scores = _SCORES.get(score.replace("-", "_")) if isinstance(score, str) else None
    if find_scores is None:
        raise invalid("score", f"score is {score!r}; it can be {', '.join(_SCORES)}")
    check_causal(causal, causal_offset)
    seen = np.ones((len(q), len(k)), bool)
    if mask is not None:
        given = np.asarray(mask)
        if given.dtype != np.bool_ or given.shape not in (seen.shape, seen.shape[1:]):
            text = f"{given.dtype} {list(given.shape)}, not bool [{len(k)}] or {list(seen.shape)}"
            raise invalid("mask", f"mask is {text}")
        seen &= given
    if causal:
        seen &= np.arange(len(k)) <= causal_offset + np.arange(len(q))[:, None]
    key_parts, value_parts = k.shape[1] // num_heads, v.shape[1] // num_heads
    heads: List[Tuple[Array, Array, Array, Array, Array]] = []
    for head in range(num_heads):
        part = slice(head * key_parts, (head + 1) * key_parts)
        scores = find_scores(q[:, part], k[:, part])
        counts = seen if min_score is None else seen & (scores >= min_score)
        logits = np.where(counts, scores / temperature, -np.inf)
        heads.append(_soft(logits, v[:, head * value_parts : (head + 1) * value_parts]))
    sums, lse, top, entropy, counted = zip(*heads)
    return Answer.of(
        np.concatenate(sums, axis=1),
        np.stack(lse, axis=1),
        entropy=np.stack(entropy, axis=1),
        max_logit=np.stack(top, axis=1),
        counted_rows=np.stack(counted, axis=1),
    )


def _soft(logits: Array, values: Array) -> Tuple[Array, Array, Array, Array, Array]:
    """(sums [T, d], log-sum-exp, largest logit, entropy and number of the counted rows, [T])."""
    top = logits.max(axis=1, initial=-np.inf)
    shift = np.where(top > -np.inf, top, 0.0)[:, None]
    powers = np.exp(logits - shift)
    total = powers.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        lse = np.where(total > 0, shift[:, 0] + np.log(total), -np.inf)
        weights = np.where(total[:, None] > 0, powers / total[:, None], 0.0)
        terms = np.where(weights > 0, weights * np.log(weights), 0.0)
    counted = (logits > -np.inf).sum(axis=1)
    return weights @ values, lse, top, 0.0 - terms.sum(axis=1), counted
