#!/usr/bin/python3
"""What is sent: bytes, arrays, batches, options, settings: core_test.py SERVER ROOT TOOL"""
import struct
import unittest

import numpy as np

import softlookup as sl
from softlookup._core import appends, arrays, attention, call, row_calls, settings, stores, wire, writing
from softlookup._proto.softlookup.v1 import attention_pb2, lookup_pb2, matrix_pb2, row_pb2
from subject import main


class WireTest(unittest.TestCase):
    def test_a_matrix_is_what_protobuf_makes_of_it(self):
        for dtype, kind in (("<f4", 0), ("<f8", 2)):
            array = np.arange(12, dtype=dtype).reshape(3, 4)
            data = wire.join(lookup_pb2.LookupRequest(store="s").SerializeToString(), [(2, array)])
            expected = lookup_pb2.LookupRequest(
                store="s",
                queries=matrix_pb2.Matrix(rows=3, cols=4, element_type=kind, data=array.tobytes()),
            )
            self.assertEqual(lookup_pb2.LookupRequest.FromString(data), expected)
            back = wire.decode_matrix(memoryview(expected.queries.SerializeToString()))
            self.assertTrue(
                (back == array).all() and back.dtype == dtype and not back.flags.writeable
            )

    def test_an_array_is_viewed_and_not_copied(self):
        data = matrix_pb2.Matrix(rows=1, cols=2, data=b"\0" * 8).SerializeToString()
        self.assertIsNotNone(wire.decode_matrix(memoryview(data)).base)
        contiguous = np.zeros((4, 4), np.float32)
        self.assertTrue(
            np.shares_memory(arrays.contiguous(arrays.matrix("x", contiguous)), contiguous)
        )
        self.assertTrue(np.shares_memory(arrays.matrix("x", contiguous.T), contiguous))

    def test_numbers_are_read_as_well(self):
        data = matrix_pb2.Matrix(rows=1, cols=3, values=[1, 2, 3]).SerializeToString()
        self.assertEqual(wire.decode_matrix(memoryview(data)).tolist(), [[1, 2, 3]])

    def test_malformed_bytes_are_refused(self):
        for data in (
            b"\x22",
            b"\x22\x7f",
            b"\x08" + b"\xff" * 11,
            b"\x0b",
            b"\x22\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
            matrix_pb2.Matrix(rows=2, cols=2, data=b"\0" * 12).SerializeToString(),
            matrix_pb2.Matrix(rows=2**32 - 1, cols=2**32 - 1).SerializeToString(),
            matrix_pb2.Matrix(rows=1, cols=1, element_type=4, data=b"\0").SerializeToString(),
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x00",
        ):
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
        for value, text in (
            ([[1e39]], "row 0, column 0"),
            (["x"], "elements of type"),
            (3.0, "shape"),
            ([[1j]], "elements of type"),
            ([[1, 2], [3]], "keys is no array"),
            (np.zeros(11), r"\[11\], not \[rows, columns\]; for rows of one .*keys\[:, None\]"),
            (np.zeros((1, 1, 1)), "shape"),
        ):
            with self.assertRaisesRegex(sl.InvalidArgumentError, text):
                arrays.check_finite("keys", arrays.matrix("keys", value))

    def test_large_numbers_whose_sum_overflows_are_finite(self):
        arrays.check_finite("keys", np.full((2, 1000), 3e38, np.float32))
        arrays.check_finite("keys", np.full((2, 1000), 3e38))

    def test_other_types_and_layouts_become_float32_rows(self):
        for value in (
            [[1, 2]],
            np.array([[1, 2]], ">f4"),
            np.array([[1, 2]], np.float16),
            np.array([[True, True]]),
        ):
            array = arrays.contiguous(arrays.matrix("x", value))
            self.assertEqual((array.dtype.str, array.shape), ("<f4", (1, 2)))
        self.assertEqual(arrays.contiguous(arrays.matrix("x", np.zeros((2, 3)).T)).dtype.str, "<f8")


