#!/usr/bin/python3
"""Processes: those that fork, certificates and tokens, servers for tests: process_test.py SERVER ROOT TOOL"""
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest
import unittest.mock

import softlookup as sl
import softlookup.testing
from subject import TOOL, local_server, main


#: The first lines of a program that forks.
FORKING = textwrap.dedent(
    """
    import os, sys, traceback
    import softlookup as sl

    def run_in_child(run):
        child = os.fork()
        if child == 0:
            try:
                run()
                os._exit(0)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code == os.EX_USAGE:
            os._exit(code)
        assert code == 0, code
    """
)


def run_forking(program, attempts=4):
    """What a program that forks prints. Runs it again where os.fork() itself fails in gRPC 1.51, which it does in two ways.

    gRPC joins its threads before the fork, and waits for ever if one of them takes up work meanwhile, such as what is left
    of a call that has just ended. And within os.fork() it ends the child with EX_USAGE if it could not shut down there.
    """
    for attempt in range(attempts):
        with local_server() as server:
            command = [sys.executable, "-c", FORKING + textwrap.dedent(program), server.address]
            try:
                result = subprocess.run(
                    command, timeout=60, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
                )
            except subprocess.TimeoutExpired:
                if attempt + 1 == attempts:
                    raise
                continue
        if result.returncode != os.EX_USAGE:
            return result.stdout
    raise AssertionError("gRPC could not fork")


class ForkTest(unittest.TestCase):
    def test_a_forked_process_makes_its_own_connection(self):
        # A program of its own, because a fork takes all threads of this one with it.
        program = """
            client = sl.connect(sys.argv[1])
            assert client.stores() == []

            def use():
                assert client.stores() == []
                with sl.connect(sys.argv[1]) as other:
                    assert other.health()

            for _ in range(3):
                run_in_child(use)
                assert client.stores() == []
            print("done")
        """
        self.assertEqual(run_forking(program), "done\n")

    def test_a_writer_stays_with_its_process(self):
        program = """
            client = sl.connect(sys.argv[1])
            store = client.create_store("s", key_dim=1, value_dim=1)
            with store.writer("w") as writer:

                def use():
                    for call in (lambda: writer.append([[1]], [[1]]), writer.finish):
                        try:
                            call()
                        except ValueError:
                            continue
                        raise AssertionError("the child uses the writer")
                    writer.cancel()

                run_in_child(use)
                writer.append([[1]], [[1]])
            print(store.info().row_count)
        """
        self.assertEqual(run_forking(program), "1\n")


class SecurityTest(unittest.TestCase):
    def test_certificates_and_tokens(self):
        with tempfile.TemporaryDirectory() as directory:

            def tool(*arguments):
                return subprocess.run(
                    [TOOL, *arguments], check=True, stdout=subprocess.PIPE, cwd=directory
                ).stdout

            tool("tls", "init", "tls", "--host", "localhost")
            for name, role in (("reader", "read"), ("owner", "manage")):
                tool(
                    "auth",
                    "add",
                    "auth.json",
                    name,
                    "--role",
                    role,
                    "--stores",
                    "a/*",
                    "--token-out",
                    name,
                )
            path = pathlib.Path(directory)
            flags = [
                "--tls-certificate=tls/server.pem",
                "--tls-key=tls/server-key.pem",
                "--tls-client-ca=tls/ca.pem",
                "--auth=auth.json",
            ]
            flags = [f.replace("=", f"={directory}/") for f in flags]
            with local_server(flags=flags) as server:
                address = server.address.replace("127.0.0.1", "localhost")
                tls = dict(
                    tls_ca=str(path / "tls/ca.pem"),
                    tls_certificate=str(path / "tls/client.pem"),
                    tls_key=str(path / "tls/client-key.pem"),
                )

                def connect(token=None, **changes):
                    client = sl.connect(
                        address,
                        **{**tls, "token_file": token and str(path / token), **changes},
                        deadline=10,
                    )
                    self.addCleanup(client.close)
                    return client

                owner = connect("owner")
                owner.create_store("a/s", key_dim=1, value_dim=1).append([[1]], [[2]])
                self.assertEqual(
                    connect("reader").store("a/s").lookup([1.0]).values.tolist(), [[2]]
                )
                with self.assertRaises(PermissionError) as caught:
                    connect("reader").store("a/s").append([[1]], [[2]])
                self.assertEqual(caught.exception.code, "PERMISSION_DENIED")
                with self.assertRaises(PermissionError) as caught:
                    connect().store("a/s").info()
                self.assertEqual(caught.exception.code, "UNAUTHENTICATED")
                tool("tls", "init", "other", "--host", "localhost")
                # A failed handshake is not repeated until the deadline.
                with self.assertRaises(ConnectionError):
                    connect("owner", tls_ca=str(path / "other/ca.pem")).stores()
                for fields, text in (
                    (dict(tls_key=str(path / "tls/ca.pem")), "private key"),
                    (dict(tls_ca=str(path / "none")), "No such file"),
                    (dict(tls_certificate=str(path / "tls/client-key.pem")), "no PEM certificate"),
                ):
                    with self.assertRaisesRegex(ValueError, text):
                        connect("owner", **fields)
            (path / "bad").write_text("two words")
            with self.assertRaisesRegex(ValueError, "printable ASCII"):
                sl.connect("a:1", token_file=str(path / "bad"))


class LocalServerTest(unittest.TestCase):
    def test_a_server_that_does_not_start_says_why(self):
        with self.assertRaises(FileNotFoundError), softlookup.testing.local_server(
            "no-such-server"
        ):
            pass
        with self.assertRaisesRegex(RuntimeError, "no-such-flag"), local_server(
            flags=["--no-such-flag"]
        ):
            pass
        # What the environment says is of another server.
        with unittest.mock.patch.dict(
            "os.environ", SOFTLOOKUP_TOKEN_FILE="/none", SOFTLOOKUP_TLS_CA="/none"
        ), local_server() as server, server.connect(deadline=60) as client:
            self.assertEqual(client.stores(), [])
        with local_server() as server:
            process = server.process
            self.assertIsNone(process.poll())
        self.assertEqual(process.returncode, 0)


if __name__ == "__main__":
    main()
