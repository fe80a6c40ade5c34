"""A large append of the sync client: several requests, pipelined on one stream."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Deque, Iterator, List, Optional

import grpc

from softlookup._connection import Connection, Watchdog
from softlookup._core.appends import STREAM_METHOD, WINDOW_REQUESTS, Batch, Tally
from softlookup._core.call import check_seconds, guard
from softlookup._core.errors import Error, internal
from softlookup._core.results import Receipt
from softlookup._progress import ProgressLine


def append_all(
    connection: Connection, store: str, batch: Batch, deadline: Optional[float], progress: bool
) -> Receipt:
    """Appends the rows as several requests. `deadline` holds between two acknowledgements.

    An Error tells in `acknowledged_rows` how many rows had been acknowledged; a few requests more
    may be applied.
    """
    idle = check_seconds("deadline", deadline) or connection.settings.deadline
    sent: Deque[int] = deque()  # Rows of each request that is not acknowledged.
    changed = threading.Condition()
    ended = False

    broken: List[Exception] = []  # What ended requests(), of which gRPC says nothing.

    def requests() -> Iterator[bytes]:  # gRPC runs this in a thread of its own.
        try:
            for request, rows in batch.requests(store):
                with changed:
                    changed.wait_for(lambda: ended or len(sent) < WINDOW_REQUESTS)
                    if ended:
                        return
                    sent.append(rows)
                yield request
        except Exception as error:
            broken.append(error)
            raise

    tally = Tally()
    line = ProgressLine(progress, batch.rows)
    server = connection.server(time.monotonic() + idle)
    answers = connection.pipeline(server, STREAM_METHOD, requests())
    with Watchdog(idle, answers.cancel) as watchdog:
        try:
            for data in answers:
                watchdog.wake()
                with changed:
                    if not sent:
                        raise internal("the server acknowledged a request that was not sent")
                    rows = sent.popleft()
                    changed.notify()
                guard("StreamAppend", tally.add, data, rows)
                line.update(tally.rows_sent)
            if tally.rows_sent != batch.rows:
                raise internal("the server ended the stream before it answered every request")
        except grpc.RpcError as error:
            if broken:
                raise broken[0] from None
            failure = watchdog.explain(connection.failure(server, error), "StreamAppend")
            raise tally.explain(failure) from None
        except Error as error:
            raise tally.explain(error) from None
        finally:
            with changed:
                ended = True
                changed.notify()
            answers.cancel()
            line.end()
    return tally.receipt()
