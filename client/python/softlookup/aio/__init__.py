"""The client for asyncio: the surface of `softlookup`, with `async` and `await`.

    async with softlookup.aio.connect("127.0.0.1:7471") as client:
        answer = await client.store("people").lookup([1.0])
        async with client.store("people").writer("nightly") as writer:
            await writer.append(keys, values)

Arguments, results and errors are those of `softlookup`.
"""

import softlookup as _softlookup  # Before grpc: it makes processes that fork safe.

from softlookup.aio._client import Client, connect
from softlookup.aio._store import Store
from softlookup.aio._writer import Writer

__version__ = _softlookup.__version__
__all__ = ["Client", "Store", "Writer", "connect"]
