"""A line on a terminal that says how far an append is."""

from __future__ import annotations

import sys
import time
from typing import Optional, TextIO

_SECONDS_BETWEEN = 0.1


class ProgressLine:
    """Shows rows of a total on `stream` (default: standard error), if that is a terminal.

    Shows nothing unless `wanted`.
    """

    def __init__(self, wanted: bool, total: int, stream: Optional[TextIO] = None) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._total = total
        self._shows = wanted and self._stream is not None and self._stream.isatty()
        self._begin = time.monotonic()
        self._last = 0.0

    def update(self, rows: int) -> None:
        """So many rows are acknowledged."""
        now = time.monotonic()
        if not self._shows or (now - self._last < _SECONDS_BETWEEN and rows < self._total):
            return
        self._last = now
        part = rows / self._total if self._total else 1.0
        rate = rows / max(now - self._begin, 1e-9)
        bar = ("#" * round(30 * part)).ljust(30, ".")
        self._stream.write(f"\r{bar} {part:4.0%}  {rows} of {self._total} rows, {rate:.0f} rows/s ")
        self._stream.flush()

    def end(self) -> None:
        """Ends the line, if there is one."""
        if self._shows and self._last:
            self._stream.write("\n")
            self._stream.flush()
