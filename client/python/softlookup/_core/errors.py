"""Errors of calls, and of their arguments."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Tuple, Type


class Error(Exception):
    """A call failed, or an argument is wrong.

    code            gRPC's word for the kind of failure, such as "NOT_FOUND".
    message         What happened, for people. It can have text of the server's or of other
                    clients' choice; str() of the error shows control characters as escapes.
    reason          The server's stable word, such as "STORE_NOT_FOUND" (docs/errors.md). Empty for
                    errors that gRPC or this client makes.
    metadata        What the error is about: keys such as "store", "field", "row", "limit".
    retry_after     Seconds after which the server invites the same call again; None if it does not,
                    infinity if it asks that the call is not repeated.
    acknowledged_rows
                    Of an append of several requests: the rows that were acknowledged before.
    """

    def __init__(
        self,
        code: str,
        message: str = "",
        *,
        reason: str = "",
        metadata: Optional[Mapping[str, str]] = None,
        retry_after: Optional[float] = None,
        acknowledged_rows: int = 0,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = reason
        self.metadata: Dict[str, str] = dict(metadata or {})
        self.retry_after = retry_after
        self.acknowledged_rows = acknowledged_rows

    def __str__(self) -> str:
        name = f"{self.code} ({self.reason})" if self.reason else self.code
        text = f"{name}: {self.message}" if self.message else name
        if self.acknowledged_rows:
            text += f" (rows acknowledged before: {self.acknowledged_rows})"
        return printable(text)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __reduce__(self) -> Tuple[Any, ...]:
        return _restore, (
            type(self),
            self.code,
            self.message,
            self.reason,
            self.metadata,
            self.retry_after,
            self.acknowledged_rows,
        )


class InvalidArgumentError(Error, ValueError):
    """INVALID_ARGUMENT, OUT_OF_RANGE: the call itself is wrong. `metadata` names the field."""


class NotFoundError(Error, KeyError):
    """NOT_FOUND: there is no such store, memory, writer or backup."""


class AlreadyExistsError(Error):
    """ALREADY_EXISTS: the name of a store or the id of a row is taken."""


class DeadlineError(Error, TimeoutError):
    """DEADLINE_EXCEEDED: a change may or may not have been made."""


class PermissionDeniedError(Error, PermissionError):
    """PERMISSION_DENIED, UNAUTHENTICATED: the server does not know the caller, or refuses it."""


class UnavailableError(Error, ConnectionError):
    """UNAVAILABLE: no connection, or a server that cannot serve now."""


CLASSES: Dict[str, Type[Error]] = {
    "INVALID_ARGUMENT": InvalidArgumentError,
    "OUT_OF_RANGE": InvalidArgumentError,
    "NOT_FOUND": NotFoundError,
    "ALREADY_EXISTS": AlreadyExistsError,
    "DEADLINE_EXCEEDED": DeadlineError,
    "PERMISSION_DENIED": PermissionDeniedError,
    "UNAUTHENTICATED": PermissionDeniedError,
    "UNAVAILABLE": UnavailableError,
}

for _class in (Error, *CLASSES.values()):
    _class.__module__ = "softlookup"  # As users name them, also in tracebacks.


def _restore(
    kind: Type[Error],
    code: str,
    message: str,
    reason: str,
    metadata: Dict[str, str],
    retry_after: Optional[float],
    acknowledged_rows: int,
) -> Error:
    return kind(
        code,
        message,
        reason=reason,
        metadata=metadata,
        retry_after=retry_after,
        acknowledged_rows=acknowledged_rows,
    )


def printable(text: str) -> str:
    """`text` with its control characters, and others that no terminal shows, as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def internal(message: str) -> Error:
    """The error of an answer that cannot be right."""
    return Error("INTERNAL", message)