class AppendsTest(unittest.TestCase):
    def batch(self, keys, values, **fields):
        given = dict(inputs=None, ids=None, labels=None, on_conflict=None, acknowledge=None)
        return appends.Batch(keys, values, **{**given, **fields})

    def test_rows_are_cut_to_the_limits_and_each_request_is_whole(self):
        keys, values = np.arange(10.0)[:, None], np.arange(20.0).reshape(10, 2)
        batch = self.batch(
            keys,
            values,
            ids=range(10),
            labels=[str(i) for i in range(10)],
            batch_rows=4,
            return_memories=["m"],
        )
        self.assertEqual(batch.cuts(), [(0, 4), (4, 8), (8, 10)])
        rows = []
        for data, count in batch.requests("s"):
            request = row_pb2.AppendRequest.FromString(data)
            self.assertEqual(
                (request.store, len(request.ids), request.keys.rows), ("s", count, count)
            )
            for i in range(count):
                value = struct.unpack_from("<2d", request.values.data, 16 * i)
                rows.append((request.ids[i], list(request.row_labels[i].labels), value))
        self.assertEqual(rows, [(i, [str(i)], (2 * i, 2 * i + 1)) for i in range(10)])
        self.assertEqual(list(request.return_memories), ["m"])
        wide = self.batch(
            np.zeros((300, 1 << 16), np.float32), np.zeros((300, 1 << 16), np.float32)
        )
        self.assertEqual(wide.cuts()[0], (0, 8))  # 4 MiB.

    def test_a_row_without_labels_may_be_written_as_in_a_file_or_in_python(self):
        ones = np.ones((5, 1))
        batch = self.batch(ones, ones, labels=["", None, [], "a", ("b", "c")])
        [(data, _)] = batch.requests("s")
        request = row_pb2.AppendRequest.FromString(data)
        self.assertEqual([list(row.labels) for row in request.row_labels], [[], [], [], ["a"], ["b", "c"]])

    def test_wrong_arguments_are_named(self):
        ok = np.zeros((2, 1))
        for fields, field in (
            (dict(ids=[1]), "ids"),
            (dict(ids=[1, -2]), "ids"),
            (dict(ids=["a", "b"]), "ids"),
            (dict(ids=[1.0, 2]), "ids"),
            (dict(ids=np.array([1.0, 2])), "ids"),
            (dict(ids=np.array([1, -2])), "ids"),
            (dict(labels=["a"]), "labels"),
            (dict(labels="ab"), "labels"),
            (dict(labels=[1, 2]), "labels"),
            (dict(labels=[["a"], [3]]), "labels"),
            (dict(labels=["a", "\ud800"]), "labels"),
            (dict(on_conflict="x"), "on_conflict"),
            (dict(acknowledge=3), "acknowledge"),
            (dict(batch_rows=0), "batch_rows"),
            (dict(batch_rows=[1]), "batch_rows"),
            (dict(inputs=ok), "keys"),
            (dict(return_memories="m"), "return_memories"),
        ):
            with self.subTest(fields), self.assertRaises(
                (sl.InvalidArgumentError, TypeError)
            ) as caught:
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
        for response in (
            row_pb2.AppendResponse(appended_count=3),
            row_pb2.AppendResponse(duplicate=True),
            row_pb2.AppendResponse(sequence=1),
        ):
            with self.assertRaisesRegex(sl.Error, "INTERNAL"):
                appends.Tally().add(response.SerializeToString(), 2)


