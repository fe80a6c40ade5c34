#!/usr/bin/python3
"""The asyncio client against the real server: aio_test.py SERVER ROOT TOOL"""
import asyncio
import contextlib
import unittest

import numpy as np

import softlookup as sl
import softlookup.aio
from cutting_proxy import CuttingProxy
from subject import local_server, main

FRIENDS = np.array([[-1.71], [0.6], [-1.01], [-0.61], [2.73]], np.float32)


class AioTest(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(local_server())

    async def asyncSetUp(self):
        self.client = await self.enterAsyncContext(
            softlookup.aio.connect(self.server.address, deadline=60)
        )
        self.store = await self.client.create_store("s", key_dim=1, value_dim=5, score="dot")
        self.addAsyncCleanup(self.delete)

    async def delete(self):
        for info in await self.client.stores():
            await self.client.store(info.name).delete()

    async def test_many_lookups_at_once_have_the_answers_of_the_sync_client(self):
        receipt = await self.store.append(FRIENDS, np.eye(5), ids=range(5), labels=list("abcde"))
        self.assertEqual((receipt.appended_rows, receipt.revision), (5, 2))
        temperatures = np.linspace(0.1, 5, 50)
        answers = await asyncio.gather(
            *(self.store.lookup([1.0], temperature=t, weights=2) for t in temperatures)
        )
        with self.server.connect() as client:
            for temperature, answer in zip(temperatures, answers):
                expected = client.store("s").lookup([1.0], temperature=temperature, weights=2)
                self.assertEqual(answer.values.tobytes(), expected.values.tobytes())
                self.assertEqual(answer.weights.ids.tolist(), expected.weights.ids.tolist())

    async def test_a_large_append_and_the_rows_back(self):
        keys, values = np.arange(1000.0)[:, None], np.tile(np.arange(1000.0)[:, None], 5)
        receipt = await self.store.append(keys, values, batch_rows=7)
        self.assertEqual(
            (receipt.appended_rows, receipt.requests, receipt.row_count), (1000, 143, 1000)
        )
        rows = await self.store.read()
        np.testing.assert_array_equal(rows.values, values)
        pages = [len(page) async for page in self.store.rows(sl.rows(last=10), page_rows=4)]
        self.assertEqual(pages, [4, 4, 2])
        await self.store.append([[1]], [[1] * 5], ids=[777])
        with self.assertRaises(sl.AlreadyExistsError) as caught:
            await self.store.append(keys, values, ids=range(1000), batch_rows=100)
        self.assertEqual(
            (caught.exception.metadata["row"], caught.exception.acknowledged_rows), ("777", 700)
        )

    async def test_memories_are_watched(self):
        await self.store.append(FRIENDS, np.eye(5))
        ends = []
        async for memory in self.store.watch():
            ends.append(memory.end)
            if len(ends) == 3:
                break
            await self.store.append([[1]], [[0] * 5])
        self.assertEqual(ends, [5, 6, 7])
        with self.assertRaisesRegex(TimeoutError, "WatchMemory had no message for 0.2 s"):
            async for _ in self.store.watch(deadline=0.2):
                pass

    async def test_a_memory_that_is_not_there_is_answered_by_those_that_are(self):
        for ask in (
            self.store.memory("latel"),
            self.store.lookup([1.0], source="memory", memory="latel"),
        ):
            with self.assertRaisesRegex(sl.NotFoundError, "latel.*; it keeps average$"):
                await ask
        named = self.client.store("s")
        with self.assertRaisesRegex(sl.NotFoundError, '"latel"$'):
            await named.memory("latel")
        await named.info()
        with self.assertRaisesRegex(sl.NotFoundError, "it keeps average$"):
            await named.memory("latel")

    async def test_a_task_that_is_cancelled_ends_its_call(self):
        async def ends(make):
            task = asyncio.ensure_future(make())
            await asyncio.wait([task], timeout=0)  # It begins.
            (call,) = (each for each in self.client._connection._calls if not each.done())
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertTrue(call.cancelled())

        await ends(lambda: self.store.lookup([1.0], min_revision=99))
        watch = self.store.watch()
        await watch.__anext__()
        await ends(watch.__anext__)

    async def test_errors_are_those_of_the_sync_client(self):
        with self.assertRaises(KeyError) as caught:
            await self.client.store("t").info()
        self.assertEqual(caught.exception.reason, "STORE_NOT_FOUND")
        with self.assertRaises(TimeoutError):
            await self.store.lookup([1.0], min_revision=99, deadline=0.1)
        with self.assertRaisesRegex(ValueError, "keys: row 0"):
            await self.store.append([[np.nan]], [[1] * 5])
        with self.assertRaisesRegex(sl.AlreadyExistsError, r"client\.store\('s'\) .* update\(\)"):
            await self.client.create_store("s", key_dim=1, value_dim=5)
        with self.assertRaisesRegex(sl.AlreadyExistsError, "replace=True deletes it"):
            await (await self.client.create_store("t", key_dim=1, value_dim=5)).rename("s")
        with self.assertRaisesRegex(ValueError, "memory goes with"):
            await self.store.lookup([1.0], memory="m")

    async def test_a_writer_ends_with_an_exception_or_a_refused_request(self):
        with self.assertRaises(sl.InvalidArgumentError) as caught:
            async with self.store.writer("w") as writer:
                await writer.append(FRIENDS, np.eye(5))
                await writer.append([[1, 2]], [[1] * 5])
        self.assertEqual(
            (caught.exception.reason, caught.exception.acknowledged_rows), ("SHAPE_MISMATCH", 5)
        )
        with self.assertRaisesRegex(KeyError, "of the caller"):
            async with self.store.writer("v") as writer:
                raise KeyError("of the caller")
        async with self.store.writer("w", from_start=True) as writer:
            await writer.append(FRIENDS, np.eye(5))
        self.assertEqual((writer.progress.rows, (await self.store.info()).row_count), (0, 5))


    async def test_closing_the_client_ends_the_calls_in_progress(self):
        client = softlookup.aio.connect(self.server.address, deadline=60)
        store = client.store("s")
        seen, written, watched = asyncio.Event(), asyncio.Event(), store.watch()

        async def watch():
            async for _ in store.watch():
                seen.set()

        await watched.__anext__()  # Of this one, no message is awaited.
        watching = asyncio.ensure_future(watch())
        writer = await store.writer("w", on_progress=lambda progress: written.set()).__aenter__()
        await writer.append(FRIENDS, np.eye(5))
        await written.wait()
        asking = asyncio.ensure_future(store.lookup([1.0], min_revision=99))
        await seen.wait()
        await client.close()
        for ending in (watching, watched.__anext__()):
            with self.assertRaisesRegex(sl.Error, "CANCELLED: the client was closed"):
                await ending
        with self.assertRaisesRegex(ValueError, "the client is closed"):
            await asking
        with self.assertRaisesRegex(sl.Error, "the client is closed"):
            await writer.append(FRIENDS, np.eye(5))
            await writer.finish()

    async def test_a_task_that_is_cancelled_in_a_writer_ends_the_writer(self):
        gate, reached = asyncio.Event(), asyncio.Event()
        writer = self.store.writer("w", batch_rows=1)
        # 64 requests may wait for the stream, which here does not begin.
        writer._stream = gate.wait

        async def append():
            reached.set()
            await writer.append(np.zeros((65, 1)), np.zeros((65, 5)))

        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(writer.cancel)
            await writer.__aenter__()
            task = asyncio.ensure_future(append())
            await reached.wait()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            # What follows would be in the place of the rows that were left out.
            with self.assertRaisesRegex(sl.Error, "CANCELLED"):
                await writer.append(FRIENDS, np.eye(5))
            gate.set()
            with self.assertRaisesRegex(sl.Error, "CANCELLED"):
                await writer.finish()
        leaving = self.store.writer("v")
        gate.clear()
        leaving._stream = gate.wait

        async def leave():
            async with leaving:
                await leaving.append(FRIENDS, np.eye(5))
                reached.set()

        reached.clear()
        task = asyncio.ensure_future(leave())
        await reached.wait()
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        gate.set()
        await leaving._task  # Ends, though its request is not acknowledged.

    async def test_an_error_of_on_progress_ends_the_writer_even_one_that_may_pass(self):
        def fail(progress):
            raise sl.UnavailableError("UNAVAILABLE", "another server")

        with self.assertRaisesRegex(sl.Error, "INTERNAL: .*on_progress.*another server") as caught:
            async with self.store.writer("w", on_progress=fail) as writer:
                await writer.append(FRIENDS, np.eye(5))
        self.assertIsInstance(caught.exception.__cause__, sl.UnavailableError)
        self.assertEqual(writer.progress.reconnections, 0)


class LoopTest(unittest.TestCase):
    def test_a_client_serves_one_event_loop_after_the_other(self):
        with local_server() as server:
            client = softlookup.aio.connect(server.address)
            for _ in range(2):
                self.assertEqual(asyncio.run(client.stores()), [])

    def test_an_event_loop_that_ends_takes_its_writer_along(self):
        async def leave(address):
            client = softlookup.aio.connect(
                address, retry=sl.Retry(backoff_min=0.001, backoff_max=0.01)
            )
            writer = await client.store("s").writer("w").__aenter__()
            await writer.append(FRIENDS, np.eye(5))
            return writer  # The task of the writer is still there.

        with local_server() as server, server.connect() as client:
            client.create_store("s", key_dim=1, value_dim=5)
            with CuttingProxy(server.address, 1, 10**6, 2000, 500) as proxy:
                writer = asyncio.run(asyncio.wait_for(leave(proxy.address), 30))
            self.assertIn(writer.progress.rows, (0, 5))


if __name__ == "__main__":
    main()
