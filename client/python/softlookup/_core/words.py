"""The words for what the wire has as numbers: scores, modes, kinds of memories and so on."""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence

from softlookup._core.arrays import invalid
from softlookup._proto.softlookup.v1 import attention_pb2, lookup_pb2, matrix_pb2, memory_pb2
from softlookup._proto.softlookup.v1 import row_pb2


class Words:
    """The words of one enumeration, such as "scaled_dot" for SCORE_SCALED_DOT."""

    def __init__(self, enum: Any, prefix: str, *, without: Sequence[str] = ()) -> None:
        """`without` are words that no caller may give."""
        self._numbers: Dict[str, int] = {
            name[len(prefix) :].lower(): number
            for name, number in enum.items()
            if not name.endswith("_UNSPECIFIED")
        }
        self._words = {number: word for word, number in self._numbers.items()}
        for word in without:
            del self._numbers[word]

    def number(self, field: str, word: Optional[str]) -> int:
        """The number of `word`, in which "-" may stand for "_"; 0, the default, for None."""
        if word is None:
            return 0
        number = self._numbers.get(word.replace("-", "_")) if isinstance(word, str) else None
        if number is None:
            known = ", ".join(self._numbers)
            raise invalid(field, f"{field} is {word!r}; it can be {known}")
        return number

    def word(self, number: int) -> str:
        """The word of a number of the server's; the number itself if a newer server sent it."""
        return self._words.get(number, "" if number == 0 else str(number))


SCORES = Words(attention_pb2.Score, "SCORE_")
MODES = Words(attention_pb2.Mode, "MODE_")
SOURCES = Words(lookup_pb2.Source, "SOURCE_")
STORAGES = Words(matrix_pb2.ElementType, "ELEMENT_TYPE_", without=["float64"])
MEMORY_KINDS = Words(memory_pb2.MemoryKind, "MEMORY_KIND_")
CONFLICTS = Words(row_pb2.OnConflict, "ON_CONFLICT_")
ACKNOWLEDGES = Words(row_pb2.Acknowledge, "ACKNOWLEDGE_")
