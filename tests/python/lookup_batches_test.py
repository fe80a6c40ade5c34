#!/usr/bin/python3
"""Lookups of more queries than one call takes: lookup_batches_test.py SERVER ROOT TOOL"""
import asyncio
import unittest

import numpy as np

import softlookup as sl
import softlookup.aio
from softlookup._core import attention, lookup_batches
from softlookup._proto.softlookup.v1 import lookup_pb2, store_pb2
from subject import local_server, main

MANY = 10_000  # Queries of three calls.


def error_of(reason, code="INVALID_ARGUMENT", **metadata):
    return sl.Error(code, "no", reason=reason, metadata=metadata)


class Server:
    """Makes the calls of a lookup. Answers a query with itself, and with a stat and a weight a head.

    Lookup i, from 0, does what `script` has for i: it raises an error, or has fields of its answer set.
    """

    def __init__(self, *, births=(), queries_max=1 << 32, heads=1, script=None):
        self.births, self.script = list(births), script or {}
        self.queries_max, self.heads = queries_max, heads
        self.calls = []  # Of a lookup the request, of GetStore None.

    def finish(self, lookup):
        calls = lookup_batches.answer_in_batches(lookup)
        try:
            call = next(calls)
            while True:
                try:
                    result = call.result(self.answer(call))
                except sl.Error as error:
                    call = calls.throw(error)
                else:
                    call = calls.send(result)
        except StopIteration as end:
            return end.value

    def answer(self, call):
        if call.name == "GetStore":
            self.calls.append(None)
            birth = self.births.pop(0) if self.births else 7
            if isinstance(birth, Exception):
                raise birth
            store = store_pb2.Store(name="s")
            store.create_time.nanos = birth
            return store.SerializeToString()
        request = lookup_pb2.LookupRequest.FromString(call.request)
        act = self.script.get(sum(each is not None for each in self.calls), {})
        self.calls.append(request)
        rows = max(request.queries.rows, request.inputs.rows)
        if isinstance(act, Exception):
            raise act
        if rows > self.queries_max:
            raise error_of("LIMIT_EXCEEDED", field="queries")
        response = lookup_pb2.LookupResponse(revision=3, row_count=9)
        response.values.CopyFrom(request.queries)
        for field, value in act.items():
            setattr(response.values if field == "cols" else response, field, value)
        if "cols" in act:
            response.values.data = b"\0" * (4 * rows * act["cols"])
        for query in range(rows):
            for head in range(self.heads):
                response.stats.add(log_sum_exp=len(self.calls), counted_rows=query)
                if request.options.weights:
                    response.weights.add(positions=[query], weights=[1.0], scores=[head])
        return response.SerializeToString()

    def lookups(self):
        return [call for call in self.calls if call is not None]

    def sizes(self):
        """Queries of each lookup; None of a GetStore."""
        return [None if call is None else call.queries.rows for call in self.calls]


def lookup_of(queries, *, options=attention.Options(), min_revision=0, linearizable=False):
    return attention.Lookup(
        "s", queries, options, None, None, None, min_revision, linearizable, False, None
    )


def numbered(rows=MANY, columns=2):
    return np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)


