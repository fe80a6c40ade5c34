"""A lookup of any number of queries, in as many calls as the server's limits ask for."""

from __future__ import annotations

from typing import List, Optional, Tuple

from softlookup._core.answer import Answer, concatenate
from softlookup._core.attention import Lookup
from softlookup._core.call import Calls
from softlookup._core.errors import Error
from softlookup._core.stores import get_birth

CALL_QUERIES_MAX = 4096  # The server's default of --max-queries.
# Of the queries of a call. Half of the server's default of --max-message-bytes.
CALL_BYTES_MAX = 32 << 20
_TOO_LARGE = ("LIMIT_EXCEEDED", "MESSAGE_TOO_LARGE", "ANSWER_TOO_LARGE")
_OF_ANY_CALL = ("filter", "options.top_weights")  # Fields with limits that no fewer queries meet.


def answer_in_batches(lookup: Lookup) -> Calls[Answer]:
    """The calls of the lookup: one if the server takes all queries at once, even none at all.

    Else the answers of several calls are put together in the order of the queries. All are of one
    store: GetStore, before the first and after the last, tells when it was made. None is of an
    earlier revision than those before it. If the server refuses a call of several queries as too
    large, they are sent again, half as many a call.
    ABORTED if another store took the name, or if the store is at an earlier revision.
    """
    most = min(CALL_QUERIES_MAX, max(1, CALL_BYTES_MAX // max(1, lookup.row_bytes)))
    answers: List[Answer] = []
    birth: Optional[Tuple[int, int]] = None
    begin = 0
    while True:
        end = min(begin + most, lookup.rows)
        if birth is None and end < lookup.rows:
            birth = yield get_birth(lookup.store, lookup.deadline)
        try:
            answer: Answer = yield lookup.call(begin, end)
            if answers and answer.revision < answers[-1].revision:
                raise _older(lookup.store, answer.revision, answers[-1].revision)
        except Error as error:
            if _is_too_large(error) and end - begin > 1:
                most = (end - begin) // 2
                continue
            if answers and (yield from _is_replaced(lookup, birth)):
                raise _replaced(lookup.store) from error
            raise _explain(error, begin, lookup.is_vector)
        answers.append(answer)
        begin = end
        if end == lookup.rows:
            break
    # A single call is answered by one store.
    if len(answers) > 1 and (yield get_birth(lookup.store, lookup.deadline)) != birth:
        raise _replaced(lookup.store)
    return concatenate(answers)


def _is_too_large(error: Error) -> bool:
    """Whether a call was refused as too large, so that one of fewer queries may be answered.

    Calls keep to the limits above, but a server can have lower ones, and an answer can be large.
    """
    if error.reason:
        is_of_any_call = error.metadata.get("field", "").startswith(_OF_ANY_CALL)
        return error.reason in _TOO_LARGE and not is_of_any_call
    # gRPC's own words for a message that is over the client's limit, or far over the server's.
    return error.code == "RESOURCE_EXHAUSTED" and "message larger than max" in error.message


def _is_replaced(lookup: Lookup, birth: Optional[Tuple[int, int]]) -> Calls[bool]:
    """Whether another store has the name now; not if the server does not tell."""
    try:
        now: Tuple[int, int] = yield get_birth(lookup.store, lookup.deadline)
    except Error:
        return False
    return now != birth


def _replaced(store: str) -> Error:
    return Error(
        "ABORTED",
        f'another store has taken the name "{store}" since the first query, so the answers would '
        "be of both; ask again",
    )


def _older(store: str, revision: int, before: int) -> Error:
    return Error(
        "ABORTED",
        f'"{store}" is at revision {revision}, after answers at revision {before}: another store '
        "has taken the name, or the store lost writes",
    )


def _explain(error: Error, begin: int, is_vector: bool) -> Error:
    """`error` with a query that it names counted from the first of the lookup.

    is_vector       Whether the queries were given as one, which may not have been meant.
    """
    row = error.metadata.get("row", "")
    names_query = error.metadata.get("field") in ("queries", "inputs")
    if begin > 0 and names_query and row.isdecimal() and len(row) < 20:
        query = int(row) + begin
        error.metadata["row"] = str(query)
        error.message += f" (that is query {query} of the lookup, from 0)"
    if is_vector and names_query and error.reason == "SHAPE_MISMATCH":
        text = "an array of one dimension is one query"
        error.message += f"; {text}: for queries of one number each, give queries[:, None]"
    return error