class AttentionTest(unittest.TestCase):
    def test_wrong_options_are_named(self):
        for fields, field in (
            (dict(weights="most"), "weights"),
            (dict(weights=0), "weights"),
            (dict(weights=True), "weights"),
            (dict(weights=-1), "weights"),
            (dict(weights=[1]), "weights"),
            (dict(weights=np.array([1, 2])), "weights"),
            (dict(score=["dot"]), "score"),
            (dict(mode=3), "mode"),
            (dict(top_k=[1]), "top_k"),
            (dict(temperature=[0.1, 1.0]), "temperature"),
            (dict(temperature=np.array([0.1, 1.0])), "temperature"),
            (dict(min_score=[0.1]), "min_score"),
            (dict(recency_decay=(0.5,)), "recency_decay"),
            (dict(max_error=[0.1]), "max_error"),
            (dict(causal=[True]), "causal"),
            (dict(causal=True, causal_offset=[1]), "causal_offset"),
            (dict(causal_offset=np.array([1, 2])), "causal_offset"),
            (dict(score="l2"), "score"),
            (dict(mode="soft "), "mode"),
            (dict(top_k=-1), "top_k"),
            (dict(temperature="hot"), "temperature"),
            (dict(causal=True, causal_offset=2**64), "causal_offset"),
            (dict(causal_offset=1), "causal_offset"),
        ):
            with self.subTest(fields), self.assertRaises(sl.InvalidArgumentError) as caught:
                attention.Options(**fields).message()
            self.assertEqual(caught.exception.metadata["field"], field)
        for fields, text in (
            (dict(top_k=-1), "top_k is -1, and must be a whole number in [0, 2^32)"),
            (dict(temperature=[0.1]), "temperature is [0.1], and must be one number"),
        ):
            with self.assertRaises(sl.InvalidArgumentError) as caught:
                attention.Options(**fields).message()
            self.assertEqual(caught.exception.message, text)
        with self.assertRaisesRegex(ValueError, "ids is empty"):
            attention.filter_message(sl.rows(ids=[]))
        # As a condition that is left out, it would delete all rows.
        with self.assertRaisesRegex(ValueError, "labels is empty"):
            attention.filter_message(sl.rows(last=9, labels=[]))
        for ids in ([1.9], ["7"], np.array([1.0])):
            for name in ("ids", "without_ids"):
                with self.assertRaisesRegex(sl.InvalidArgumentError, f"{name} are whole numbers"):
                    sl.rows(**{name: ids})
        self.assertEqual(sl.rows(ids=np.array([1, 2])).ids, (1, 2))
        with self.assertRaisesRegex(ValueError, "labels is one text"):
            sl.rows(labels="ab")

    def refuse(self, field, text, make):
        with self.assertRaisesRegex(sl.InvalidArgumentError, text) as caught:
            make()
        self.assertEqual(caught.exception.metadata, {"field": field})

    def lookup(self, **given):
        fields = dict(where=None, source=None, memory=None, min_revision=0, linearizable=False, inputs=False)
        options = attention.Options()
        return attention.Lookup("s", [1.0], options, deadline=None, **{**fields, **given})

    def test_what_a_source_leaves_out_is_refused(self):
        for source in (None, "rows", "rows_and_memory"):
            with self.subTest(source):
                self.refuse("memory", "goes with", lambda: self.lookup(source=source, memory="m"))
        for where in (
            sl.rows(last=3),
            sl.rows(begin=0),
            sl.rows(end=3, labels=["a"]),
            sl.rows(without_ids=[1]),
        ):
            with self.subTest(where):
                self.refuse(
                    "where", "nothing else", lambda: self.lookup(source="memory", where=where)
                )
        for given in (
            dict(source="memory", memory="m", where=sl.rows(end=3)),
            dict(source="memory", where=sl.rows()),
            dict(source="rows_and_memory", where=sl.rows(last=3)),
        ):
            self.lookup(**given).call(0, 1)

    def test_a_filter_is_one_that_rows_makes(self):
        for where in (dict(last=3), 3, "a", ()):
            with self.subTest(where):
                self.refuse("where", r"softlookup\.rows", lambda: self.lookup(where=where))

    def test_attend_refuses_what_does_not_go_together(self):
        one, projection = [[1.0]], sl.Projection([[1.0]], [[1.0]], [[1.0]])
        for field, given in (
            ("values", dict(queries=one, keys=one)),
            ("inputs", dict(queries=one, keys=one, values=one, inputs=one)),
            ("inputs", dict(queries=one)),
            ("queries", dict(keys=one, values=one)),
            ("projection", dict(queries=one, keys=one, values=one, projection=projection)),
            ("inputs", dict(queries=one, inputs=one)),
        ):
            with self.subTest(field=field, given=sorted(given)):
                self.refuse(field, "", lambda: self.attend(**given))
        for given in (
            dict(queries=one, keys=one, values=one),
            dict(inputs=one),
            dict(inputs=one, projection=projection),
            dict(queries=one, inputs=one, projection=projection),
        ):
            self.attend(**given)
        self.refuse(
            "causal_offset", "causal=True", lambda: sl.attend(one, one, one, causal_offset=1)
        )

    def attend(self, **given):
        names = ("queries", "keys", "values", "inputs", "projection")
        matrices = {name: given.get(name) for name in names}
        return attention.attend(**matrices, num_heads=1, options=attention.Options(), deadline=None)

    def test_one_number_is_not_several(self):
        one = [[1.0]]
        for field, make in (
            ("temperature", lambda: sl.attend(one, one, one, temperature=[0.1, 1.0])),
            ("score", lambda: sl.attend(one, one, one, score=["dot"])),
            ("memory", lambda: self.lookup(source="memory", memory=["m"])),
            ("min_revision", lambda: self.lookup(min_revision=[1])),
            ("deadline", lambda: call.check_seconds("deadline", [1])),
            ("min_interval", lambda: row_calls.watch_memory("s", "m", "1")),
            ("outage_max", lambda: writing.WriterOptions("s", "w", outage_max="1")),
        ):
            with self.subTest(field):
                self.refuse(field, f"{field} is ", make)
        call.check_seconds("deadline", np.array(1.0))
        call.check_seconds("deadline", np.float32(1.0))

    def test_words_may_have_hyphens(self):
        self.assertEqual(
            attention.Options(score="scaled-dot").message().score, attention_pb2.SCORE_SCALED_DOT
        )


