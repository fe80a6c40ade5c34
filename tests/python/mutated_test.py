#!/usr/bin/python3
"""Answers with random changes are results or errors, and nothing else: mutated_test.py SERVER ROOT TOOL

A failure prints the seed; with it in SOFTLOOKUP_TEST_SEED the failing change comes first.
"""
import os
import random
import unittest
import warnings

import numpy as np

import softlookup as sl
from softlookup._core import appends, attention, details, row_calls, stores, wire
from softlookup._core.call import guard
from softlookup._proto.softlookup.admin.v1 import admin_pb2
from softlookup._proto.softlookup.v1 import lookup_pb2, memory_pb2, row_pb2, store_pb2
from subject import main

SEED = int(os.environ.get("SOFTLOOKUP_TEST_SEED", "1"))
CHANGES = 2000  # Of each answer.


def matrix_to(message, array, kind=0):
    message.rows, message.cols = array.shape
    message.data, message.element_type = array.tobytes(), kind


def answers():
    """(name, whole answer, what the client does with it)."""
    floats = np.arange(8, dtype="<f4").reshape(2, 4)
    lookup = lookup_pb2.LookupResponse(revision=3, row_count=9)
    matrix_to(lookup.values, floats)
    for _ in range(2):
        lookup.stats.add(log_sum_exp=1.0, counted_rows=5, entropy=0.5, empty=False)
        lookup.weights.add(positions=[1, 2], weights=[0.5, 0.25], scores=[1, 2], ids=[7, 0])
    for weights in (None, "all"):
        options = attention.Options(weights=weights)
        asked = attention.Lookup("s", floats, options, None, None, None, 0, False, False, None)
        yield f"lookup, weights {weights}", lookup, asked.call(0, asked.rows).result
    page = row_pb2.ReadRowsResponse(revision=5)
    for i in range(3):
        row = page.rows.add(position=i, id=i, labels=["a"])
        matrix_to(row.key, floats[:1])
        matrix_to(row.value, floats[:1])
    yield "rows", page, row_calls.read_rows("s", None, True, True, 0, None).result
    memory = memory_pb2.Memory(name="average", end=3, weight=3)
    matrix_to(memory.key, floats[:1].astype("<f8"), 2)
    matrix_to(memory.value, floats[:1].astype("<f8"), 2)
    yield "memory", memory, row_calls.get_memory("s", "m", None, None, None).result
    store = store_pb2.Store(name="s", key_dim=4, value_dim=4, labels={"a": "b"}, temperature=2.0)
    store.create_time.seconds = 1_700_000_000
    matrix_to(store.memories.add(name="g", kind=4).gate, floats[:1])
    matrix_to(store.projection.query, floats)
    yield "store", store, stores.get("s", None).result
    listed = store_pb2.ListStoresResponse(stores=[store], next_page_token="t")
    yield "stores", listed, stores.list_page("", "", None).result
    backups = admin_pb2.ListBackupsResponse()
    backups.backups.add(name="b").create_time.seconds = 5
    yield "backups", backups, stores.list_backups(None).result
    receipt = row_pb2.AppendResponse(appended_count=2, row_count=2, revision=2, memories=[memory])

    def take(data):
        tally = appends.Tally()
        guard("Append", tally.add, data, 2)
        return guard("Append", tally.receipt)

    yield "append", receipt, take


class MutatedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Protobuf writes what it finds wrong to standard error, a line a message.
        warnings.simplefilter("ignore", RuntimeWarning)
        spare, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 2)
        os.close(nothing)
        cls.addClassCleanup(os.close, spare)
        cls.addClassCleanup(os.dup2, spare, 2)

    def change(self, data, draw):
        out = bytearray(data)
        for _ in range(draw.randint(1, 3)):
            at = draw.randrange(len(out))
            kind = draw.randrange(4)
            if kind == 0:
                out[at] = draw.randrange(256)
            elif kind == 1:
                del out[at : at + draw.randint(1, 8)]
            elif kind == 2:
                out[at:at] = draw.randbytes(draw.randint(1, 8))
            else:
                begin = draw.randrange(len(out))
                out[at:at] = out[begin : begin + draw.randint(1, 30)]
            if not out:
                break
        return bytes(out)

    def look_at(self, result):
        """Reads all that a program could."""
        if isinstance(result, sl.Answer):
            for name in (
                "values",
                "log_sum_exp",
                "entropy",
                "counted_rows",
                "empty",
                "summed_rows",
            ):
                getattr(result, name)
            if result.weights is not None:
                for name in ("positions", "ids", "weights", "scores", "remaining", "counts"):
                    getattr(result.weights, name)
        elif isinstance(result, sl.Rows):
            list(result)
        repr(result)

    def test_an_answer_with_changes_is_a_result_or_an_error(self):
        results = errors = 0
        for name, message, take in answers():
            whole = message.SerializeToString()
            self.look_at(take(whole))
            for i in range(CHANGES):
                seed = SEED + i
                with self.subTest(name, SOFTLOOKUP_TEST_SEED=seed):
                    data = self.change(whole, random.Random(seed))
                    try:
                        self.look_at(take(data))
                        results += 1
                    except sl.Error as error:
                        self.assertEqual(error.code, "INTERNAL")
                        errors += 1
        self.assertGreater(results, 100)
        self.assertGreater(errors, 100)

    def test_trailers_with_changes_are_read_or_left_out(self):
        def part(number, data):
            return wire.length_tag(number, len(data)) + data

        info = part(1, b"R") + part(3, part(1, b"k") + part(2, b"v"))
        status = part(3, part(1, b"type.googleapis.com/google.rpc.ErrorInfo") + part(2, info))
        for i in range(2000):
            data = self.change(status, random.Random(SEED + i))
            error = details.make_error("UNAVAILABLE", "m", [("grpc-status-details-bin", data)])
            self.assertIsInstance(str(error), str)


if __name__ == "__main__":
    print(f"SOFTLOOKUP_TEST_SEED={SEED}")
    main()
