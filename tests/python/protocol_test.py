#!/usr/bin/python3
"""What comes of failures: errors, retries and writers, without sockets: protocol_test.py SERVER ROOT TOOL"""
import math
import pickle
import unittest

import numpy as np

import softlookup as sl
from softlookup._core import appends, details, resend, retry, wire, writing
from softlookup._core.results import WriterState
from softlookup._proto.softlookup.v1 import row_pb2
from subject import conformance, main


class ErrorsTest(unittest.TestCase):
    def test_each_code_has_its_class_and_pickles(self):
        for code, builtin in (
            ("NOT_FOUND", KeyError),
            ("INVALID_ARGUMENT", ValueError),
            ("OUT_OF_RANGE", ValueError),
            ("DEADLINE_EXCEEDED", TimeoutError),
            ("PERMISSION_DENIED", PermissionError),
            ("UNAUTHENTICATED", PermissionError),
            ("UNAVAILABLE", ConnectionError),
            ("ALREADY_EXISTS", sl.AlreadyExistsError),
            ("INTERNAL", sl.Error),
        ):
            error = details.make_error(code, "what\x1b[31m happened")
            self.assertIsInstance(error, builtin)
            self.assertIsInstance(error, sl.Error)
            self.assertEqual(str(error), f"{code}: what\\x1b[31m happened")
            error.metadata["row"] = "3"
            copy = pickle.loads(pickle.dumps(error))
            self.assertEqual(
                (type(copy), str(copy), copy.metadata), (type(error), str(error), {"row": "3"})
            )

    def test_every_case_of_the_conformance_file(self):
        for case in conformance("errors.json")["cases"]:
            with self.subTest(case["name"]):
                found = details.read_details(bytes.fromhex(case["details"]))
                self.assertEqual(found, (case["reason"], case["metadata"], case["retry_after"]))

    def test_details_are_read_and_pushback_goes_first(self):
        def field(number, data):
            return wire.length_tag(number, len(data)) + data

        def any_of(name, body):
            return field(3, field(1, b"type.googleapis.com/google.rpc." + name) + field(2, body))

        info = (
            field(1, b"QUEUE_FULL")
            + field(2, b"softlookup")
            + field(3, field(1, b"limit") + field(2, b"9\xff"))
        )
        status = b"\x08\x08" + field(2, b"full") + any_of(b"ErrorInfo", info)
        status += any_of(b"RetryInfo", field(1, b"\x08\x01\x10" + wire.varint(500_000_000)))
        trailers = [("grpc-status-details-bin", status)]
        error = details.make_error("RESOURCE_EXHAUSTED", "full", trailers)
        self.assertEqual(
            (error.reason, error.metadata, error.retry_after),
            ("QUEUE_FULL", {"limit": "9\ufffd"}, 1.5),
        )
        for pushback, seconds in (
            ("250", 0.25),
            ("-1", math.inf),
            ("soon", math.inf),
            ("", math.inf),
            ("9" * 400, math.inf),
            ("9" * 18, math.inf),
            ("1_0", math.inf),
            (" 1", math.inf),
        ):
            again = details.make_error(
                "UNAVAILABLE", "", [*trailers, ("grpc-retry-pushback-ms", pushback)]
            )
            self.assertEqual(again.retry_after, seconds)
        for cut in range(len(status)):  # Whatever can be read is read; nothing is raised.
            details.make_error("UNAVAILABLE", "", [("grpc-status-details-bin", status[:cut])])
        negative = any_of(b"RetryInfo", field(1, b"\x08" + wire.varint(2**64 - 5)))
        self.assertEqual(details.read_details(negative)[2], math.inf)


class RetryTest(unittest.TestCase):
    def test_every_case_of_the_conformance_file(self):
        data = conformance("retries.json")
        options = retry.Retry(**data["options"])
        for case in data["cases"]:
            with self.subTest(case["name"]):
                after = case.get("retry_after")
                error = sl.Error(
                    case["code"],
                    case.get("message", ""),
                    reason=case.get("reason", ""),
                    retry_after=math.inf if after == "never" else after,
                )
                found = [
                    retry.delay_before_retry(options, case["attempts"], error, jitter)
                    for jitter in (0, 1)
                ]
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

    def test_any_call_is_repeated_that_a_loading_server_refuses(self):
        error = sl.Error("UNAVAILABLE", reason="LOADING", retry_after=1.0)
        attempts = retry.Attempts(retry.Retry(), retry.Budget(9), False, math.inf)
        self.assertAlmostEqual(attempts.failed(error, 100.0, 0), 1.02)


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
            queue.acknowledge(
                given["sequence"],
                given.get("duplicate", False),
                given.get("appended", 0),
                given.get("row_count", 0),
                given.get("revision", 0),
            )
            self.assertEqual(queue.progress.row_count, given.get("row_count", 0))
            self.assertEqual(queue.progress.revision, given.get("revision", 0))

    def test_every_case_of_the_conformance_file(self):
        for case in conformance("writers.json")["cases"]:
            with self.subTest(case["name"]):
                queue = resend.ResendQueue(case["last_sequence"])
                for step in case["steps"]:
                    if "error" in step:
                        with self.assertRaises(sl.Error) as caught:
                            self.step(queue, step)
                        self.assertEqual(caught.exception.code, step["error"])
                    else:
                        self.step(queue, step)
                self.assertEqual(
                    (len(queue), queue.progress.rows), (case["unacknowledged"], case["rows"])
                )

    def machine(self, last_sequence=0, **options):
        state = WriterState("w", last_sequence)
        return writing.Machine(writing.WriterOptions("s", "w", **options), retry.Retry(), state)

    def batch(self, rows):
        return appends.Batch(
            np.arange(rows, dtype="f4")[:, None],
            np.zeros((rows, 1), "f4"),
            None,
            None,
            None,
            None,
            None,
        )

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
        self.assertEqual(
            (caught.exception.acknowledged_rows, machine.progress.reconnections), (1, 3)
        )

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


if __name__ == "__main__":
    main()
