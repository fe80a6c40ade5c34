"""A large append of the asyncio client: several requests, pipelined on one stream."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Deque, List, Optional

import grpc

from softlookup._core.appends import STREAM_METHOD, WINDOW_REQUESTS, Batch, Tally
from softlookup._core.call import check_seconds, guard
from softlookup._core.errors import Error, internal
from softlookup._core.results import Receipt
from softlookup._progress import ProgressLine
from softlookup.aio._connection import Connection


async def append_all(
    connection: Connection, store: str, batch: Batch, deadline: Optional[float], progress: bool
) -> Receipt:
    """Appends the rows as several requests. `deadline` holds between two acknowledgements.

    An Error tells in `acknowledged_rows` how many rows had been acknowledged; a few requests more
    may be applied.
    """
    idle = check_seconds("deadline", deadline) or connection.settings.deadline
    sent: Deque[int] = deque()  # Rows of each request that is not acknowledged.
    room = asyncio.Semaphore(WINDOW_REQUESTS)
    server = await connection.server(time.monotonic() + idle)
    answers = connection.pipeline(server, STREAM_METHOD)
    broken: List[Exception] = []  # What ended send().

    async def send() -> None:
        try:
            for request, rows in batch.requests(store):
                await room.acquire()
                sent.append(rows)
                await answers.write(request)
            await answers.done_writing()
        except (grpc.RpcError, asyncio.InvalidStateError):
            pass  # The stream is over, and its reader learns why.
        except Exception as error:
            broken.append(error)
            answers.cancel()

    tally = Tally()
    line = ProgressLine(progress, batch.rows)
    sending = asyncio.ensure_future(send())
    try:
        while True:
            data = await connection.read(server, answers, idle, "StreamAppend")
            if data is None:
                break
            if not sent:
                raise internal("the server acknowledged a request that was not sent")
            guard("StreamAppend", tally.add, data, sent.popleft())
            room.release()
            line.update(tally.rows_sent)
        if tally.rows_sent != batch.rows:
            raise internal("the server ended the stream before it answered every request")
    except Error as error:
        raise tally.explain(error) from None
    except asyncio.CancelledError:
        if broken:
            raise broken[0] from None
        raise
    finally:
        sending.cancel()
        answers.cancel()
        line.end()
    return tally.receipt()
