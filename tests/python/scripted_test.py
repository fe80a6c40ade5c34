#!/usr/bin/python3
"""Both clients against a server whose answers the test writes, wrong ones too: scripted_test.py SERVER ROOT TOOL"""
import asyncio
import tempfile
import threading
import unittest

import numpy as np

import softlookup as sl
import softlookup.aio
from scripted_server import Failure, scripted_server
from softlookup._proto.softlookup.admin.v1 import admin_pb2
from softlookup._proto.softlookup.v1 import lookup_pb2, memory_pb2, row_pb2, store_pb2
from subject import main

PUSHBACK = "grpc-retry-pushback-ms"


class Script:
    """Answers from a list, one a call, the last one again and again; counts the calls of each method."""

    def __init__(self, *answers):
        self._answers = list(answers)
        self._lock = threading.Lock()
        self.calls = []

    def __call__(self, method, request, metadata):
        with self._lock:
            self.calls.append(method)
            answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer(request) if callable(answer) else answer


def good_lookup():
    message = lookup_pb2.LookupResponse(revision=1)
    message.values.rows = message.values.cols = 1
    message.values.data = b"\0\0\0\0"
    message.stats.add(counted_rows=1)
    return message.SerializeToString()


def unary_calls(client):
    """(name of a call, whether it may be repeated, the call) of either client."""
    store = client.store("s")
    where, array = sl.rows(last=1), [[1.0]]
    return [
        ("lookup", True, lambda: store.lookup(array)),
        ("info", True, store.info),
        ("attend", True, lambda: client.attend(array, array, array)),
        ("stores", True, client.stores),
        ("memory", True, store.memory),
        ("writer_state", True, lambda: store.writer_state("w")),
        ("health", True, client.health),
        ("backups", True, client.backups),
        ("append", False, lambda: store.append(array, array)),
        ("delete", False, store.delete),
        ("delete_rows", False, lambda: store.delete_rows(where)),
        ("compact", False, store.compact),
        ("update", False, lambda: store.update(temperature=2.0)),
        ("rename", False, lambda: store.rename("t")),
        ("create_store", False, lambda: client.create_store("t", key_dim=1, value_dim=1)),
        ("create_backup", False, client.create_backup),
        ("restore_store", False, lambda: client.restore_store("b", "s")),
    ]


