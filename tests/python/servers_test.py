#!/usr/bin/python3
"""Both clients with several servers: servers_test.py SERVER ROOT TOOL"""
import asyncio
import contextlib
import os
import pathlib
import socket
import subprocess
import tempfile
import threading
import unittest

import grpc
import numpy as np

import softlookup as sl
import softlookup.aio
from cutting_proxy import CuttingProxy
from scripted_server import Failure, scripted_server
from softlookup._proto.softlookup.v1 import store_pb2
from subject import TOOL, local_server, main

SEED = int(os.environ.get("SOFTLOOKUP_TEST_SEED", "1"))
QUICK = sl.Retry(backoff_min=0.001, backoff_max=0.02)
ONCE = sl.Retry(attempts_max=1)


def field(number, data):
    """A field of a message that has bytes."""
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


def unavailable(reason="STORAGE_FAILED", **metadata):
    """What a server answers, with an ErrorInfo."""
    info = field(1, reason.encode())
    for key, value in metadata.items():
        info += field(3, field(1, key.encode()) + field(2, value.encode()))
    detail = field(1, b"type.googleapis.com/google.rpc.ErrorInfo") + field(2, info)
    details = b"\x1a" + bytes([len(detail) & 127 | 128, len(detail) >> 7]) + detail
    return Failure("UNAVAILABLE", "refused", [("grpc-status-details-bin", details)])


FOLLOWER = {"written": "no", "primary": "n2"}


class Server:
    """Counts its calls, and answers them with `result`."""

    def __init__(self, result=None):
        self.result = result
        self.reads = self.writes = self.checks = 0
        self._lock = threading.Lock()

    def __call__(self, method, request, metadata):
        with self._lock:
            self.checks += method == "Check"
            self.writes += method == "DeleteStore"
            self.reads += method == "GetStore"
        if method == "Check":
            return b"\x08\x01"
        if self.result is not None:
            raise self.result
        return store_pb2.Store(name="s").SerializeToString() if method == "GetStore" else b""


@contextlib.contextmanager
def closed_port():
    """An address that refuses connections."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield "127.0.0.1:%d" % bound.getsockname()[1]


@contextlib.contextmanager
def silent_port():
    """An address that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        yield "127.0.0.1:%d" % listener.getsockname()[1]