class StoresTest(unittest.TestCase):
    def create(self, memories, **fields):
        names = ("num_heads", "score", "temperature", "storage", "projection", "labels", "deadline")
        given = {**dict.fromkeys(names), "memories": memories, **fields}
        return next(stores.create("s", 2, 1, **given))

    def test_a_storage_is_one_that_a_server_takes(self):
        for storage in ("float16", "float64"):
            with self.assertRaisesRegex(
                sl.InvalidArgumentError, "it can be float32, bfloat16, int8$"
            ):
                self.create((), storage=storage)

    def test_wrong_memories_are_named(self):
        spec = sl.MemorySpec
        for memories, field, text in (
            ({"m": 0.5}, "memories", "dict"),
            (spec("m", "average"), "memories", "MemorySpec"),
            (["m"], "memories", "str"),
            ([spec("m", "mean")], "memories.kind", "mean"),
            ([spec("m", "decayed_average")], "memories.decay", "decay of m, .* is missing"),
            ([spec("m", "decayed-sum")], "memories.decay", "is missing"),
            ([spec("m", "gated")], "memories.gate", "gate of m, .* is missing"),
        ):
            with self.subTest(memories), self.assertRaisesRegex(
                sl.InvalidArgumentError, text
            ) as caught:
                self.create(memories)
            self.assertEqual(caught.exception.metadata["field"], field)
        gate = [0.0, 1.0, 1.0]
        good = (spec("a", "average"), spec("b", "decayed_sum", 0.5), spec("c", "gated", gate=gate))
        self.create(good)

    def test_labels_of_a_store_are_a_dict(self):
        for labels in (["a"], "a", 1):
            with self.subTest(labels), self.assertRaisesRegex(ValueError, "a dict of texts"):
                next(stores.update("s", None, None, labels, None, None))


class SettingsTest(unittest.TestCase):
    def test_addresses(self):
        for address in ("a:1", "[::1]:7471", "127.0.0.1:65535", "dns:///a:1", "unix:/run/x"):
            settings.check_address(address)
        for address in (
            "",
            "a",
            "a:0",
            "a:65536",
            ":7471",
            "::1:7471",
            "http://a:1",
            "a b:1",
            "a:1\n",
            7471,
        ):
            with self.subTest(address), self.assertRaisesRegex(ValueError, "server address"):
                settings.check_address(address)

    def test_several_addresses(self):
        for servers, addresses in (
            ("a:1", ("a:1",)),
            ("a:1,[::1]:2,dns:///b:3", ("a:1", "[::1]:2", "dns:///b:3")),
            ("ipv4:10.0.0.1:1,10.0.0.2:1", ("ipv4:10.0.0.1:1,10.0.0.2:1",)),
            ("unix:/run/a,b", ("unix:/run/a,b",)),
        ):
            self.assertEqual(settings.Settings(servers).addresses, addresses)
            settings.check_servers(servers)
        for servers in ("a:1,,b:2", "a:1,", ",a:1", "a:1, b:2", "a:1,b", ",", "", 7471):
            with self.subTest(servers), self.assertRaisesRegex(ValueError, "server address"):
                settings.check_servers(servers)
        with self.assertRaisesRegex(ValueError, "server address 'b' in 'a:1,b' is not HOST:PORT"):
            settings.check_servers("a:1,b")

    def test_secrets_are_not_shown(self):
        self.assertNotIn(
            "secret", repr(settings.Settings("a:1", token="secret", tls_key=b"secret"))
        )


if __name__ == "__main__":
    main()
