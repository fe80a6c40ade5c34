#!/usr/bin/python3
"""The sync client against the real server: client_test.py SERVER ROOT TOOL"""
import io
import os
import pathlib
import tempfile
import threading
import unittest

import numpy as np

import softlookup as sl
from softlookup._progress import ProgressLine
from subject import local_server, main

FRIENDS = np.array([[-1.71], [0.6], [-1.01], [-0.61], [2.73]], np.float32)


class ClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.enterClassContext(cls.directory)
        cls.server = cls.enterClassContext(
            local_server(
                flags=[f"--backup-dir={cls.directory.name}/b"], data_dir=f"{cls.directory.name}/d"
            )
        )
        cls.client = cls.enterClassContext(cls.server.connect(deadline=60))

    def setUp(self):
        self.store = self.client.create_store(
            "s",
            key_dim=1,
            value_dim=5,
            score="dot",
            memories=[sl.MemorySpec("slow", "decayed_average", decay=0.5)],
        )
        self.addCleanup(self.delete)

    def delete(self):
        for info in self.client.stores():
            self.client.store(info.name).delete()

    def test_the_first_page_of_the_readme(self):
        receipt = self.store.append(FRIENDS, np.eye(5), return_memories=["slow"])
        self.assertEqual(
            (receipt.first_position, receipt.appended_rows, receipt.row_count, receipt.revision),
            (0, 5, 5, 2),
        )
        self.assertEqual(receipt.memories[0].value.shape, (5,))
        answer = self.store.lookup([1.0], weights=2)
        np.testing.assert_allclose(
            answer.values, [[0.00991402, 0.099878, 0.0199644, 0.0297833, 0.84046]], rtol=1e-5
        )
        self.assertEqual(answer.weights.positions.tolist(), [[4, 1]])
        np.testing.assert_allclose(answer.weights.scores, [[2.73, 0.6]], rtol=1e-6)
        np.testing.assert_allclose(answer.log_sum_exp, [2.90381], rtol=1e-5)
        self.assertEqual(
            (answer.counted_rows.tolist(), answer.revision, answer.row_count), ([5], 2, 5)
        )

    def test_every_option_of_a_lookup_reaches_the_server(self):
        self.store.append(
            FRIENDS, np.eye(5), ids=range(10, 15), labels=["a", ["a", "b"], [], "b", []]
        )
        for options, counted in (
            (dict(top_k=2), 2),
            (dict(min_score=0.0), 2),
            (dict(causal=True, causal_offset=1), 2),
            (dict(where=sl.rows(begin=1, end=4)), 3),
            (dict(where=sl.rows(last=2)), 2),
            (dict(where=sl.rows(labels=["a"])), 2),
            (dict(where=sl.rows(labels=["a", "b"])), 3),
            (dict(where=sl.rows(without_labels=["b"])), 3),
            (dict(where=sl.rows(ids=[10, 11, 99])), 2),
            (dict(where=sl.rows(without_ids=[10])), 4),
            (dict(source="memory", memory="slow"), 1),
            (dict(source="rows_and_memory", where=sl.rows(last=2)), 3),
            (dict(min_revision=2), 5),
            (dict(linearizable=True), 5),
        ):
            with self.subTest(options):
                self.assertEqual(
                    self.store.lookup([1.0], **options).counted_rows.tolist(), [counted]
                )
        warm, cold = (self.store.lookup([1.0], temperature=t).entropy[0] for t in (10, 0.1))
        self.assertGreater(warm, cold)
        self.assertEqual(self.store.lookup([1.0], mode="hard").values.tolist(), [[0, 0, 0, 0, 1]])
        self.assertTrue((self.store.lookup([1.0], mode="linear").log_sum_exp == -np.inf).all())
        self.assertEqual(
            self.store.lookup([1.0], score="euclidean").max_logit.round(2).tolist(), [-0.4]
        )
        self.assertLess(self.store.lookup([1.0], recency_decay=0.1).values[0, 0], 1e-3)
        self.assertLessEqual(self.store.lookup([1.0], max_error=0.01).error_bound[0], 0.01)
        everything = self.store.lookup([[1.0], [2.0]], weights="all").weights
        self.assertEqual(everything.weights.shape, (2, 5))
        np.testing.assert_allclose(everything.weights.sum(axis=1) + everything.remaining, 1)
        self.assertEqual(sorted(everything.ids[0].tolist()), [10, 11, 12, 13, 14])
        self.assertEqual(len(self.store.lookup(np.zeros((0, 1))).values), 0)

    def test_heads_and_projections(self):
        heads = self.client.create_store("heads", key_dim=4, value_dim=6, num_heads=2)
        random = np.random.default_rng(1)
        keys, values, queries = (
            random.normal(size=(9, 4)),
            random.normal(size=(9, 6)),
            random.normal(size=(3, 4)),
        )
        heads.append(keys, values)
        answer, own = heads.lookup(queries, weights=2), sl.attend(
            queries, keys, values, num_heads=2
        )
        np.testing.assert_allclose(answer.values, own.values, atol=2e-5)
        np.testing.assert_allclose(answer.log_sum_exp, own.log_sum_exp, atol=2e-5)
        self.assertEqual(answer.weights.positions.shape, (3, 2, 2))
        self.assertEqual(len(answer.weights[2, 1]), 2)
        projection = sl.Projection(np.eye(2, 3), np.eye(2, 3), [[0, 0, 1]])
        projected = self.client.create_store("p", key_dim=2, value_dim=1, projection=projection)
        inputs = [[1, 0, 5], [0, 1, 6], [1, 1, 7]]
        projected.append(inputs=inputs)
        asked = projected.lookup(inputs, inputs=True)
        attended = self.client.attend(inputs=inputs, projection=projection)
        np.testing.assert_allclose(asked.values, attended.values, atol=1e-4)
        self.assertEqual(projected.info().projection.value.tolist(), [[0, 0, 1]])

    def test_settings_sizes_names_and_the_end(self):
        info = self.store.info()
        self.assertEqual(
            (
                info.name,
                info.key_dim,
                info.value_dim,
                info.score,
                info.temperature,
                info.storage,
                info.memories,
                info.revision,
            ),
            ("s", 1, 5, "dot", 1.0, "float32", (sl.MemorySpec("slow", "decayed_average", 0.5),), 1),
        )
        self.assertLess(
            abs(info.create_time.timestamp() - os.stat(self.directory.name).st_ctime), 600
        )
        changed = self.store.update(score="cosine", temperature=0.5, labels={"team": "search"})
        self.assertEqual(
            (changed.score, changed.temperature, dict(changed.labels)),
            ("cosine", 0.5, {"team": "search"}),
        )
        self.client.create_store("t", key_dim=1, value_dim=1, storage="int8", temperature=2.0)
        self.assertEqual([i.name for i in self.client.stores()], ["s", "t"])
        self.assertEqual([i.storage for i in self.client.stores("t")], ["int8"])
        with self.assertRaisesRegex(sl.AlreadyExistsError, "replace=True deletes it"):
            self.store.rename("t")
        with self.assertRaisesRegex(sl.AlreadyExistsError, r"client\.store\('t'\) .* update\(\)"):
            self.client.create_store("t", key_dim=1, value_dim=1)
        self.assertTrue(self.store.rename("t", replace=True).replaced)
        with self.assertRaises(KeyError) as caught:
            self.store.info()
        self.assertEqual(
            (caught.exception.code, caught.exception.reason, caught.exception.metadata),
            ("NOT_FOUND", "STORE_NOT_FOUND", {"store": "s"}),
        )
        self.client.store("t").delete()
        self.assertEqual(self.client.stores(), [])
        self.assertTrue(self.client.health())
        with self.assertRaises(KeyError):
            self.client.health("nobody")

    def test_rows_come_back_as_they_went_in_and_can_be_deleted(self):
        keys = np.random.default_rng(1).normal(size=(3000, 1)).astype("f4")
        values = np.repeat(keys, 5, axis=1)
        self.store.append(
            keys[:2000],
            values[:2000],
            ids=range(2000),
            labels=[["x", f"row-{i}"] for i in range(2000)],
        )
        self.store.append(keys[2000:], values[2000:])
        rows = self.store.read()
        np.testing.assert_array_equal(rows.keys, keys)
        np.testing.assert_array_equal(rows.values, values)
        np.testing.assert_array_equal(rows.positions, np.arange(3000))
        self.assertEqual(
            (rows.has_ids.sum(), rows.labels[7], rows.labels[2001]), (2000, ("x", "row-7"), ())
        )
        pages = list(self.store.rows(sl.rows(last=1000), page_rows=100, values=False))
        self.assertEqual([(len(p), p.values.shape[1]) for p in pages], [(100, 0)] * 10)
        row = next(iter(self.store.read(sl.rows(ids=[7]), keys=False)))
        self.assertEqual(
            (row.position, row.id, row.labels, row.key.shape), (7, 7, ("x", "row-7"), (0,))
        )
        self.assertEqual(self.store.delete_rows(sl.rows(begin=0, end=2900)).rows, 2900)
        self.assertEqual(len(self.store.read()), 100)
        with self.assertRaises(sl.Error) as caught:
            self.store.compact()
        self.assertEqual(caught.exception.reason, "COMPACTION_ENDS_MEMORIES")
        self.assertGreater(self.store.compact(end_memories=True).dropped_rows, 0)
        empty = self.store.read(sl.rows(labels=["nobody"]))
        self.assertEqual((len(empty), empty.revision > 0), (0, True))
        for _ in self.store.rows(page_rows=1):
            break  # Leaving early ends the call.

    def test_conflicting_ids(self):
        self.store.append(FRIENDS, np.eye(5), ids=range(5))
        with self.assertRaises(sl.AlreadyExistsError) as caught:
            self.store.append(FRIENDS, np.eye(5), ids=[7, 8, 2, 9, 10])
        self.assertEqual(
            {k: caught.exception.metadata[k] for k in ("id", "row", "position")},
            {"id": "2", "row": "2", "position": "2"},
        )
        self.assertEqual(
            self.store.append(
                FRIENDS, np.eye(5), ids=range(1, 6), on_conflict="skip"
            ).appended_rows,
            1,
        )
        self.assertEqual(
            self.store.append(
                FRIENDS, np.eye(5), ids=range(5), on_conflict="replace"
            ).appended_rows,
            5,
        )
        self.assertEqual(self.store.info().live_row_count, 6)

    def test_a_large_append_is_pipelined_and_an_error_counts_from_the_first_row(self):
        keys, values = np.arange(1000.0)[:, None], np.tile(np.arange(1000.0)[:, None], 5)
        receipt = self.store.append(
            keys, values, batch_rows=7, acknowledge="applied", return_memories=["average"]
        )
        self.assertEqual(
            (receipt.first_position, receipt.appended_rows, receipt.requests, receipt.row_count),
            (0, 1000, 143, 1000),
        )
        self.assertEqual(receipt.memories[0].end, 1000)
        np.testing.assert_array_equal(self.store.read().keys, keys)
        self.store.append([[1]], [[1] * 5], ids=[777])
        with self.assertRaises(sl.AlreadyExistsError) as caught:
            self.store.append(keys, values, ids=range(1000), batch_rows=100)
        self.assertEqual(
            (caught.exception.metadata["row"], caught.exception.acknowledged_rows), ("777", 700)
        )
        self.assertIn("rows acknowledged before: 700", str(caught.exception))
        bad = keys.copy()
        bad[999] = np.nan
        before = self.store.info().row_count
        with self.assertRaisesRegex(ValueError, "keys: row 999"):
            self.store.append(bad, values, batch_rows=10)
        self.assertEqual(self.store.info().row_count, before)

    def test_float64_strided_and_mapped_arrays_are_stored_alike(self):
        base = np.random.default_rng(1).normal(size=(50, 6))
        path = pathlib.Path(self.directory.name) / "v.npy"
        np.save(path, base[:, :5].astype(">f4"))
        for values in (
            base[:, :5],
            np.asfortranarray(base[:, :5]),
            base[:, :5].astype("f4"),
            sl.from_npy(path),
        ):
            self.store.append(base[:, 5:], values)
        rows = self.store.read()
        for i in range(4):
            np.testing.assert_array_equal(
                rows.values[50 * i : 50 * i + 50], base[:, :5].astype("f4")
            )
            np.testing.assert_array_equal(rows.keys[50 * i : 50 * i + 50], base[:, 5:].astype("f4"))
        for name, content in (("n.npy", b"no"), ("o.npy", None)):
            if content is None:
                np.save(path.parent / name, np.array([{}], object), allow_pickle=True)
            else:
                (path.parent / name).write_bytes(content)
            with self.assertRaisesRegex(ValueError, name):
                sl.from_npy(path.parent / name)

    def test_data_frames(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("pandas is not there")
        frame = pandas.DataFrame(
            {
                "k": FRIENDS[:, 0],
                **{str(i): np.eye(5)[i] for i in range(5)},
                "id": range(5),
                "who": ["Ann", "Bob", None, "", "Eve"],
            }
        )
        self.store.append(
            **sl.from_frame(frame, keys=["k"], values=list("01234"), ids="id", labels="who")
        )
        self.assertEqual(self.store.read().labels, (("Ann",), ("Bob",), (), (), ("Eve",)))

    def test_class_labels_are_told_to_become_one_hot_rows(self):
        with self.assertRaises(sl.InvalidArgumentError) as caught:
            self.store.append(FRIENDS, np.arange(5))
        self.assertIn("class labels, as whole numbers from 0, become one-hot rows by np.eye(classes)[values]",
                      str(caught.exception))

    def test_one_query_of_another_dimension_may_be_meant_as_several(self):
        self.store.append(FRIENDS, np.eye(5))
        numbers = np.arange(11.0)
        with self.assertRaises(sl.InvalidArgumentError) as caught:
            self.store.lookup(numbers)
        self.assertEqual(caught.exception.reason, "SHAPE_MISMATCH")
        self.assertIn("for queries of one number each, give queries[:, None]", str(caught.exception))
        self.assertEqual(len(self.store.lookup(numbers[:, None])), 11)
        with self.assertRaisesRegex(sl.InvalidArgumentError, "key_dim is 1$"):
            self.store.lookup([[1.0, 2.0]])

    def test_memories_as_of_any_index_and_watched(self):
        self.store.append(FRIENDS, np.eye(5))
        memory = self.store.memory(begin=1, end=3)
        np.testing.assert_allclose(memory.key, FRIENDS[1:3].astype(float).mean(axis=0))
        self.assertEqual(
            (memory.name, memory.begin, memory.end, memory.weight), ("average", 1, 3, 2.0)
        )
        with self.assertRaises(KeyError):
            self.store.memory("fast")
        spec = sl.MemorySpec("lately", "decayed_sum", 0.5)
        made = self.client.create_store("m", key_dim=1, value_dim=1, memories=[spec])
        named = self.client.store("m")  # It has not been told what the store keeps.
        for store, text in (
            (made, 'no memory "latel"; it keeps average, lately$'),
            (named, 'no memory "latel"$'),
        ):
            for ask in (
                lambda: store.memory("latel"),
                lambda: store.lookup([1.0], source="memory", memory="latel"),
            ):
                with self.assertRaisesRegex(sl.NotFoundError, text):
                    ask()
        named.info()
        with self.assertRaisesRegex(sl.NotFoundError, "it keeps average, lately"):
            named.memory("latel")
        made.delete()
        with self.assertRaisesRegex(sl.NotFoundError, "STORE_NOT_FOUND(?!.*keeps)"):
            made.memory("latel")
        for seconds in (-1, np.nan, np.inf, 4294967.5):
            with self.assertRaisesRegex(sl.InvalidArgumentError, "min_interval"):
                self.store.watch(min_interval=seconds)
        ends = []
        for memory in self.store.watch("slow"):
            ends.append(memory.end)
            if len(ends) == 3:
                break
            self.store.append([[1]], [[0] * 5])
        self.assertEqual(ends, [5, 6, 7])
        with self.assertRaises(TimeoutError) as caught:
            for _ in self.store.watch(deadline=0.2):
                pass
        self.assertIn("WatchMemory had no message for 0.2 s", str(caught.exception))

    def test_backups(self):
        self.store.append(FRIENDS, np.eye(5))
        self.assertEqual(self.client.create_backup("monday", deadline=60).name, "monday")
        self.assertEqual([b.name for b in self.client.backups()], ["monday"])
        again = self.client.restore_store("monday", "s", name="again", deadline=60)
        np.testing.assert_array_equal(again.read().keys, FRIENDS)
        with self.assertRaises(sl.Error) as caught:
            self.client.restore_store("monday", "s", name="cut", keep_ranges=True, deadline=60)
        self.assertEqual(caught.exception.reason, "NO_CLUSTER")

    def test_a_deadline_ends_a_call_and_names_it(self):
        with self.assertRaises(TimeoutError) as caught:
            self.store.lookup([1.0], min_revision=99, deadline=0.1)
        self.assertIsInstance(caught.exception, sl.DeadlineError)
        if not caught.exception.reason:
            self.assertIn("(Lookup had 0.1 s)", str(caught.exception))
        for deadline in (0, -1, float("nan"), float("inf")):
            with self.assertRaises(ValueError):
                self.store.info(deadline=deadline)

    def test_threads_share_a_client(self):
        self.store.append(FRIENDS, np.eye(5))
        failures = []

        def ask(temperature):
            expected = sl.attend([1.0], FRIENDS, np.eye(5), score="dot", temperature=temperature)
            for _ in range(20):
                answer = self.store.lookup([1.0], temperature=temperature)
                if not np.allclose(answer.values, expected.values, atol=2e-5):
                    failures.append(temperature)

        threads = [threading.Thread(target=ask, args=(t,)) for t in (0.2, 0.5, 1.0, 5.0)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_answers_of_disjoint_rows_merge_also_with_ones_own_attention(self):
        random = np.random.default_rng(1)
        keys, values, queries = (
            random.normal(size=(60, 1)),
            random.normal(size=(60, 5)),
            random.normal(size=(4, 1)),
        )
        self.store.append(keys[:40], values[:40])
        old, new = (
            self.store.lookup(queries, where=where, weights=5)
            for where in (sl.rows(end=25), sl.rows(begin=25))
        )
        own = sl.attend(queries, keys[40:], values[40:], score="dot")
        whole = sl.attend(queries, keys, values, score="dot")
        merged = old.merge(new).merge(own)
        bound = merged.error_bound[:, None] * np.abs(values).max() + 1e-6
        self.assertTrue((np.abs(merged.values - whole.values) <= bound).all())
        self.assertTrue((merged.error_bound < 1e-4).all())
        np.testing.assert_allclose(merged.entropy, whole.entropy, atol=1e-3)
        np.testing.assert_allclose(merged.log_sum_exp, whole.log_sum_exp, atol=2e-5)
        self.assertEqual(merged.counted_rows.tolist(), [60] * 4)
        both, full = old.merge(new).weights, self.store.lookup(queries, weights=40).weights
        for t in range(4):
            count = min(5, len(both[t]))
            self.assertEqual(both[t].positions[:count].tolist(), full[t].positions[:count].tolist())
            np.testing.assert_allclose(both[t].weights[:count], full[t].weights[:count], rtol=1e-4)
            np.testing.assert_array_equal(both[t].parts, both[t].positions >= 25)
            np.testing.assert_array_equal(both.parts[t], both[t].parts)
            self.assertFalse(both.has_ids[t].any())
            self.assertAlmostEqual(both[t].weights.sum() + both[t].remaining, 1, places=6)
        self.assertIsNone(merged.weights)

    def test_a_progress_line_is_for_terminals(self):
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        shown, silent, unwanted = Terminal(), io.StringIO(), Terminal()
        for stream, wanted in ((shown, True), (silent, True), (unwanted, False)):
            line = ProgressLine(wanted, 200, stream)
            line.update(100)
            line.update(200)
            line.end()
        self.assertIn("100% ", shown.getvalue())
        self.assertIn("200 of 200 rows", shown.getvalue())
        self.assertEqual((silent.getvalue(), unwanted.getvalue()), ("", ""))


if __name__ == "__main__":
    main()
