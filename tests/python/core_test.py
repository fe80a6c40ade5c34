#!/usr/bin/python3
"""What both Python clients share, without sockets: core_test.py SERVER ROOT TOOL"""
import ast
import inspect
import json
import math
import pickle
import re
import struct
import unittest

import numpy as np

import softlookup as sl
import softlookup.aio
from softlookup._core import answer, appends, arrays, attention, details, resend, retry, settings, wire, writing
from softlookup._core.results import WriterState
from softlookup._proto.softlookup.v1 import attention_pb2, lookup_pb2, matrix_pb2, row_pb2
from subject import ROOT, main


def cases(name):
    return json.loads((ROOT / "tests/conformance" / name).read_text())


class WireTest(unittest.TestCase):
    def test_a_matrix_is_what_protobuf_makes_of_it(self):
        for dtype, kind in (("<f4", 0), ("<f8", 2)):
            array = np.arange(12, dtype=dtype).reshape(3, 4)
            data = wire.join(lookup_pb2.LookupRequest(store="s").SerializeToString(), [(2, array)])
            expected = lookup_pb2.LookupRequest(store="s", queries=matrix_pb2.Matrix(
                rows=3, cols=4, element_type=kind, data=array.tobytes()))
            self.assertEqual(lookup_pb2.LookupRequest.FromString(data), expected)
            back = wire.decode_matrix(memoryview(expected.queries.SerializeToString()))
            self.assertTrue((back == array).all() and back.dtype == dtype and not back.flags.writeable)

    def test_an_array_is_viewed_and_not_copied(self):
        data = matrix_pb2.Matrix(rows=1, cols=2, data=b"\0" * 8).SerializeToString()
        self.assertIsNotNone(wire.decode_matrix(memoryview(data)).base)
        contiguous = np.zeros((4, 4), np.float32)
        self.assertTrue(np.shares_memory(arrays.contiguous(arrays.matrix("x", contiguous)), contiguous))
        self.assertTrue(np.shares_memory(arrays.matrix("x", contiguous.T), contiguous))

    def test_numbers_are_read_as_well(self):
        data = matrix_pb2.Matrix(rows=1, cols=3, values=[1, 2, 3]).SerializeToString()
        self.assertEqual(wire.decode_matrix(memoryview(data)).tolist(), [[1, 2, 3]])

    def test_malformed_bytes_are_refused(self):
        for data in (b"\x22", b"\x22\x7f", b"\x08" + b"\xff" * 11, b"\x0b", b"\x22\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
                     matrix_pb2.Matrix(rows=2, cols=2, data=b"\0" * 12).SerializeToString(),
                     matrix_pb2.Matrix(rows=2**32 - 1, cols=2**32 - 1).SerializeToString(),
                     matrix_pb2.Matrix(rows=1, cols=1, element_type=4, data=b"\0").SerializeToString(),
                     b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x00"):
            with self.subTest(data), self.assertRaises(wire.MalformedError):
                wire.decode_matrix(memoryview(data))

    def test_random_bytes_are_malformed_or_fields(self):
        random = np.random.default_rng(1)
        for _ in range(2000):
            data = random.bytes(random.integers(0, 40))
            try:
                for _, value in wire.fields(memoryview(data)):
                    self.assertTrue(isinstance(value, int) or len(value) <= len(data))
            except wire.MalformedError:
                pass


class ArraysTest(unittest.TestCase):
    def test_errors_name_the_argument_and_the_row(self):
        wrong = np.zeros((70000, 3), np.float32)
        for bad in (np.nan, np.inf, -np.inf):
            wrong[69999, 2] = bad
            with self.assertRaisesRegex(ValueError, "keys: row 69999, column 2") as caught:
                arrays.check_finite("keys", wrong)
            self.assertEqual(caught.exception.metadata, {"field": "keys", "row": "69999"})
        for value, text in (([[1e39]], "row 0, column 0"), (["x"], "elements of type"), (3.0, "shape"),
                            ([[1j]], "elements of type"), (np.zeros((1, 1, 1)), "shape")):
            with self.assertRaisesRegex(sl.InvalidArgumentError, text):
                arrays.check_finite("keys", arrays.matrix("keys", value))

    def test_large_numbers_whose_sum_overflows_are_finite(self):
        arrays.check_finite("keys", np.full((2, 1000), 3e38, np.float32))
        arrays.check_finite("keys", np.full((2, 1000), 3e38))

    def test_other_types_and_layouts_become_float32_rows(self):
        for value in ([[1, 2]], np.array([[1, 2]], ">f4"), np.array([[1, 2]], np.float16), np.array([[True, True]])):
            array = arrays.contiguous(arrays.matrix("x", value))
            self.assertEqual((array.dtype.str, array.shape), ("<f4", (1, 2)))
        self.assertEqual(arrays.contiguous(arrays.matrix("x", np.zeros((2, 3)).T)).dtype.str, "<f8")


class AppendsTest(unittest.TestCase):
    def batch(self, keys, values, **fields):
        given = dict(inputs=None, ids=None, labels=None, on_conflict=None, acknowledge=None)
        return appends.Batch(keys, values, **{**given, **fields})

    def test_rows_are_cut_to_the_limits_and_each_request_is_whole(self):
        keys, values = np.arange(10.0)[:, None], np.arange(20.0).reshape(10, 2)
        batch = self.batch(keys, values, ids=range(10), labels=[str(i) for i in range(10)], batch_rows=4,
                           return_memories=["m"])
        self.assertEqual(batch.cuts(), [(0, 4), (4, 8), (8, 10)])
        rows = []
        for data, count in batch.requests("s"):
            request = row_pb2.AppendRequest.FromString(data)
            self.assertEqual((request.store, len(request.ids), request.keys.rows), ("s", count, count))
            for i in range(count):
                value = struct.unpack_from("<2d", request.values.data, 16 * i)
                rows.append((request.ids[i], list(request.row_labels[i].labels), value))
        self.assertEqual(rows, [(i, [str(i)], (2 * i, 2 * i + 1)) for i in range(10)])
        self.assertEqual(list(request.return_memories), ["m"])
        wide = self.batch(np.zeros((300, 1 << 16), np.float32), np.zeros((300, 1 << 16), np.float32))
        self.assertEqual(wide.cuts()[0], (0, 8))  # 4 MiB.

    def test_wrong_arguments_are_named(self):
        ok = np.zeros((2, 1))
        for fields, field in ((dict(ids=[1]), "ids"), (dict(ids=[1, -2]), "ids"), (dict(ids=["a", "b"]), "ids"), (dict(ids=[1.0, 2]), "ids"),
                              (dict(ids=np.array([1.0, 2])), "ids"), (dict(ids=np.array([1, -2])), "ids"),
                              (dict(labels=["a"]), "labels"), (dict(labels="ab"), "labels"),
                              (dict(labels=[1, 2]), "labels"), (dict(labels=[["a"], [3]]), "labels"),
                              (dict(on_conflict="x"), "on_conflict"), (dict(acknowledge=3), "acknowledge"),
                              (dict(batch_rows=0), "batch_rows"), (dict(inputs=ok), "keys"),
                              (dict(return_memories="m"), "return_memories")):
            with self.subTest(fields), self.assertRaises((sl.InvalidArgumentError, TypeError)) as caught:
                self.batch(ok, ok, **fields)
            if isinstance(caught.exception, sl.Error):
                self.assertEqual(caught.exception.metadata["field"], field)
        with self.assertRaisesRegex(ValueError, "keys has 2 rows, but values has 3"):
            self.batch(ok, np.zeros((3, 1)))
        with self.assertRaisesRegex(ValueError, "keys and values, or inputs"):
            self.batch(ok, None)

    def test_ids_have_64_bits(self):
        ok = np.zeros((2, 1))
        data, _ = next(self.batch(ok, ok, ids=[1, 2**64 - 1]).requests("s"))
        self.assertEqual(list(row_pb2.AppendRequest.FromString(data).ids), [1, 2**64 - 1])

    def test_an_answer_to_another_request_is_an_error(self):
        for response in (row_pb2.AppendResponse(appended_count=3), row_pb2.AppendResponse(duplicate=True),
                         row_pb2.AppendResponse(sequence=1)):
            with self.assertRaisesRegex(sl.Error, "INTERNAL"):
                appends.Tally().add(response.SerializeToString(), 2)


class AttentionTest(unittest.TestCase):
    def test_wrong_options_are_named(self):
        for fields, field in ((dict(weights="most"), "weights"), (dict(weights=0), "weights"),
                              (dict(weights=True), "weights"), (dict(weights=-1), "top_weights"),
                              (dict(score="l2"), "score"), (dict(mode="soft "), "mode"), (dict(top_k=-1), "top_k"),
                              (dict(temperature="hot"), "temperature"), (dict(causal_offset=2**64), "causal_offset")):
            with self.subTest(fields), self.assertRaises(sl.InvalidArgumentError) as caught:
                attention.Options(**fields).message()
            self.assertEqual(caught.exception.metadata["field"], field)
        with self.assertRaisesRegex(ValueError, "ids is empty"):
            attention.filter_message(sl.rows(ids=[]))
        with self.assertRaisesRegex(ValueError, "labels is one text"):
            sl.rows(labels="ab")

    def test_words_may_have_hyphens(self):
        self.assertEqual(attention.Options(score="scaled-dot").message().score, attention_pb2.SCORE_SCALED_DOT)


class ErrorsTest(unittest.TestCase):
    def test_each_code_has_its_class_and_pickles(self):
        for code, builtin in (("NOT_FOUND", KeyError), ("INVALID_ARGUMENT", ValueError), ("OUT_OF_RANGE", ValueError),
                              ("DEADLINE_EXCEEDED", TimeoutError), ("PERMISSION_DENIED", PermissionError),
                              ("UNAUTHENTICATED", PermissionError), ("UNAVAILABLE", ConnectionError),
                              ("ALREADY_EXISTS", sl.AlreadyExistsError), ("INTERNAL", sl.Error)):
            error = details.make_error(code, "what\x1b[31m happened")
            self.assertIsInstance(error, builtin)
            self.assertIsInstance(error, sl.Error)
            self.assertEqual(str(error), f"{code}: what\\x1b[31m happened")
            error.metadata["row"] = "3"
            copy = pickle.loads(pickle.dumps(error))
            self.assertEqual((type(copy), str(copy), copy.metadata), (type(error), str(error), {"row": "3"}))

    def test_every_case_of_the_conformance_file(self):
        for case in cases("errors.json")["cases"]:
            with self.subTest(case["name"]):
                found = details.read_details(bytes.fromhex(case["details"]))
                self.assertEqual(found, (case["reason"], case["metadata"], case["retry_after"]))

    def test_details_are_read_and_pushback_goes_first(self):
        def field(number, data):
            return wire.length_tag(number, len(data)) + data

        def any_of(name, body):
            return field(3, field(1, b"type.googleapis.com/google.rpc." + name) + field(2, body))

        info = field(1, b"QUEUE_FULL") + field(2, b"softlookup") + field(3, field(1, b"limit") + field(2, b"9\xff"))
        status = b"\x08\x08" + field(2, b"full") + any_of(b"ErrorInfo", info)
        status += any_of(b"RetryInfo", field(1, b"\x08\x01\x10" + wire.varint(500_000_000)))
        trailers = [("grpc-status-details-bin", status)]
        error = details.make_error("RESOURCE_EXHAUSTED", "full", trailers)
        self.assertEqual((error.reason, error.metadata, error.retry_after), ("QUEUE_FULL", {"limit": "9\ufffd"}, 1.5))
        for pushback, seconds in (("250", 0.25), ("-1", math.inf), ("soon", math.inf), ("", math.inf),
                                  ("9" * 400, math.inf), ("1_0", math.inf), (" 1", math.inf)):
            again = details.make_error("UNAVAILABLE", "", [*trailers, ("grpc-retry-pushback-ms", pushback)])
            self.assertEqual(again.retry_after, seconds)
        for cut in range(len(status)):  # Whatever can be read is read; nothing is raised.
            details.make_error("UNAVAILABLE", "", [("grpc-status-details-bin", status[:cut])])
        negative = any_of(b"RetryInfo", field(1, b"\x08" + wire.varint(2**64 - 5)))
        self.assertEqual(details.read_details(negative)[2], math.inf)


class RetryTest(unittest.TestCase):
    def test_every_case_of_the_conformance_file(self):
        data = cases("retries.json")
        options = retry.Retry(**data["options"])
        for case in data["cases"]:
            with self.subTest(case["name"]):
                after = case.get("retry_after")
                error = sl.Error(case["code"], case.get("message", ""), reason=case.get("reason", ""),
                                 retry_after=math.inf if after == "never" else after)
                found = [retry.delay_before_retry(options, case["attempts"], error, jitter) for jitter in (0, 1)]
                if case["delay"] is None:
                    self.assertEqual(found, [None, None])
                else:
                    np.testing.assert_allclose(found, case["delay"])

    def test_the_budget_bounds_the_retries_of_all_calls(self):
        budget, error = retry.Budget(3), sl.Error("UNAVAILABLE")

        def retries():
            attempts = retry.Attempts(retry.Retry(), budget, True, math.inf)
            for count in range(20):
                try:
                    attempts.failed(error, 0, 0)
                except sl.Error:
                    return count
            return 20

        self.assertEqual([retries(), retries()], [3, 0])
        for _ in range(20):
            budget.succeeded()
        self.assertEqual(retries(), 2)

    def test_no_retry_begins_after_the_deadline_or_of_an_unsafe_call(self):
        error = sl.Error("UNAVAILABLE")
        for safe, end in ((True, 100.01), (False, math.inf)):
            with self.assertRaises(sl.Error):
                retry.Attempts(retry.Retry(), retry.Budget(9), safe, end).failed(error, 100.0, 0)


class WriterTest(unittest.TestCase):
    def step(self, queue, step):
        if "push" in step:
            queue.push(step["push"], str)
        elif "send" in step:
            request = queue.next_to_send()
            self.assertEqual(None if request is None else int(request), step["send"])
        elif "rewind" in step:
            queue.rewind(step["rewind"])
        else:
            given = step["answer"]
            queue.acknowledge(given["sequence"], given.get("duplicate", False), given.get("appended", 0),
                              given.get("row_count", 0), given.get("revision", 0))
            self.assertEqual(queue.progress.row_count, given.get("row_count", 0))
            self.assertEqual(queue.progress.revision, given.get("revision", 0))

    def test_every_case_of_the_conformance_file(self):
        for case in cases("writers.json")["cases"]:
            with self.subTest(case["name"]):
                queue = resend.ResendQueue(case["last_sequence"])
                for step in case["steps"]:
                    if "error" in step:
                        with self.assertRaises(sl.Error) as caught:
                            self.step(queue, step)
                        self.assertEqual(caught.exception.code, step["error"])
                    else:
                        self.step(queue, step)
                self.assertEqual((len(queue), queue.progress.rows), (case["unacknowledged"], case["rows"]))

    def machine(self, last_sequence=0, **options):
        state = WriterState("w", last_sequence)
        return writing.Machine(writing.WriterOptions("s", "w", **options), retry.Retry(), state)

    def batch(self, rows):
        return appends.Batch(np.arange(rows, dtype="f4")[:, None], np.zeros((rows, 1), "f4"), None, None, None, None,
                             None)

    def test_an_outage_ends_the_writer_and_an_acknowledgement_ends_the_outage(self):
        machine, lost = self.machine(outage_max=10.0), sl.UnavailableError("UNAVAILABLE")
        for _ in range(2):
            machine.push(self.batch(1), (0, 1))
        self.assertEqual(row_pb2.AppendRequest.FromString(machine.next_to_send()).sequence, 1)
        machine.next_to_send()
        self.assertGreater(machine.failed(lost, 0.0, 0.5), 0)
        self.assertIs(machine.progress.outage, lost)
        self.assertGreater(machine.failed(lost, 9.0, 0.5), 0)
        machine.repositioned(None)
        machine.next_to_send()
        machine.answered(row_pb2.AppendResponse(sequence=1, appended_count=1).SerializeToString())
        self.assertIsNone(machine.progress.outage)
        self.assertGreater(machine.failed(lost, 15.0, 0.5), 0)  # A new outage.
        with self.assertRaises(sl.UnavailableError):
            machine.failed(lost, 24.99, 0.5)
        machine.end(lost)
        with self.assertRaises(sl.UnavailableError) as caught:
            machine.push(self.batch(1), (0, 1))
        self.assertEqual((caught.exception.acknowledged_rows, machine.progress.reconnections), (1, 3))

    def test_a_program_that_starts_again_skips_what_the_store_has(self):
        machine = self.machine(last_sequence=5, from_start=True)
        self.assertEqual([machine.skip(self.batch(n)) for n in (3, 3, 3)], [3, 2, 0])

    def test_the_window_bounds_requests_and_bytes(self):
        machine = self.machine()
        self.assertTrue(machine.has_room(1 << 30, 1 << 10))  # Alone.
        machine.push(self.batch(1), (0, 1))
        self.assertFalse(machine.has_room(1 << 30, 1 << 10))
        for _ in range(63):
            self.assertTrue(machine.has_room(1, 8))
            machine.push(self.batch(1), (0, 1))
        self.assertFalse(machine.has_room(1, 8))


class AnswerTest(unittest.TestCase):
    def response(self, queries=2, columns=4, heads=1, weights=0):
        message = lookup_pb2.LookupResponse(revision=3, row_count=9)
        message.values.rows, message.values.cols = queries, columns
        message.values.data = np.arange(queries * columns, dtype="<f4").tobytes()
        for i in range(queries * heads):
            message.stats.add(log_sum_exp=i, counted_rows=5, entropy=0.5, error_bound=1e-5)
            if weights:
                message.weights.add(positions=range(weights), weights=[0.1] * weights, scores=[1.0] * weights)
        return message

    def decode(self, message, queries=2, weights=False):
        return answer.decode_answer(message.SerializeToString(), lookup_pb2.LookupResponse, queries, weights, 0.0)

    def test_columns_have_a_head_axis_where_there_are_several(self):
        one, two = self.decode(self.response()), self.decode(self.response(heads=2))
        self.assertEqual((one.log_sum_exp.shape, two.log_sum_exp.shape), ((2,), (2, 2)))
        self.assertEqual(two.log_sum_exp.tolist(), [[0, 1], [2, 3]])
        self.assertEqual((one.revision, one.row_count, one.values.shape), (3, 9, (2, 4)))

    def test_it_never_changes(self):
        one = self.decode(self.response())
        with self.assertRaises(AttributeError):
            one.values = None
        for array in (one.values, one.entropy):
            with self.assertRaises(ValueError):
                array[0] = 1

    def test_it_pickles(self):
        one = self.decode(self.response(heads=2, weights=3), weights=True)
        copy = pickle.loads(pickle.dumps(one))
        np.testing.assert_array_equal(copy.values, one.values)
        np.testing.assert_array_equal(copy.entropy, one.entropy)
        np.testing.assert_array_equal(copy.weights.weights, one.weights.weights)
        self.assertEqual(copy.revision, one.revision)

    def test_answers_that_do_not_fit_are_refused(self):
        def changed(**changes):
            message = self.response(weights=2)
            for name, value in changes.items():
                target = message.values if name in ("rows", "cols", "data") else message.weights[1]
                if isinstance(value, list):
                    del getattr(target, name)[:]
                    getattr(target, name).extend(value)
                else:
                    setattr(target, name, value)
            return message

        fewer_stats, extra_weights, odd_heads = self.response(), self.response(weights=1), self.response()
        del fewer_stats.stats[1]
        extra_weights.weights.add()
        odd_heads.stats.add()
        for message, queries, weights in (
                (self.response(), 3, False), (self.response(), 2, True), (fewer_stats, 2, False),
                (odd_heads, 2, False), (extra_weights, 2, False), (self.response(columns=3, heads=2), 2, False),
                (self.response(queries=0), 1, False), (lookup_pb2.LookupResponse(), 1, False),
                (changed(positions=[1]), 2, True), (changed(weights=[1.0]), 2, True), (changed(scores=[]), 2, True),
                (changed(ids=[1]), 2, True), (changed(has_ids=[True]), 2, True),
                (changed(ids=[1, 2], has_ids=[True]), 2, True), (changed(weights=[math.nan, 1.0]), 2, True),
                (changed(remaining_weight=math.inf), 2, True), (changed(rows=3), 2, True),
                (changed(cols=2**31), 2, True), (changed(data=b"x"), 2, True)):
            with self.subTest(str(message)[:200]), self.assertRaises((sl.Error, wire.MalformedError)):
                self.decode(message, queries, weights)

    def test_values_in_parts_are_merged_as_protobuf_does(self):
        whole = self.response().SerializeToString()
        extra = lookup_pb2.LookupResponse()
        extra.values.cols = 2
        extra.values.rows = 4
        with self.assertRaises(sl.Error):
            answer.decode_answer(whole + extra.SerializeToString(), lookup_pb2.LookupResponse, 2, False, 0)
        extra.values.cols, extra.values.rows = 4, 2
        again = answer.decode_answer(whole + extra.SerializeToString(), lookup_pb2.LookupResponse, 2, False, 0)
        self.assertEqual(again.values.tolist(), [[0, 1, 2, 3], [4, 5, 6, 7]])

    def test_weights_of_unlike_lengths_are_filled_up_within_reason(self):
        message = self.response(weights=2)
        del message.weights[1].positions[:], message.weights[1].weights[:], message.weights[1].scores[:]
        weights = self.decode(message, weights=True).weights
        self.assertEqual(weights.positions.tolist(), [[0, 1], [0, 0]])
        self.assertEqual(weights.weights.tolist(), [[0.1, 0.1], [0, 0]])
        self.assertEqual((weights.counts.tolist(), len(weights), len(weights[1])), ([2, 0], 2, 0))
        with self.assertRaises(IndexError):
            weights[2]
        long = self.response(queries=1000)
        for i in range(1000):
            count = 100_000 * (i == 0)
            long.weights.add(positions=range(count), weights=[0.0] * count, scores=[0.0] * count)
        with self.assertRaisesRegex(ValueError, "take them singly"):
            self.decode(long, 1000, True).weights.positions  # 800 MB for 100,000 weights.


class MergeTest(unittest.TestCase):
    def parts(self, heads, cuts, temperature=0.7):
        random = np.random.default_rng(heads)
        keys, values = random.normal(size=(50, 8)), random.normal(size=(50, 6))
        queries = random.normal(size=(7, 8))
        whole = sl.attend(queries, keys, values, num_heads=heads, temperature=temperature)
        bounds = [0, *cuts, 50]
        return whole, [sl.attend(queries, keys[a:b], values[a:b], num_heads=heads, temperature=temperature)
                       for a, b in zip(bounds, bounds[1:])]

    def test_parts_merge_to_the_whole_in_any_order(self):
        for heads in (1, 2):
            for temperature in (1e-3, 0.7, 100.0):
                whole, parts = self.parts(heads, [10, 10, 11, 49], temperature)  # One part is empty.
                for order in (parts, parts[::-1]):
                    merged = order[0]
                    for part in order[1:]:
                        merged = merged.merge(part)
                    np.testing.assert_allclose(merged.values, whole.values, rtol=1e-12, atol=1e-13)
                    np.testing.assert_allclose(merged.log_sum_exp, whole.log_sum_exp, rtol=1e-13)
                    np.testing.assert_allclose(merged.entropy, whole.entropy, rtol=1e-9, atol=1e-12)
                    np.testing.assert_array_equal(merged.counted_rows, whole.counted_rows)
                    np.testing.assert_array_equal(merged.max_logit, whole.max_logit)

    def test_what_is_empty_adds_nothing(self):
        empty = sl.Answer.of(np.zeros((2, 3)), [-np.inf, -np.inf])
        both = empty.merge(empty)
        self.assertTrue(both.empty.all() and (both.values == 0).all() and (both.log_sum_exp == -np.inf).all())
        other = sl.Answer.of(np.ones((2, 3)), [1.0, -np.inf], entropy=[0.5, 0.0], counted_rows=[4, 0])
        merged = empty.merge(other)
        self.assertEqual(merged.values.tolist(), [[1, 1, 1], [0, 0, 0]])
        self.assertEqual((merged.entropy.tolist(), merged.counted_rows.tolist()), ([0.5, 0], [4, 0]))

    def test_large_sums_do_not_overflow(self):
        merged = sl.Answer.of([[1.0]], [1e300]).merge(sl.Answer.of([[2.0]], [-1e300]))
        self.assertEqual((merged.values.tolist(), merged.log_sum_exp.tolist()), ([[1.0]], [1e300]))

    def test_what_cannot_be_merged_is_refused(self):
        one = sl.Answer.of([[1.0, 2.0]], [0.0])
        hard = answer.Answer(np.ones((1, 2)), 1, (), {"log_sum_exp": np.array([-np.inf]), "empty": np.array([False])},
                             None, (0, 0, 0.0, 1))
        for other in (sl.Answer.of([[1.0]], [0.0]), sl.Answer.of([[1.0, 2.0]] * 2, [0.0, 0.0]), hard,
                      sl.Answer.of([[1.0, 2.0]], [[0.0, 0.0]]), sl.Answer.of([[1.0, 2.0]], [np.nan]),
                      sl.Answer.of([[1.0, 2.0]], [np.inf])):
            with self.assertRaises(ValueError):
                one.merge(other)
        with self.assertRaises(ValueError):
            sl.Answer.of([[1.0, 2.0, 3.0]], [[0.0, 0.0]])


class SettingsTest(unittest.TestCase):
    def test_addresses(self):
        for address in ("a:1", "[::1]:7471", "127.0.0.1:65535", "dns:///a:1", "unix:/run/x"):
            settings.check_address(address)
        for address in ("", "a", "a:0", "a:65536", ":7471", "::1:7471", "http://a:1", "a b:1", "a:1\n"):
            with self.subTest(address), self.assertRaisesRegex(ValueError, "server address"):
                settings.check_address(address)

    def test_secrets_are_not_shown(self):
        self.assertNotIn("secret", repr(settings.Settings("a:1", token="secret", tls_key=b"secret")))


class SurfaceTest(unittest.TestCase):
    """The sync and the asyncio client have one surface."""

    @staticmethod
    def shape(function):
        signature = inspect.signature(function)
        names = [(p.name, p.kind, p.default if p.default is None or isinstance(p.default, (int, float, str, tuple))
                  else repr(p.default), p.annotation) for p in signature.parameters.values()]
        result = re.sub(r"Async(Iterator)", r"\1", str(signature.return_annotation))
        return names, result

    def test_signatures_agree(self):
        pairs = [(sl.connect, softlookup.aio.connect)]
        rename = {"__aenter__": "__enter__", "__aexit__": "__exit__"}
        for name in ("Client", "Store", "Writer"):
            sync, other = (dict(vars(getattr(module, name))) for module in (sl, softlookup.aio))
            other = {rename.get(key, key): value for key, value in other.items()}
            public = {key for key in sync if not key.startswith("_") or key in rename.values()}
            self.assertEqual(public, {key for key in other if not key.startswith("_") or key in rename.values()})
            pairs += [(sync[key], other[key]) for key in public if inspect.isfunction(sync[key])]
            for key in public:
                self.assertEqual(type(sync[key]), type(other[key]), key)
        self.assertGreater(len(pairs), 30)
        for sync, other in pairs:
            with self.subTest(sync.__qualname__):
                self.assertEqual(self.shape(sync), self.shape(other))

    def test_every_public_thing_has_a_docstring(self):
        for module in (sl, softlookup.aio):
            for name in module.__all__:
                thing = getattr(module, name)
                self.assertTrue(name == "__version__" or inspect.getdoc(thing), name)
                for key, value in vars(thing).items() if inspect.isclass(thing) else ():
                    if not key.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                        self.assertTrue(inspect.getdoc(value), f"{name}.{key}")

    def test_the_core_does_no_input_or_output(self):
        package = ROOT / "client/python/softlookup"
        for path in sorted((package / "_core").glob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else \
                    [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                for name in names:
                    self.assertNotIn(name.split(".")[0], ("grpc", "asyncio", "socket", "time", "subprocess"), path)
        for path in package.rglob("*.py"):
            if "_proto" not in path.parts:
                self.assertLessEqual(len(path.read_text().splitlines()), 400, path)

    def test_the_version_is_the_projects(self):
        version = re.search(r"^project\(softlookup VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
        self.assertEqual(sl.__version__, version)


if __name__ == "__main__":
    main()
