#!/usr/bin/python3
"""What answers are, which are refused, and how they merge: answer_test.py SERVER ROOT TOOL"""
import functools
import math
import pickle
import unittest

import numpy as np

import softlookup as sl
from softlookup._core import answer, wire
from softlookup._core.weights import QueryWeights, Weights
from softlookup._proto.softlookup.v1 import lookup_pb2
from subject import conformance, main


FLOATS = ("log_sum_exp", "max_logit", "entropy", "error_bound")


class AnswerTest(unittest.TestCase):
    def response(self, queries=2, columns=4, heads=1, weights=0):
        message = lookup_pb2.LookupResponse(revision=3, row_count=9)
        message.values.rows, message.values.cols = queries, columns
        message.values.data = np.arange(queries * columns, dtype="<f4").tobytes()
        for i in range(queries * heads):
            message.stats.add(log_sum_exp=i, counted_rows=5, entropy=0.5, error_bound=1e-5)
            if weights:
                message.weights.add(
                    positions=range(weights), weights=[0.1] * weights, scores=[1.0] * weights
                )
        return message

    def decode(self, message, queries=2, weights=False):
        return answer.decode_answer(
            message.SerializeToString(), lookup_pb2.LookupResponse, queries, weights, 0.0
        )

    def test_columns_have_a_head_axis_where_there_are_several(self):
        one, two = self.decode(self.response()), self.decode(self.response(heads=2))
        self.assertEqual((one.log_sum_exp.shape, two.log_sum_exp.shape), ((2,), (2, 2)))
        self.assertEqual(two.log_sum_exp.tolist(), [[0, 1], [2, 3]])
        self.assertEqual((one.revision, one.row_count, one.values.shape), (3, 9, (2, 4)))

    def test_it_never_changes(self):
        one = self.decode(self.response())
        with self.assertRaises(AttributeError):
            one.values = None
        weighed = self.decode(self.response(weights=3), weights=True)
        copy = pickle.loads(pickle.dumps(weighed))
        own = np.array([0.5])
        mine = sl.Answer.of([[1.0]], [0.0], entropy=own)
        own[0] = 7
        self.assertEqual(mine.entropy.tolist(), [0.5])
        for each in (one, weighed, copy, mine, mine.merge(mine)):
            for array in (each.values, each.entropy):
                with self.assertRaises(ValueError):
                    array[0] = 1
        for each in (weighed, copy, weighed.merge(weighed)):
            with self.assertRaises(ValueError):
                each.weights[0].weights[0] = 1

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

        fewer_stats, extra_weights, odd_heads = (
            self.response(),
            self.response(weights=1),
            self.response(),
        )
        del fewer_stats.stats[1]
        extra_weights.weights.add()
        odd_heads.stats.add()
        for message, queries, weights in (
            (self.response(), 3, False),
            (self.response(), 2, True),
            (fewer_stats, 2, False),
            (odd_heads, 2, False),
            (extra_weights, 2, False),
            (self.response(columns=3, heads=2), 2, False),
            (self.response(queries=0), 1, False),
            (lookup_pb2.LookupResponse(), 1, False),
            (changed(positions=[1]), 2, True),
            (changed(weights=[1.0]), 2, True),
            (changed(scores=[]), 2, True),
            (changed(ids=[1]), 2, True),
            (changed(has_ids=[True]), 2, True),
            (changed(ids=[1, 2], has_ids=[True]), 2, True),
            (changed(weights=[math.nan, 1.0]), 2, True),
            (changed(remaining_weight=math.inf), 2, True),
            (changed(rows=3), 2, True),
            (changed(cols=2**31), 2, True),
            (changed(data=b"x"), 2, True),
        ):
            with self.subTest(str(message)[:200]), self.assertRaises(
                (sl.Error, wire.MalformedError)
            ):
                self.decode(message, queries, weights)

    def test_values_in_parts_are_merged_as_protobuf_does(self):
        whole = self.response().SerializeToString()
        extra = lookup_pb2.LookupResponse()
        extra.values.cols = 2
        extra.values.rows = 4
        with self.assertRaises(sl.Error):
            answer.decode_answer(
                whole + extra.SerializeToString(), lookup_pb2.LookupResponse, 2, False, 0
            )
        extra.values.cols, extra.values.rows = 4, 2
        again = answer.decode_answer(
            whole + extra.SerializeToString(), lookup_pb2.LookupResponse, 2, False, 0
        )
        self.assertEqual(again.values.tolist(), [[0, 1, 2, 3], [4, 5, 6, 7]])

    def test_weights_of_unlike_lengths_are_filled_up_within_reason(self):
        message = self.response(weights=2)
        del (
            message.weights[1].positions[:],
            message.weights[1].weights[:],
            message.weights[1].scores[:],
        )
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
        return whole, [
            sl.attend(queries, keys[a:b], values[a:b], num_heads=heads, temperature=temperature)
            for a, b in zip(bounds, bounds[1:])
        ]

    def test_parts_merge_to_the_whole_in_any_order(self):
        for heads in (1, 2):
            for temperature in (1e-3, 0.7, 100.0):
                whole, parts = self.parts(
                    heads, [10, 10, 11, 49], temperature
                )  # One part is empty.
                for order in (parts, parts[::-1]):
                    merged = order[0]
                    for part in order[1:]:
                        merged = merged.merge(part)
                    np.testing.assert_allclose(merged.values, whole.values, rtol=1e-12, atol=1e-13)
                    np.testing.assert_allclose(merged.log_sum_exp, whole.log_sum_exp, rtol=1e-13)
                    np.testing.assert_allclose(merged.entropy, whole.entropy, rtol=1e-9, atol=1e-12)
                    np.testing.assert_array_equal(merged.counted_rows, whole.counted_rows)
                    np.testing.assert_array_equal(merged.max_logit, whole.max_logit)

    def answer_of(self, part, case):
        """A part of a case of merge.json."""
        heads = part.get("num_heads", case["num_heads"])
        columns = {name: np.array(part[name], np.float64) for name in FLOATS}
        columns["empty"] = np.array(part["empty"], np.bool_)
        for name in ("counted_rows", "summed_rows"):
            columns[name] = np.array(part[name], np.uint64)
        values = np.array(part["values"], np.float64)
        lists = None
        if "weights" in part:
            lists = Weights(tuple(self.list_of(each) for each in part["weights"]), heads)
        return answer.Answer(
            values if values.size else np.zeros((0, case["columns"])),
            heads,
            (),
            columns,
            lists,
            (part.get("revision", 0), part.get("row_count", 0), part["log_sum_exp_error"], 1),
        )

    def list_of(self, each):
        ids = each["ids"]
        return QueryWeights(
            np.array(each["positions"], np.uint64),
            np.array([one or 0 for one in ids], np.uint64),
            np.array([one is not None for one in ids], np.bool_),
            np.array(each["weights"], np.float64),
            np.array(each["scores"], np.float64),
            np.array(each.get("parts", [0] * len(ids)), np.uint32),
            each["remaining"],
        )

    def check_merged(self, merged, case, tolerance):
        def close(found, given, size=None):
            given = np.array(given, np.float64).reshape(np.shape(found))
            if size is None:
                size = np.maximum(1, np.abs(np.where(np.isfinite(given), given, 0)))
            with np.errstate(invalid="ignore"):  # -inf - -inf
                near = (np.abs(found - given) <= tolerance * size) | (found == given)
            self.assertTrue((near | (np.isnan(found) & np.isnan(given))).all(), (found, given))

        expected = case["merged"]
        close(merged.values, expected["values"], case["largest"])
        self.assertEqual(merged.values.shape, (len(expected["values"]), case["columns"]))
        for name in FLOATS:
            close(getattr(merged, name), expected[name])
        for name in ("counted_rows", "summed_rows", "empty"):
            self.assertEqual(getattr(merged, name).reshape(-1).tolist(), expected[name])
        self.assertEqual((merged.revision, merged.row_count), (0, 0))
        self.assertEqual(merged._facts[2:], (expected["log_sum_exp_error"], len(case["parts"])))
        self.assertEqual(merged.weights is None, "weights" not in expected)
        for found, each in zip(merged.weights or (), expected.get("weights", ())):
            given = self.list_of(each)
            for name in ("positions", "ids", "has_ids", "parts"):
                self.assertEqual(getattr(found, name).tolist(), getattr(given, name).tolist())
            for name in ("weights", "scores", "remaining"):
                close(getattr(found, name), getattr(given, name))

    def test_every_case_of_the_conformance_file(self):
        data = conformance("merge.json")
        for case in data["cases"]:
            with self.subTest(case["name"]):
                parts = [self.answer_of(part, case) for part in case["parts"]]
                if "error" in case:
                    self.assertEqual(case["error"], "INVALID_ARGUMENT")
                    with self.assertRaises(ValueError):
                        functools.reduce(answer.Answer.merge, parts)
                else:
                    merged = functools.reduce(answer.Answer.merge, parts)
                    self.check_merged(merged, case, data["tolerance"])

    def test_what_is_empty_adds_nothing(self):
        empty = sl.Answer.of(np.zeros((2, 3)), [-np.inf, -np.inf])
        both = empty.merge(empty)
        self.assertTrue(
            both.empty.all() and (both.values == 0).all() and (both.log_sum_exp == -np.inf).all()
        )
        other = sl.Answer.of(
            np.ones((2, 3)), [1.0, -np.inf], entropy=[0.5, 0.0], counted_rows=[4, 0]
        )
        merged = empty.merge(other)
        self.assertEqual(merged.values.tolist(), [[1, 1, 1], [0, 0, 0]])
        self.assertEqual(
            (merged.entropy.tolist(), merged.counted_rows.tolist()), ([0.5, 0], [4, 0])
        )

    def test_sums_over_no_rows_that_are_no_numbers_add_nothing(self):
        nothing = sl.Answer.of([[np.nan, np.inf]], [-np.inf], entropy=np.nan, error_bound=np.inf)
        some = sl.Answer.of([[1.0, 2.0]], [3.0], entropy=0.5)
        for merged in (nothing.merge(some), some.merge(nothing)):
            self.assertEqual(merged.values.tolist(), [[1.0, 2.0]])
            self.assertEqual((merged.entropy.tolist(), merged.error_bound.tolist()), ([0.5], [0.0]))

    def test_a_row_that_is_no_number_is_not_one_that_does_not_count(self):
        good = np.ones((3, 2))
        for name in ("queries", "keys", "values"):
            for bad in (np.nan, np.inf):
                given = {"queries": good, "keys": good, "values": good}
                given[name] = np.array([[1, 1], [1, bad], [1, 1]])
                with self.assertRaisesRegex(ValueError, f"{name}: row 1, column 1"):
                    sl.attend(**given)

    def test_a_mask_is_no_list_of_positions(self):
        keys = np.arange(3.0)[:, None]
        for mask in ([0, 1, 2], [True], [[True], [True]], [True] * 2, np.ones((3, 3), bool), []):
            with self.assertRaisesRegex(sl.InvalidArgumentError, "mask is"):
                sl.attend(keys[:2], keys, keys, mask=mask)
        for mask in ([True, False, True], [[True, False, True], [True, True, False]]):
            answer = sl.attend(keys[:2], keys, keys, mask=mask)
            self.assertEqual(answer.counted_rows.tolist(), [2, 2])

    def test_large_sums_do_not_overflow(self):
        with np.errstate(all="raise"):
            merged = sl.Answer.of([[1.0]], [1e308]).merge(sl.Answer.of([[2.0]], [-1e308]))
        self.assertEqual((merged.values.tolist(), merged.log_sum_exp.tolist()), ([[1.0]], [1e308]))

    def test_arrays_are_merged_once_they_are_an_answer(self):
        answer = sl.Answer.of([[1.0]], [0.0])
        for other in (([[1.0]], [0.0]), np.ones((1, 1)), None):
            with self.assertRaisesRegex(sl.InvalidArgumentError, r"softlookup\.Answer\.of\("):
                answer.merge(other)

    def test_what_cannot_be_merged_is_refused(self):
        one = sl.Answer.of([[1.0, 2.0]], [0.0])
        hard = answer.Answer(
            np.ones((1, 2)),
            1,
            (),
            {"log_sum_exp": np.array([-np.inf]), "empty": np.array([False])},
            None,
            (0, 0, 0.0, 1),
        )
        for other in (
            sl.Answer.of([[1.0]], [0.0]),
            sl.Answer.of([[1.0, 2.0]] * 2, [0.0, 0.0]),
            hard,
            sl.Answer.of([[1.0, 2.0]], [[0.0, 0.0]]),
            sl.Answer.of([[1.0, 2.0]], [np.nan]),
            sl.Answer.of([[1.0, 2.0]], [np.inf]),
        ):
            with self.assertRaises(ValueError):
                one.merge(other)
        with self.assertRaises(ValueError):
            sl.Answer.of([[1.0, 2.0, 3.0]], [[0.0, 0.0]])


if __name__ == "__main__":
    main()