class ServersTest(unittest.TestCase):
    """each(servers, test) runs test(call) for both clients, whose servers are contexts of addresses or Servers.
    call(method, ...) calls a method of the store "s"."""

    @classmethod
    def setUpClass(cls):
        cls.loop = asyncio.new_event_loop()  # One for all: gRPC keeps to the first that it sees.
        cls.addClassCleanup(cls.loop.close)

    def each(self, make_servers, test, **options):
        for kind in ("sync", "asyncio"):
            with self.subTest(kind), contextlib.ExitStack() as stack:
                servers = make_servers()
                addresses = ",".join(
                    stack.enter_context(
                        scripted_server(server) if isinstance(server, Server) else server
                    )
                    for server in servers
                )
                options = {"deadline": 100, "retry": QUICK, **options}
                if kind == "sync":
                    client = stack.enter_context(sl.connect(addresses, **options))
                    test(lambda name: getattr(client.store("s"), name)(), *servers)
                else:
                    client = softlookup.aio.connect(addresses, **options)

                    async def made(name):
                        return await getattr(client.store("s"), name)()

                    run = self.loop.run_until_complete
                    test(lambda name: run(made(name)), *servers)
                    run(client.close())

    def test_the_first_is_used_alone(self):
        def test(call, a, b):
            for _ in range(5):
                call("info")
            call("delete")
            self.assertEqual((a.reads, a.writes, b.reads, b.writes), (5, 1, 0, 0))

        self.each(lambda: (Server(), Server()), test)

    def test_one_that_is_down_or_says_nothing_is_passed_over_by_any_call(self):
        def test(call, dead, up):
            call("delete")
            call("info")
            # Once it is found, no other is asked before it.
            self.assertEqual((up.reads, up.writes, up.checks), (1, 1, 1))

        self.each(lambda: (closed_port(), Server()), test, retry=ONCE)
        self.each(lambda: (silent_port(), Server()), test, retry=ONCE)

    def test_if_none_is_up_the_error_says_why(self):
        def test(call, *_):
            for name in ("info", "delete"):
                with self.assertRaisesRegex(sl.UnavailableError, "refused"):
                    call(name)

        self.each(lambda: (closed_port(), closed_port()), test, retry=sl.Retry(attempts_max=3))

    def test_only_what_is_safe_to_repeat_is_repeated_when_a_connection_breaks(self):
        def test(call, a, b):
            with self.assertRaisesRegex(sl.UnavailableError, "gone"):
                call("delete")
            self.assertEqual(b.writes, 0)
            call("delete")
            self.assertEqual((a.writes, b.writes), (1, 1))

        self.each(lambda: (Server(Failure("UNAVAILABLE", "gone")), Server()), test)

        def test_read(call, a, b):
            call("info")
            self.assertEqual((a.reads, b.reads), (1, 1))

        self.each(lambda: (Server(Failure("UNAVAILABLE", "gone")), Server()), test_read)

    def test_one_that_loads_is_left_and_not_come_back_to(self):
        def test(call, a, b):
            for _ in range(3):
                call("delete")
            self.assertEqual((a.writes, b.writes), (1, 3))

        self.each(lambda: (Server(unavailable("LOADING")), Server()), test)

    def test_a_write_finds_the_primary(self):
        def test(call, a, b, primary):
            for _ in range(3):
                call("delete")
            self.assertEqual((a.writes, b.writes, primary.writes), (1, 1, 3))

        self.each(
            lambda: (Server(unavailable(**FOLLOWER)), Server(unavailable(**FOLLOWER)), Server()),
            test,
        )

    def test_a_write_that_all_refuse_is_tried_once_at_each(self):
        def test(call, a, b, c):
            with self.assertRaises(sl.UnavailableError) as caught:
                call("delete")
            self.assertEqual(caught.exception.metadata, FOLLOWER)
            self.assertEqual((a.writes, b.writes, c.writes), (1, 1, 1))

        self.each(lambda: tuple(Server(unavailable(**FOLLOWER)) for _ in range(3)), test)

    def test_a_write_that_may_have_been_made_goes_to_no_other(self):
        def test(call, a, b):
            with self.assertRaises(sl.UnavailableError):
                call("delete")
            self.assertEqual((a.writes, b.writes), (1, 0))

        for metadata in (
            {"written": "unknown", "primary": "n2"},
            {"primary": "n2"},
            {"written": "no"},
        ):
            self.each(lambda: (Server(unavailable(**metadata)), Server()), test)

    def test_calls_go_on_at_the_next_when_the_one_in_use_stops(self):
        with local_server() as server, server.connect() as direct:
            direct.create_store("s", key_dim=1, value_dim=1)
            for connect in (self.sync_infos, self.aio_infos):
                first, second = (CuttingProxy(server.address, SEED, 0, 1, 1) for _ in range(2))
                with second, connect(f"{first.address},{second.address}") as infos:
                    infos()
                    first.close()
                    infos()

    @contextlib.contextmanager
    def sync_infos(self, addresses):
        with sl.connect(addresses, deadline=60, retry=QUICK) as client:
            yield lambda: [client.store("s").info() for _ in range(3)]

    @contextlib.contextmanager
    def aio_infos(self, addresses):
        client = softlookup.aio.connect(addresses, deadline=60, retry=QUICK)

        async def infos():
            for _ in range(3):
                await client.store("s").info()

        yield lambda: self.loop.run_until_complete(infos())
        self.loop.run_until_complete(client.close())

    def test_a_certificate_names_the_host_of_its_own_server(self):
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run([TOOL, "tls", "init", directory], check=True, capture_output=True)
            path = pathlib.Path(directory)
            pair = (path / "server-key.pem").read_bytes(), (path / "server.pem").read_bytes()
            credentials = grpc.ssl_server_credentials([pair])
            right, wrong = Server(), Server()
            # The certificate names 127.0.0.1.
            self.each(
                lambda: (
                    scripted_server(wrong, "127.0.0.2", credentials),
                    scripted_server(right, "127.0.0.1", credentials),
                ),
                lambda call, *_: call("info"),
                tls_ca=str(path / "ca.pem"),
            )
            self.assertEqual((right.reads, wrong.reads), (2, 0))


class SeveralWaysTest(unittest.TestCase):
    """Writers over two ways to one server, as two routers are, of which each is cut again and again."""

    CUTS = 40

    @contextlib.contextmanager
    def ways(self):
        """(a client of the server, both addresses, whether they were cut often enough)"""
        with local_server() as server, server.connect() as direct:
            direct.create_store("s", key_dim=2, value_dim=1)
            with CuttingProxy(server.address, SEED, self.CUTS, 20_000, 1_500) as a, CuttingProxy(
                server.address, SEED + 1, self.CUTS, 20_000, 1_500
            ) as b:
                yield direct, f"{a.address},{b.address}", lambda: a.cuts + b.cuts >= self.CUTS
                self.assertGreater(min(a.cuts, b.cuts), 0)

    def expect_each_row_once(self, direct, rows):
        there = direct.store("s").read(deadline=60)
        np.testing.assert_array_equal(there.values[:, 0], np.arange(rows))

    @staticmethod
    def batch(begin):
        values = np.arange(begin, begin + 20, dtype=np.float32)[:, None]
        return np.ones((20, 2), np.float32), values

    def test_a_writer_leaves_each_row_once(self):
        with self.ways() as (direct, addresses, is_enough):
            rows = 0
            with sl.connect(addresses, retry=QUICK) as client:
                with client.store("s").writer("w") as writer:
                    while not is_enough():
                        writer.append(*self.batch(rows))
                        rows += 20
            self.assertEqual(writer.progress.rows, rows)
            self.expect_each_row_once(direct, rows)

    def test_an_asyncio_writer_leaves_each_row_once(self):
        async def write(addresses, is_enough):
            rows = 0
            async with softlookup.aio.connect(addresses, retry=QUICK) as client:
                async with client.store("s").writer("w") as writer:
                    while not is_enough():
                        await writer.append(*self.batch(rows))
                        rows += 20
            return rows

        with self.ways() as (direct, addresses, is_enough):
            self.expect_each_row_once(direct, asyncio.run(write(addresses, is_enough)))


if __name__ == "__main__":
    main()
