#!/usr/bin/python3
"""All golden cases through the package against the real server: golden_test.py SERVER ROOT TOOL

The cases and their float64 answers are those of tests/golden; the bounds are those of the C++ client's golden test.
"""
import json
import unittest

import numpy as np

import softlookup as sl
from subject import ROOT, local_server, main

CASES = json.loads((ROOT / "tests/golden/cases.json").read_text())
OPTIONS = ("temperature", "top_k", "min_score", "recency_decay", "causal", "causal_offset")


def relative_error(actual, expected):
    """Largest difference over the largest expected component, as tests/testing/golden.h has it."""
    expected = np.asarray(expected, float)
    if expected.size == 0:
        return 0.0
    return np.abs(np.ravel(actual) - expected.ravel()).max() / max(np.abs(expected).max(), 1e-30)


def number(values):
    """The oracle's minus infinity is written as null."""
    return np.array([-np.inf if value is None else value for value in values])


class GoldenTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.client = cls.enterClassContext(
            cls.enterClassContext(local_server()).connect(deadline=60)
        )
        cls.names = (f"golden-{i}" for i in range(10**6))

    def arrays(self, case, rows):
        keys = np.array(case["keys"], np.float32).reshape(rows, case["key_dim"])
        return keys, np.array(case["values"], np.float32).reshape(rows, case["value_dim"])

    def expect_answer(self, answer, case, rows):
        expect = case["expect"]
        self.assertLessEqual(relative_error(answer.values, expect["values"]), 1e-5)
        self.assertEqual(np.ravel(answer.counted_rows).tolist(), expect["counted_rows"])
        self.assertEqual(
            np.ravel(answer.empty).tolist(), [count == 0 for count in expect["counted_rows"]]
        )
        for name in ("log_sum_exp", "max_logit", "entropy"):
            wanted = number(expect[name])
            np.testing.assert_allclose(
                np.ravel(getattr(answer, name)), wanted, rtol=1e-5, atol=1e-5, err_msg=name
            )
        self.assertEqual(len(answer.weights.lists), len(expect["weights"]))
        for weights, wanted in zip(answer.weights, expect["weights"]):
            dense = np.zeros(rows)
            dense[weights.positions] = weights.weights
            self.assertLessEqual(relative_error(dense, wanted), 1e-5)

    def options(self, case):
        given = case["options"]
        options = {name: given[name] for name in OPTIONS if name in given}
        for name in ("causal",):
            if name in options:
                options[name] = bool(options[name])
        return {
            "score": given.get("score", "SCALED_DOT").lower(),
            "mode": given.get("mode", "SOFT").lower(),
            "weights": "all",
            **options,
        }

    def test_lookups_with_their_rows_filtered_by_id(self):
        filtered = 0
        for case in CASES["lookups"]:
            with self.subTest(case["name"]):
                rows, given = case["N"], case["options"]
                keys, values = self.arrays(case, rows)
                store = self.client.create_store(
                    next(self.names),
                    key_dim=case["key_dim"],
                    value_dim=case["value_dim"],
                    num_heads=given.get("num_heads", 1),
                )
                ids = 1000 + 7 * np.arange(rows)
                if rows:
                    store.append(keys, values, ids=ids)
                queries = np.array(case["queries"], np.float32).reshape(case["T"], case["key_dim"])
                filters = [None]
                if "allowed" in given:
                    allowed = np.array(given["allowed"], bool)
                    filters = [sl.rows(ids=[1, *ids[allowed]]), sl.rows(without_ids=ids[~allowed])]
                    filtered += 1
                for where in filters:
                    answer = store.lookup(queries, where=where, **self.options(case))
                    self.expect_answer(answer, case, rows)
                    for weights in answer.weights:
                        np.testing.assert_array_equal(weights.ids, 1000 + 7 * weights.positions)
                        self.assertTrue(weights.has_ids.all())
        self.assertEqual((len(CASES["lookups"]), filtered), (59, 12))

    def test_the_same_over_rows_that_the_request_carries(self):
        count = 0
        for case in CASES["lookups"]:
            if "allowed" in case["options"] or not case["N"]:
                continue
            with self.subTest(case["name"]):
                keys, values = self.arrays(case, case["N"])
                queries = np.array(case["queries"], np.float32).reshape(case["T"], case["key_dim"])
                heads = case["options"].get("num_heads", 1)
                answer = self.client.attend(
                    queries, keys, values, num_heads=heads, **self.options(case)
                )
                self.expect_answer(answer, case, case["N"])
                count += 1
        self.assertGreaterEqual(count, 40)

    def test_soft_lookups_in_this_process(self):
        count = 0
        for case in CASES["lookups"]:
            options, given = self.options(case), case["options"]
            if options.pop("mode") != "soft" or "top_k" in given or "recency_decay" in given:
                continue
            with self.subTest(case["name"]):
                del options["weights"]
                keys, values = self.arrays(case, case["N"])
                queries = np.array(case["queries"], np.float32).reshape(case["T"], case["key_dim"])
                mask = np.array(given["allowed"], bool) if "allowed" in given else None
                answer = sl.attend(
                    queries, keys, values, num_heads=given.get("num_heads", 1), mask=mask, **options
                )
                self.assertLessEqual(relative_error(answer.values, case["expect"]["values"]), 1e-9)
                for name in ("log_sum_exp", "max_logit", "entropy"):
                    np.testing.assert_allclose(
                        np.ravel(getattr(answer, name)),
                        number(case["expect"][name]),
                        rtol=1e-9,
                        atol=1e-9,
                    )
                self.assertEqual(
                    np.ravel(answer.counted_rows).tolist(), case["expect"]["counted_rows"]
                )
                count += 1
        self.assertGreater(count, 20)

    def test_memories_also_as_of_an_earlier_row_and_as_returned_by_the_append(self):
        for case in CASES["memories"]:
            with self.subTest(f'{case["kind"]} of {case["n"]} rows'):
                kind, rows = case["kind"].lower(), case["n"]
                keys, values = self.arrays(case, rows)
                spec = sl.MemorySpec("m", kind, case.get("decay"), case.get("gate"))
                store = self.client.create_store(
                    next(self.names),
                    key_dim=case["key_dim"],
                    value_dim=case["value_dim"],
                    memories=[spec],
                )
                kept = store.info().memories[0]
                self.assertEqual((kept.name, kept.kind, kept.decay), ("m", kind, case.get("decay")))
                receipt = store.append(keys, values, return_memories=["m", "average"])
                store.append(
                    keys[:1] * 0 + 5, values[:1] * 0 + 5
                )  # Later rows do not change the past.
                memories = [store.memory("m", begin=case["begin"], end=rows)]
                if kind == "average":
                    memories.append(store.memory(begin=case["begin"], end=rows))
                if case["begin"] == 0:
                    memories.append(receipt.memories[0])
                for memory in memories:
                    self.assertLessEqual(relative_error(memory.key, case["expect"]["key"]), 1e-12)
                    self.assertLessEqual(
                        relative_error(memory.value, case["expect"]["value"]), 1e-12
                    )
                    np.testing.assert_allclose(memory.weight, case["expect"]["weight"], rtol=1e-12)
                    self.assertEqual((memory.begin, memory.end), (case["begin"], rows))
        self.assertEqual(len(CASES["memories"]), 30)


if __name__ == "__main__":
    main()