class LookupBatchesTest(unittest.TestCase):
    def test_what_one_call_takes_is_one_call(self):
        for rows in (0, 1, 4096):
            server = Server()
            answer = server.finish(lookup_of(numbered(rows), min_revision=5))
            self.assertEqual((server.sizes(), len(answer)), ([rows], rows))
            self.assertEqual(server.calls[0].min_revision, 5)

    def test_more_queries_go_as_several_calls_whose_answers_are_in_order(self):
        server = Server(heads=2, script={1: {"revision": 4, "row_count": 12}, 2: {"revision": 4}})
        options = attention.Options(causal=True, causal_offset=100, weights=1)
        lookup = lookup_of(numbered(), options=options, min_revision=2, linearizable=True)
        answer = server.finish(lookup)
        self.assertEqual(server.sizes(), [None, 4096, 4096, 1808, None])
        self.assertEqual(
            [call.options.causal_offset for call in server.lookups()], [100, 4196, 8292]
        )
        self.assertEqual([call.min_revision for call in server.lookups()], [2, 0, 0])
        self.assertTrue(all(call.options.causal for call in server.lookups()))
        self.assertTrue(all(call.linearizable for call in server.lookups()))
        np.testing.assert_array_equal(answer.values, numbered())
        np.testing.assert_array_equal(
            answer.counted_rows[:, 1], np.concatenate([np.arange(n) for n in (4096, 4096, 1808)])
        )
        np.testing.assert_array_equal(
            answer.log_sum_exp[:, 0], np.repeat([2, 3, 4], [4096, 4096, 1808])
        )
        self.assertEqual((answer.weights.positions.shape), (MANY, 2, 1))
        self.assertEqual(answer.weights[4097, 1].scores.tolist(), [1])
        self.assertEqual((answer.revision, answer.row_count, answer.num_heads), (3, 9, 2))
        with self.assertRaises(ValueError):
            answer.values[0] = 0
        self.assertEqual(
            server.finish(lookup_of(numbered())).merge(answer).counted_rows.shape, (MANY, 2)
        )

    def test_a_causal_offset_stays_within_its_64_bits(self):
        server = Server()
        options = attention.Options(causal=True, causal_offset=2**64 - 5)
        server.finish(lookup_of(numbered(), options=options))
        self.assertEqual(server.lookups()[2].options.causal_offset, 2**64 - 1)

    def test_wide_queries_go_as_calls_of_fewer(self):
        server = Server()
        wide = np.zeros((9, 1 << 19))  # 4 MiB each.
        self.assertEqual(len(server.finish(lookup_of(wide))), 9)
        self.assertEqual(server.sizes(), [None, 8, 1, None])

    def test_a_call_that_is_too_large_is_sent_again_half_as_large(self):
        server = Server(queries_max=7)
        answer = server.finish(lookup_of(numbered(20)))
        self.assertEqual(server.sizes(), [20, None, 10, 5, 5, 5, 5, None])
        np.testing.assert_array_equal(answer.values, numbered(20))
        for reason in ("ANSWER_TOO_LARGE", "MESSAGE_TOO_LARGE"):
            server = Server(script={0: error_of(reason, "RESOURCE_EXHAUSTED")})
            server.finish(lookup_of(numbered(5)))
            self.assertEqual(server.sizes(), [5, None, 2, 2, 1, None])
        # A later answer alone can be too large, too. What was answered is not asked again.
        server = Server(script={1: error_of("ANSWER_TOO_LARGE", "RESOURCE_EXHAUSTED")})
        answer = server.finish(lookup_of(numbered(8000)))
        self.assertEqual(server.sizes(), [None, 4096, 3904, 1952, 1952, None])
        np.testing.assert_array_equal(answer.values, numbered(8000))

    def test_one_query_that_is_too_large_and_other_errors_are_the_callers(self):
        with self.assertRaisesRegex(sl.Error, "LIMIT_EXCEEDED"):
            server = Server(queries_max=0)
            server.finish(lookup_of(numbered(4)))
        self.assertEqual(server.sizes(), [4, None, 2, 1])
        for field in ("options.top_weights", "filter.ids"):
            server = Server(script={0: error_of("LIMIT_EXCEEDED", field=field)})
            with self.assertRaisesRegex(sl.Error, "LIMIT_EXCEEDED"):
                server.finish(lookup_of(numbered(4)))
            self.assertEqual(server.sizes(), [4])
        for i in (0, 1):
            server = Server(script={i: error_of("QUEUE_FULL", "RESOURCE_EXHAUSTED")})
            with self.assertRaisesRegex(sl.Error, "QUEUE_FULL"):
                server.finish(lookup_of(numbered()))
            self.assertEqual(len(server.lookups()), i + 1)

    def test_an_error_counts_the_query_that_it_names_from_the_first(self):
        for field in ("queries", "inputs"):
            wrong = error_of("NON_FINITE_VALUE", field=field, row="3")
            with self.assertRaises(sl.Error) as caught:
                Server(script={1: wrong}).finish(lookup_of(numbered()))
            self.assertEqual(caught.exception.metadata["row"], "4099")
            self.assertIn("that is query 4099 of the lookup", str(caught.exception))
        for wrong in (
            error_of("INVALID_OPTION", field="filter", row="3"),
            error_of("NON_FINITE_VALUE", field="queries", row="x"),
        ):
            row = wrong.metadata["row"]
            with self.assertRaises(sl.Error) as caught:
                Server(script={1: wrong}).finish(lookup_of(numbered()))
            error = caught.exception
            self.assertEqual((error.metadata["row"], error.message), (row, "no"))

    def test_another_store_of_the_name_is_found(self):
        gone = error_of("STORE_NOT_FOUND", "NOT_FOUND")
        for births, script in (
            ([7, 8], {}),
            ([7, 8], {1: error_of("SHAPE_MISMATCH")}),
            ([7, 8], {1: gone}),
            ([7, 8], {2: {"revision": 1}}),
        ):
            with self.subTest(births=births, script=script):
                with self.assertRaisesRegex(sl.Error, "ABORTED: another store has taken the name"):
                    Server(births=births, script=script).finish(lookup_of(numbered()))
        # Which store it is now may not be known.
        for births, script, reason in (
            ([gone], {}, "STORE_NOT_FOUND"),
            ([7, gone], {}, "STORE_NOT_FOUND"),
            ([7, gone], {1: error_of("SHAPE_MISMATCH")}, "SHAPE_MISMATCH"),
            ([7, 7], {1: error_of("SHAPE_MISMATCH")}, "SHAPE_MISMATCH"),
        ):
            with self.subTest(births=births, script=script), self.assertRaises(sl.Error) as caught:
                Server(births=births, script=script).finish(lookup_of(numbered()))
            self.assertEqual(caught.exception.reason, reason)

    def test_no_answer_is_of_an_earlier_revision_than_one_before_it(self):
        for script, before in (({1: {"revision": 2}}, 3), ({1: {"revision": 9}}, 9)):
            with self.assertRaisesRegex(sl.Error, f"ABORTED: .* answers at revision {before}"):
                Server(script=script).finish(lookup_of(numbered()))

    def test_answers_that_do_not_fit_each_other_are_refused(self):
        with self.assertRaisesRegex(sl.Error, "INTERNAL: .* do not fit each other"):
            Server(script={1: {"cols": 3}}).finish(lookup_of(numbered()))

    def test_both_clients_get_all_answers_of_a_server_with_lower_limits(self):
        keys, values, queries = numbered(6), numbered(6, 1), numbered(20) / 8
        expected = sl.attend(queries, keys, values, causal=True, causal_offset=1)

        def check(answer):
            np.testing.assert_allclose(answer.values, expected.values, atol=1e-3)
            np.testing.assert_array_equal(answer.counted_rows, expected.counted_rows)
            self.assertEqual(answer.weights.counts.tolist(), [min(2, n) for n in range(2, 22)])

        async def ask(address):
            async with softlookup.aio.connect(address) as client:
                return await client.store("s").lookup(
                    queries, causal=True, causal_offset=1, weights=2
                )

        with local_server(flags=["--max-queries=7"]) as server, server.connect() as client:
            store = client.create_store("s", key_dim=2, value_dim=1)
            store.append(keys, values)
            check(store.lookup(queries, causal=True, causal_offset=1, weights=2))
            check(asyncio.run(ask(server.address)))
            # So may a client: the answer to 7 of these would have 28,000 bytes.
            client.create_store("wide", key_dim=2, value_dim=1000).append(keys, np.zeros((6, 1000)))
            with server.connect(message_bytes_max=20_000) as small:
                self.assertEqual(small.store("wide").lookup(queries[:7]).values.shape, (7, 1000))
            with self.assertRaises(sl.InvalidArgumentError) as caught:
                store.lookup(queries[:7], weights=10_000)
            self.assertEqual(caught.exception.metadata["field"], "options.top_weights")
            with self.assertRaisesRegex(KeyError, "STORE_NOT_FOUND"):
                client.store("t").lookup(queries)

    def test_both_clients_ask_more_queries_than_one_call_may_have(self):
        async def ask(address):
            async with softlookup.aio.connect(address) as client:
                return await client.store("s").lookup(numbered())

        with local_server() as server, server.connect() as client:
            store = client.create_store("s", key_dim=2, value_dim=2)
            store.append(numbered(5), numbered(5))
            parts = [store.lookup(numbered()[at : at + 2500]) for at in range(0, MANY, 2500)]
            for answer in (store.lookup(numbered()), asyncio.run(ask(server.address))):
                np.testing.assert_allclose(
                    answer.values, np.concatenate([part.values for part in parts]), atol=1e-4
                )
                self.assertEqual((answer.revision, answer.row_count), (2, 5))


if __name__ == "__main__":
    main()
