#!/usr/bin/python3
"""Writers whose connections break again and again leave each row once: writer_test.py SERVER ROOT TOOL

A failure prints the seed; with it in SOFTLOOKUP_TEST_SEED the cuts come after the same bytes again.
"""
import asyncio
import contextlib
import os
import random
import signal
import tempfile
import threading
import unittest

import numpy as np

import softlookup as sl
import softlookup.aio
from cutting_proxy import CuttingProxy
from scripted_server import scripted_server
from softlookup._proto.softlookup.v1 import row_pb2
from subject import local_server, main

CUTS = 100
DIM = 16
SEED = int(os.environ.get("SOFTLOOKUP_TEST_SEED", "1"))
QUICK = sl.Retry(backoff_min=0.001, backoff_max=0.02)


def keys_of(begin, count):
    """Row i has a key that no other row has."""
    rows = np.arange(begin, begin + count, dtype=np.float32)[:, None]
    return rows / np.arange(1, DIM + 1, dtype=np.float32)


def values_of(begin, count):
    return np.arange(begin, begin + count, dtype=np.float32)[:, None]


class WriterTest(unittest.TestCase):
    def expect_each_row_once(self, client, rows):
        """The store "s" has the rows from 0 on, each once and in order, and remembers them as one that got them so."""
        there = client.store("s").read(deadline=60)
        np.testing.assert_array_equal(there.positions, np.arange(rows))
        np.testing.assert_array_equal(there.values, values_of(0, rows))
        np.testing.assert_array_equal(there.keys, keys_of(0, rows))
        unbroken = client.create_store("unbroken", key_dim=DIM, value_dim=1)
        for begin in range(0, rows, 1000):
            count = min(1000, rows - begin)
            unbroken.append(keys_of(begin, count), values_of(begin, count))
        memories = [client.store(name).memory() for name in ("s", "unbroken")]
        self.assertEqual(*(memory.key.tobytes() + memory.value.tobytes() for memory in memories))
        self.assertEqual(memories[0].weight, rows)

    def expect_progress(self, progress, proxy, client, rows, requests):
        self.assertGreaterEqual(proxy.cuts, CUTS)
        self.assertGreater(progress.reconnections, 0)
        self.assertEqual(
            (progress.rows, progress.requests, progress.row_count), (rows, requests, rows)
        )
        self.assertEqual(progress.revision, client.store("s").info().revision)
        self.assertIsNone(progress.outage)

    def batches(self, proxy):
        """The rows of one request after the other, until all cuts were made and some more."""
        draw, begin, more = random.Random(SEED), 0, 20
        while more > 0:
            count = draw.randint(1, 300 if draw.random() < 0.1 else 30)
            yield keys_of(begin, count), values_of(begin, count)
            begin += count
            more -= proxy.cuts >= CUTS

    def test_a_writer_that_is_cut_a_hundred_times_leaves_each_row_once(self):
        with local_server() as server, server.connect() as direct, CuttingProxy(
            server.address, SEED, CUTS, 100_000, 1_500
        ) as proxy, sl.connect(proxy.address, retry=QUICK) as client:
            direct.create_store("s", key_dim=DIM, value_dim=1)
            rows = requests = 0
            with client.store("s").writer("w") as writer:
                for keys, values in self.batches(proxy):
                    writer.append(keys, values)
                    rows, requests = rows + len(keys), requests + 1
            self.expect_progress(writer.progress, proxy, direct, rows, requests)
            self.expect_each_row_once(direct, rows)

    def test_an_asyncio_writer_that_is_cut_a_hundred_times_leaves_each_row_once(self):
        async def write(address, proxy):
            rows = requests = 0
            async with softlookup.aio.connect(address, retry=QUICK) as client:
                async with client.store("s").writer("w") as writer:
                    for keys, values in self.batches(proxy):
                        await writer.append(keys, values)
                        rows, requests = rows + len(keys), requests + 1
            return writer.progress, rows, requests

        with local_server() as server, server.connect() as direct, CuttingProxy(
            server.address, SEED, CUTS, 100_000, 1_500
        ) as proxy:
            direct.create_store("s", key_dim=DIM, value_dim=1)
            progress, rows, requests = asyncio.run(write(proxy.address, proxy))
            self.expect_progress(progress, proxy, direct, rows, requests)
            self.expect_each_row_once(direct, rows)

    def test_a_server_that_crashes_gets_the_rest_when_it_is_back(self):
        with tempfile.TemporaryDirectory() as directory:
            data = f"{directory}/data"
            acknowledged = threading.Event()

            def watch(progress):
                if progress.rows >= 300:
                    acknowledged.set()

            with local_server(data_dir=data) as server:
                with server.connect() as direct:
                    direct.create_store("s", key_dim=DIM, value_dim=1)
                with CuttingProxy(server.address, SEED, 0, 1, 1) as proxy, sl.connect(
                    proxy.address, retry=QUICK
                ) as client, client.store("s").writer("w", on_progress=watch) as writer:
                    for begin in range(0, 400, 10):
                        writer.append(keys_of(begin, 10), values_of(begin, 10))
                    self.assertTrue(acknowledged.wait(60))
                    server.process.send_signal(signal.SIGKILL)
                    server.process.wait()
                    with local_server(data_dir=data) as again, again.connect() as direct:
                        proxy.set_server(again.address)
                        for begin in range(400, 800, 10):
                            writer.append(keys_of(begin, 10), values_of(begin, 10))
                        self.assertEqual(writer.finish().rows, 800)
                        self.expect_each_row_once(direct, 800)

    def test_a_writer_goes_on_where_the_last_one_ended(self):
        with local_server() as server, server.connect() as client:
            store = client.create_store("s", key_dim=DIM, value_dim=1)
            with self.assertRaises(sl.NotFoundError):
                store.writer_state("w")
            with store.writer("w") as first:
                self.assertEqual(first.resumed_from, sl.WriterState("w"))
                first.append(keys_of(0, 7), values_of(0, 7))
                first.append(keys_of(7, 3), values_of(7, 3))
            self.assertEqual(store.writer_state("w"), sl.WriterState("w", 10, 9))
            with store.writer("w") as second:
                self.assertEqual(second.resumed_from.last_sequence, 10)
                second.append(keys_of(10, 5), values_of(10, 5))
            # A program that begins with its first row again, and cuts its rows in another way.
            with store.writer("w", from_start=True, batch_rows=4) as third:
                for begin in (0, 6, 12):
                    third.append(keys_of(begin, 6), values_of(begin, 6))
            self.assertEqual((third.progress.rows, third.progress.requests), (3, 1))
            self.expect_each_row_once(client, 18)
            with self.assertRaises(sl.NotFoundError), client.store("none").writer("w"):
                self.fail("it was entered")
            for name in ("", "x" * 129):
                with self.assertRaises(ValueError):
                    store.writer(name)

    ANOTHER = "the writer w has sent 10 rows before, but not of this input: "

    def refuse_input(self, store, text, *batches, **options):
        """Another input, in these batches of keys and values, is refused, and nothing of it is written."""
        rows = store.info().row_count
        with self.assertRaises(sl.InvalidArgumentError) as caught:
            with store.writer("w", from_start=True, **options) as writer:
                for batch in batches:
                    writer.append(**batch)
        self.assertIn(text, str(caught.exception))
        self.assertEqual(caught.exception.metadata, {"field": "writer"})
        self.assertEqual(store.info().row_count, rows)

    def take_input(self, store, *batches, **options):
        with store.writer("w", from_start=True, **options) as writer:
            for batch in batches:
                writer.append(**batch)
        return writer.progress.rows

    @staticmethod
    def batch(begin, count, **fields):
        return dict(keys=keys_of(begin, count), values=values_of(begin, count), **fields)

    def test_another_input_under_the_name_of_a_writer_is_refused(self):
        is_not = self.ANOTHER + (
            "its row 9 (from 0) is not the last row that w appended, at position 10 of s; give this input a writer "
            "of its own, or to append all but its first 10 rows, hand over only the others without from_start"
        )
        with local_server() as server, server.connect() as client:
            store = client.create_store("s", key_dim=DIM, value_dim=1)
            store.append(keys_of(0, 1), values_of(0, 1))
            rows = dict(keys=keys_of(0, 10).astype(np.float64) + 0.1, values=values_of(0, 10) / 3.0)
            self.assertEqual(self.take_input(store, rows), 10)
            self.assertEqual(self.take_input(store, rows), 0)
            self.assertEqual(self.take_input(store), 0)
            self.refuse_input(store, is_not, self.batch(50, 10))
            self.refuse_input(store, is_not, self.batch(50, 8), self.batch(58, 3000))
            self.refuse_input(store, is_not, dict(keys=rows["keys"], values=values_of(1, 10)))
            self.refuse_input(store, is_not, dict(keys=np.ones((10, 3)), values=rows["values"]))
            self.refuse_input(
                store, "w has sent 10 rows before, but the input has 9; ", self.batch(50, 9)
            )
            with store.writer("w", from_start=True) as writer:
                with self.assertRaises(sl.InvalidArgumentError):
                    writer.append(**self.batch(50, 3))
                    writer.finish()
                with self.assertRaises(sl.InvalidArgumentError):
                    writer.append(**self.batch(50, 3000))
                with self.assertRaisesRegex(sl.Error, "CANCELLED"):
                    writer.append(**rows)
                with self.assertRaisesRegex(sl.Error, "CANCELLED"):
                    writer.finish()
                writer.finish = lambda **_: None
            with store.writer("w") as writer:  # Without from_start, these are the rows that follow.
                writer.append(**self.batch(50, 10))
            self.assertEqual(store.info().row_count, 21)

    def test_an_input_with_ids_has_the_last_row_anywhere(self):
        with local_server() as server, server.connect() as client:
            store = client.create_store("s", key_dim=DIM, value_dim=1)
            store.append(**self.batch(4, 6), ids=range(4, 10))
            first = self.batch(0, 10, ids=range(10))
            self.assertEqual(self.take_input(store, first, on_conflict="skip"), 4)
            self.assertEqual(self.take_input(store, first, on_conflict="skip"), 0)
            none = self.ANOTHER + "none of its first 10 rows is the last row that w appended"
            self.refuse_input(store, none, self.batch(50, 3000, ids=range(50, 3050)))
            self.refuse_input(store, none, self.batch(50, 10))

    def test_an_input_is_taken_where_the_last_row_tells_nothing(self):
        projection = sl.Projection(*(np.eye(n, DIM) for n in (DIM, DIM, 1)))
        with local_server() as server, server.connect() as client:
            rounded, deleted = (
                client.create_store(name, key_dim=DIM, value_dim=1, storage=storage, projection=p)
                for name, storage, p in (("r", "int8", None), ("d", None, projection))
            )
            for store in (rounded, deleted):
                self.take_input(store, self.batch(0, 1), self.batch(1, 9))
            inputs = dict(inputs=keys_of(0, 10))
            self.assertEqual(self.take_input(deleted, inputs), 0)
            self.refuse_input(deleted, self.ANOTHER, self.batch(50, 10))
            deleted.delete_rows(sl.rows(begin=9))
            for store in (rounded, deleted):
                self.assertEqual(self.take_input(store, self.batch(50, 10)), 0)

    def test_an_asyncio_writer_refuses_another_input(self):
        async def write(address):
            async with softlookup.aio.connect(address) as client:
                store = await client.create_store("s", key_dim=DIM, value_dim=1)
                for count in (10, 15):
                    async with store.writer("w", from_start=True) as writer:
                        await writer.append(**self.batch(0, count))
                for batch, text in (
                    (self.batch(50, 15), "its row 14 (from 0) is not"),
                    (self.batch(50, 9), "but the input has 9"),
                ):
                    with self.assertRaises(sl.InvalidArgumentError) as caught:
                        async with store.writer("w", from_start=True) as writer:
                            await writer.append(**batch)
                    self.assertIn(text, str(caught.exception))
                await store.delete_rows(sl.rows(begin=14))
                async with store.writer("w", from_start=True) as writer:
                    await writer.append(**self.batch(50, 15))
                self.assertEqual((await store.info()).row_count, 15)

        with local_server() as server:
            asyncio.run(write(server.address))

    def test_a_refused_request_ends_the_writer_and_an_exception_cancels_it(self):
        with local_server() as server, server.connect() as client:
            store = client.create_store("s", key_dim=DIM, value_dim=1)
            with self.assertRaises(sl.InvalidArgumentError) as caught:
                with store.writer("w") as writer:
                    writer.append(keys_of(0, 5), values_of(0, 5))
                    writer.append(np.zeros((1, 3)), np.zeros((1, 1)))
            self.assertEqual(
                (caught.exception.reason, caught.exception.acknowledged_rows), ("SHAPE_MISMATCH", 5)
            )
            with self.assertRaisesRegex(KeyError, "of the caller"):
                with store.writer("v") as writer:
                    raise KeyError("of the caller")
            with self.assertRaises(ValueError):
                writer.__enter__()
            with self.assertRaisesRegex(ValueError, "inside `with`"):
                store.writer("u").append(keys_of(0, 1), values_of(0, 1))
            with store.writer("u") as writer:
                writer.finish()
                with self.assertRaisesRegex(sl.Error, "finished"):
                    writer.append(keys_of(0, 1), values_of(0, 1))

    def test_an_error_of_on_progress_ends_the_writer_even_one_that_may_pass(self):
        for error in (sl.UnavailableError("UNAVAILABLE", "another server"), SystemExit("exit")):

            def fail(progress):
                raise error

            with local_server() as server, server.connect() as client:
                store = client.create_store("s", key_dim=DIM, value_dim=1)
                with self.assertRaisesRegex(sl.Error, "INTERNAL: the writer failed") as caught:
                    with store.writer("w", on_progress=fail) as writer:
                        writer.append(keys_of(0, 5), values_of(0, 5))
                self.assertIs(caught.exception.__cause__, error)
                self.assertEqual(writer.progress.reconnections, 0)

    def test_what_interrupts_an_append_or_the_end_ends_the_writer(self):
        with local_server() as server, server.connect() as client:
            store = client.create_store("s", key_dim=DIM, value_dim=1)
            with self.assertRaisesRegex(sl.Error, "CANCELLED"):
                with store.writer("w", batch_rows=5) as writer:
                    push, cuts = writer._machine.push, []

                    def interrupted(batch, cut):
                        if cuts:
                            raise KeyboardInterrupt
                        cuts.append(cut)
                        push(batch, cut)

                    writer._machine.push = interrupted
                    with self.assertRaises(KeyboardInterrupt):
                        writer.append(keys_of(0, 10), values_of(0, 10))
                    # What follows would be in the place of the rows that were left out.
                    writer._machine.push = push
                    with self.assertRaisesRegex(sl.Error, "CANCELLED"):
                        writer.append(keys_of(10, 5), values_of(10, 5))
            with self.assertRaises(KeyboardInterrupt), store.writer("v") as writer:

                def interrupt(**options):
                    raise KeyboardInterrupt

                writer.finish = interrupt
            writer._thread.join()

    def test_an_outage_that_lasts_too_long_ends_the_writer(self):
        with local_server() as server, server.connect() as direct:
            direct.create_store("s", key_dim=DIM, value_dim=1)
            with CuttingProxy(server.address, SEED, 0, 1, 1) as proxy, sl.connect(
                proxy.address, retry=QUICK, deadline=10
            ) as client:
                with self.assertRaises(ConnectionError) as caught:
                    with client.store("s").writer("w", outage_max=0.5) as writer:
                        writer.append(keys_of(0, 5), values_of(0, 5))
                        proxy.close()
                        for begin in range(5, 500):
                            writer.append(keys_of(begin, 1), values_of(begin, 1))
                self.assertGreater(writer.progress.reconnections, 0)
                self.assertEqual(caught.exception.acknowledged_rows, writer.progress.rows)

    @contextlib.contextmanager
    def holding_server(self):
        """A server that acknowledges the first request of each stream, and the others once a gate is open: its address and
        the gate."""
        gate = threading.Event()

        def acknowledge(requests):
            for i, data in enumerate(requests):
                request = row_pb2.AppendRequest.FromString(data)
                if i > 0:
                    gate.wait(60)
                answer = row_pb2.AppendResponse(
                    sequence=request.sequence, appended_count=request.keys.rows
                )
                yield answer.SerializeToString()

        def answer(method, request, metadata):
            return acknowledge(request) if method == "StreamAppend" else b""  # Of a new writer.

        with scripted_server(answer) as address:
            try:
                yield address, gate
            finally:
                gate.set()

    def expect_late(self, error):
        self.assertEqual((error.code, error.acknowledged_rows), ("DEADLINE_EXCEEDED", 5))
        self.assertIn("not done after 0.2 s; unacknowledged requests: 1", str(error))

    def test_finishing_waits_no_longer_than_its_timeout(self):
        acknowledged = threading.Event()

        def watch(progress):
            acknowledged.set()

        with self.holding_server() as (address, gate), sl.connect(address) as client:
            store = client.store("s")
            with store.writer("w", on_progress=watch) as writer:
                writer.append(keys_of(0, 5), values_of(0, 5))
                writer.append(keys_of(5, 5), values_of(5, 5))
                self.assertTrue(acknowledged.wait(60))
                for _ in range(2):
                    with self.assertRaises(sl.DeadlineError) as caught:
                        writer.finish(timeout=0.2)
                    self.expect_late(caught.exception)
                with self.assertRaisesRegex(sl.Error, "finished"):
                    writer.append(keys_of(10, 5), values_of(10, 5))
                gate.set()
                self.assertEqual(writer.finish(timeout=60).rows, 10)
            gate.clear()
            acknowledged.clear()
            with self.assertRaises(sl.DeadlineError) as caught:
                with store.writer("w", on_progress=watch, finish_timeout=0.2) as writer:
                    writer.append(keys_of(0, 5), values_of(0, 5))
                    writer.append(keys_of(5, 5), values_of(5, 5))
                    self.assertTrue(acknowledged.wait(60))
            self.expect_late(caught.exception)
            writer._thread.join()  # It is cancelled.
            for seconds in (0, -1, np.nan):
                with self.assertRaisesRegex(sl.InvalidArgumentError, "^[^:]*: timeout is"):
                    writer.finish(timeout=seconds)
                with self.assertRaisesRegex(sl.InvalidArgumentError, "finish_timeout is"):
                    store.writer("w", finish_timeout=seconds)

    def test_finishing_an_asyncio_writer_waits_no_longer_than_its_timeout(self):
        async def write(address, gate):
            acknowledged = asyncio.Event()

            def watch(progress):
                acknowledged.set()

            async with softlookup.aio.connect(address) as client:
                store = client.store("s")
                async with store.writer("w", on_progress=watch) as writer:
                    await writer.append(keys_of(0, 5), values_of(0, 5))
                    await writer.append(keys_of(5, 5), values_of(5, 5))
                    await acknowledged.wait()
                    for _ in range(2):
                        with self.assertRaises(sl.DeadlineError) as caught:
                            await writer.finish(timeout=0.2)
                        self.expect_late(caught.exception)
                    with self.assertRaisesRegex(sl.Error, "finished"):
                        await writer.append(keys_of(10, 5), values_of(10, 5))
                    gate.set()
                    self.assertEqual((await writer.finish(timeout=60)).rows, 10)
                gate.clear()
                acknowledged.clear()
                with self.assertRaises(sl.DeadlineError) as caught:
                    async with store.writer("w", on_progress=watch, finish_timeout=0.2) as writer:
                        await writer.append(keys_of(0, 5), values_of(0, 5))
                        await writer.append(keys_of(5, 5), values_of(5, 5))
                        await acknowledged.wait()
                self.expect_late(caught.exception)
                await writer._task  # It is cancelled.
                with self.assertRaisesRegex(sl.InvalidArgumentError, "^[^:]*: timeout is"):
                    await writer.finish(timeout=0)

        with self.holding_server() as (address, gate):
            asyncio.run(write(address, gate))

    def test_another_sender_of_the_name_is_found(self):
        with local_server() as server, server.connect() as client:
            store = client.create_store("s", key_dim=DIM, value_dim=1)
            with self.assertRaisesRegex(sl.Error, "another sender"):
                with store.writer("w") as first, store.writer("w") as second:
                    second.append(keys_of(0, 5), values_of(0, 5))
                    second.finish()
                    first.append(keys_of(0, 5), values_of(0, 5))
                    first.finish()
            self.assertEqual(store.info().row_count, 5)


if __name__ == "__main__":
    print(f"SOFTLOOKUP_TEST_SEED={SEED}")
    main()