class BothClientsTest(unittest.TestCase):
    """each(script, test) runs test(client, call) with the sync client, then with the other one. `call` makes a call of
    either and returns what comes of it, lists of what streams have."""

    @classmethod
    def setUpClass(cls):
        cls.loop = asyncio.new_event_loop()  # One for all: gRPC keeps to the first that it sees.
        cls.addClassCleanup(cls.loop.close)

    def each(self, answers, test, **options):
        with self.subTest("sync"):
            script = Script(*answers)
            with scripted_server(script) as address, sl.connect(address, **options) as client:
                test(client, lambda make: self.finish(make()), script)
        with self.subTest("asyncio"):
            script = Script(*answers)
            with scripted_server(script) as address:
                client = softlookup.aio.connect(address, **options)

                async def result(make):
                    made = make()
                    return (
                        [each async for each in made] if hasattr(made, "__aiter__") else await made
                    )

                test(client, lambda make: self.loop.run_until_complete(result(make)), script)
                self.loop.run_until_complete(client.close())

    @staticmethod
    def finish(made):
        return list(made) if hasattr(made, "__next__") else made

    def test_what_is_safe_to_repeat_is_repeated_and_nothing_else(self):
        def test(client, call, script):
            for name, safe, make in unary_calls(client):
                with self.subTest(name):
                    script.calls.clear()
                    with self.assertRaises(sl.UnavailableError):
                        call(make)
                    self.assertEqual(len(script.calls), 3 if safe else 1, script.calls)

        quick = sl.Retry(attempts_max=3, backoff_min=0.001, backoff_max=0.002)
        self.each([Failure("UNAVAILABLE")], test, retry=quick)

    def test_a_call_succeeds_after_failures_that_pass(self):
        def test(client, call, script):
            self.assertEqual(call(lambda: client.store("s").lookup([[1.0]])).revision, 1)
            self.assertEqual(len(script.calls), 4)

        self.each(
            [
                Failure("UNAVAILABLE"),
                Failure("RESOURCE_EXHAUSTED", trailers=((PUSHBACK, "1"),)),
                Failure("CANCELLED"),
                good_lookup(),
            ],
            test,
        )

    def test_pushback_and_the_deadline_end_the_attempts(self):
        def test(client, call, script):
            with self.assertRaises(sl.Error) as caught:
                call(lambda: client.store("s").lookup([[1.0]]))
            self.assertIsNotNone(caught.exception.retry_after)
            self.assertEqual(len(script.calls), 1)

        for pushback in ("-1", "60000"):
            self.each([Failure("UNAVAILABLE", trailers=((PUSHBACK, pushback),))], test, deadline=30)

    def test_an_answer_that_is_no_message_is_an_error_of_its_own(self):
        def test(client, call, script):
            for name, _, make in unary_calls(client):
                if name in ("delete", "health"):
                    continue  # They read nothing, or any bytes.
                with self.subTest(name), self.assertRaises(sl.Error) as caught:
                    call(make)
                self.assertEqual(caught.exception.code, "INTERNAL", name)

        self.each([b"\xff\xff\xff"], test)

    def test_empty_answers_do_not_crash(self):
        def test(client, call, script):
            for name, _, make in unary_calls(client):
                with self.subTest(name):
                    if name in ("lookup", "attend", "memory"):
                        with self.assertRaisesRegex(sl.Error, "INTERNAL"):
                            call(make)
                    else:
                        call(make)

        self.each([b""], test)

    def test_lists_that_do_not_end_and_times_that_are_none(self):
        page = store_pb2.ListStoresResponse(next_page_token="again").SerializeToString()
        self.each(
            [page],
            lambda client, call, script: self.assertRaisesRegex(
                sl.Error, "that same page", call, client.stores
            ),
        )
        late = store_pb2.Store(name="s")
        late.create_time.seconds = 2**62
        self.each(
            [late.SerializeToString()],
            lambda client, call, script: self.assertRaisesRegex(
                sl.Error, "a time that is none", call, client.store("s").info
            ),
        )
        old = admin_pb2.ListBackupsResponse()
        old.backups.add().create_time.seconds = -(2**62)
        self.each(
            [old.SerializeToString()],
            lambda client, call, script: self.assertRaisesRegex(
                sl.Error, "a time that is none", call, client.backups
            ),
        )

    def test_hostile_names_labels_and_messages_are_data(self):
        hostile = "\x1b]0;x\x07\u202e\n<script>"
        info = store_pb2.Store(name=hostile, damage=hostile, labels={hostile: hostile}, score=77)

        def test(client, call, script):
            got = call(client.store("s").info)
            self.assertEqual(
                (got.name, got.damage, dict(got.labels), got.score),
                (hostile, hostile, {hostile: hostile}, "77"),
            )
            with self.assertRaises(sl.Error) as caught:
                call(client.store("s").info)
            self.assertEqual(caught.exception.message, "no \x1b[31m\u202e")
            self.assertTrue(str(caught.exception).isprintable())

        # gRPC percent-encodes a message, so it arrives as it was.
        self.each([info.SerializeToString(), Failure("NOT_FOUND", "no \x1b[31m\u202e")], test)

    def pages(self, *pages):
        return [lambda request: iter([page.SerializeToString() for page in pages])]

    def page(self, *rows, kind=1):
        page = row_pb2.ReadRowsResponse(revision=5)
        for position, key in rows:
            row = page.rows.add(position=position)
            row.key.rows, row.key.cols, row.key.data, row.key.element_type = (
                1,
                len(key),
                np.float32(key).tobytes(),
                kind,
            )
            row.value.CopyFrom(row.key)
        return page

    def test_rows_that_do_not_fit_each_other_are_refused(self):
        short = self.page((0, [1, 2]))
        short.rows[0].value.data = b"1234567"
        two = self.page((0, [1, 2]))
        two.rows[0].key.rows = 2
        for page in (self.page((0, [1, 2]), (1, [1])), short, two, self.page((0, [1]), kind=2)):
            self.each(
                self.pages(page),
                lambda client, call, script: self.assertRaisesRegex(
                    sl.Error, "one dimension", call, client.store("s").rows
                ),
            )
        for pages, text in (
            ((), "no page of rows"),
            ((self.page((0, [1, 2])), self.page((1, [1]))), "one dimension"),
        ):
            self.each(
                self.pages(*pages),
                lambda client, call, script: self.assertRaisesRegex(
                    sl.Error, text, call, client.store("s").read
                ),
            )
        good = self.pages(self.page((0, [1, 2])), self.page(), self.page((5, [3, 4])))

        def test(client, call, script):
            rows = call(client.store("s").read)
            self.assertEqual(
                (rows.positions.tolist(), rows.keys.tolist()), ([0, 5], [[1, 2], [3, 4]])
            )

        self.each(good, test)

    def test_memories_that_are_not_one_row_are_refused(self):
        none, two = memory_pb2.Memory(name="average"), memory_pb2.Memory(name="average")
        for matrix in (two.key, two.value):
            matrix.rows, matrix.cols, matrix.data = 2, 1, b"\0" * 8
        for memory in (none, two):
            self.each(
                self.pages(memory),
                lambda client, call, script: self.assertRaisesRegex(
                    sl.Error, "not one row", call, client.store("s").watch
                ),
            )

    def test_a_wrong_deadline_is_found_before_anything_is_sent(self):
        def test(client, call, script):
            store = client.store("s")
            for deadline in (0, -1, 1e10, np.nan, np.inf):
                for make in (
                    lambda: store.info(deadline=deadline),
                    lambda: store.read(deadline=deadline),
                    lambda: store.append([[1]], [[1]], deadline=deadline),
                    lambda: self.large(client, deadline=deadline),
                ):
                    with self.assertRaisesRegex(sl.InvalidArgumentError, "deadline is"):
                        call(make)
            with self.assertRaisesRegex(sl.InvalidArgumentError, "deadline is"):
                sl.connect("a:1", deadline=1e10)
            self.assertEqual(script.calls, [])

        self.each([b""], test)

    def large(self, client, **options):
        return client.store("s").append(
            np.zeros((40, 1)), np.zeros((40, 1)), batch_rows=10, **options
        )

    def acknowledge(self, *responses, failure=None):
        """A StreamAppend that answers so, whatever it reads, and then ends."""

        def answer(requests):
            for request, response in zip(requests, responses):
                yield response if isinstance(response, bytes) else response.SerializeToString()
            if failure is not None:
                raise failure

        return [answer]

    def test_a_large_append_trusts_no_acknowledgement(self):
        ten = row_pb2.AppendResponse(appended_count=10)
        for responses, text in (
            ([ten, ten], "before it answered every request"),
            ([], "before it answered every request"),
            ([row_pb2.AppendResponse(appended_count=11)], "another request"),
            ([row_pb2.AppendResponse(appended_count=10, duplicate=True)], "another request"),
            ([b"\xff"], "malformed"),
        ):
            self.each(
                self.acknowledge(*responses),
                lambda client, call, script: self.assertRaisesRegex(
                    sl.Error, text, call, lambda: self.large(client)
                ),
            )

        def too_many(requests):
            yield ten.SerializeToString()
            for _ in range(9):
                yield ten.SerializeToString()

        self.each(
            [too_many],
            lambda client, call, script: self.assertRaisesRegex(
                sl.Error, "INTERNAL", call, lambda: self.large(client)
            ),
        )

        def test(client, call, script):
            with self.assertRaises(sl.NotFoundError) as caught:
                call(lambda: self.large(client))
            self.assertEqual((caught.exception.acknowledged_rows, len(script.calls)), (20, 1))

        self.each(self.acknowledge(ten, ten, failure=Failure("NOT_FOUND", "gone")), test)

    def test_a_large_append_ends_if_nothing_is_acknowledged_for_its_deadline(self):
        silence = threading.Event()
        self.addCleanup(silence.set)

        def silent(requests):
            yield row_pb2.AppendResponse(appended_count=10).SerializeToString()
            silence.wait(60)

        def test(client, call, script):
            with self.assertRaises(TimeoutError) as caught:
                call(lambda: self.large(client))
            self.assertIn("StreamAppend had no message for 0.3 s", str(caught.exception))
            # 0 if this machine is so slow that the first one came late.
            self.assertIn(caught.exception.acknowledged_rows, (0, 10))

        self.each([silent], test, deadline=0.3)

    def test_a_token_goes_with_every_call(self):
        seen = []

        def answer(method, request, metadata):
            seen.append((method, metadata.get("authorization")))
            return iter([]) if method in ("ReadRows", "StreamAppend") else b""

        with tempfile.NamedTemporaryFile("w") as file, scripted_server(answer) as address:
            file.write("t0k\n")
            file.flush()
            with sl.connect(address, token_file=file.name) as client:
                client.stores()
                list(client.store("s").rows())
                with self.assertRaises(sl.Error):
                    self.large(client)
        self.assertEqual(
            seen, [(name, "Bearer t0k") for name in ("ListStores", "ReadRows", "StreamAppend")]
        )


if __name__ == "__main__":
    main()
