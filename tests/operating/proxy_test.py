#!/usr/bin/python3
"""Does examples/proxy/haproxy.cfg keep strangers out?  proxy_test.py SERVER ROOT

Starts HAProxy with that file in front of a real server, both on free loopback ports. Every attack comes
from an address of its own, as HAProxy counts by source; lookups go on meanwhile. Needs haproxy, openssl
and what tests/python needs for the package; exits with 77 where haproxy is not installed.
"""
import contextlib
import hashlib
import json
import os
import re
import select
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings

SECONDS = 60  # For each thing that is awaited.
TOKEN = "A" * 43
HEADERS, RST_STREAM, SETTINGS, CONTINUATION = 1, 3, 4, 9
END_STREAM, END_HEADERS = 1, 4
MIB = 1 << 20

SERVER, ROOT = sys.argv[1:3]
HELP = subprocess.run([SERVER, "--help"], check=True, capture_output=True, text=True, timeout=SECONDS).stdout


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def wait_until(ready, what):
    pause = threading.Event()
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if ready():
            return
        pause.wait(0.05)
    raise AssertionError(f"not within {SECONDS} s: {what}")


# HTTP/2 by hand: no client library would send what follows.

def frame(kind, flags, stream, payload=b""):
    return (len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload)


def length(number, bits=7):
    """A number as HPACK has it (RFC 7541, 5.1)."""
    most = (1 << bits) - 1
    if number < most:
        return bytes((number,))
    out, number = bytearray((most,)), number - most
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out) + bytes((number,))


def header(name, value, first=b"\0"):
    """A literal header, which is not indexed, or with first=b"\\x40", is."""
    name, value = name.encode(), value.encode()
    return first + length(len(name)) + name + length(len(value)) + value


def request(path="/softlookup.v1.SoftLookup/GetStore", content_type="application/grpc", token=TOKEN, method="POST"):
    """A call's headers; as to the shape of its token, it passes."""
    names = {":method": method, ":scheme": "https", ":authority": "localhost", ":path": path, "te": "trailers",
             "content-type": content_type, **({"authorization": f"Bearer {token}"} if token else {})}
    return b"".join(header(name, value) for name, value in names.items())


class Attacker:
    """A TLS connection from `source`, an address of 127.0.0.0/8."""

    def __init__(self, source, port, certificate, alpn="h2"):
        context = ssl.create_default_context(cafile=certificate)
        context.set_alpn_protocols([alpn])
        plain = socket.create_connection(("127.0.0.1", port), SECONDS, source_address=(source, 0))
        self.socket = context.wrap_socket(plain, server_hostname="localhost")
        self.sent, self.started, self.received = 0, time.monotonic(), b""

    def open(self):
        return self.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0))

    def send(self, data):
        self.socket.sendall(data)
        self.sent += len(data)
        return self

    def receive(self, seconds):
        """Adds to `received` what comes within `seconds`; False once the proxy has closed."""
        if not self.socket.pending() and not select.select([self.socket], [], [], seconds)[0]:
            return True
        data = self.socket.recv(MIB)
        self.received += data
        return bool(data)

    def is_ended(self, chunks, pause=0.0, most=MIB, seconds=SECONDS):
        """Sends the chunks, `pause` apart, until the proxy closes the connection. The bytes that were
        taken by then, and the seconds; fails beyond `most` bytes or `seconds`."""
        def check(what):
            if self.sent > most or time.monotonic() - self.started > seconds:
                raise AssertionError(f"the proxy took {self.sent} bytes in "
                                     f"{time.monotonic() - self.started:.1f} s and {what}")
        try:
            for chunk in chunks:
                self.send(chunk)
                check("asks for more")
                if not self.receive(pause):
                    break
            while self.receive(0.2):
                check("does not close")
        except (ConnectionError, ssl.SSLError):
            pass
        finally:
            self.socket.close()
        return self.sent, time.monotonic() - self.started

    def answer(self, awaited, seconds=SECONDS):
        """What the proxy sent once it includes `awaited`, or once it closed."""
        end = time.monotonic() + seconds
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while awaited not in self.received and time.monotonic() < end and self.receive(0.2):
                pass
        return self.received


def in_frames(block, flags=END_STREAM):
    """A header block that never ends, in frames of 16 KiB."""
    yield frame(HEADERS, flags, 1, block[:16384])
    for begin in range(16384, len(block), 16384):
        yield frame(CONTINUATION, 0, 1, block[begin:begin + 16384])


def continuations(payload, count=100):
    while True:
        yield frame(CONTINUATION, 0, 1, payload) * count


def make_certificates(directory):
    """An authority; a pair each for proxy.pem, which HAProxy shows to both sides, and the server."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True, timeout=SECONDS)

    new = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    openssl(*new, "-subj", "/CN=authority", "-keyout", "ca-key.pem", "-out", "ca.pem")
    for name in ("proxy", "server"):
        openssl(*new, "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost", "-addext",
                "basicConstraints=critical,CA:FALSE", "-CA", "ca.pem", "-CAkey", "ca-key.pem",
                "-keyout", f"{name}-key.pem", "-out", f"{name}.pem")
    with open(os.path.join(directory, "proxy.pem"), "a", encoding="ascii") as both, \
            open(os.path.join(directory, "proxy-key.pem"), encoding="ascii") as key:
        both.write(key.read())


def configuration(replacements):
    """examples/proxy/haproxy.cfg for this machine; everything that is replaced must be there."""
    with open(os.path.join(ROOT, "examples/proxy/haproxy.cfg"), encoding="utf-8") as file:
        text = file.read()
    for old, new in replacements.items():
        if not re.search(old, text, re.MULTILINE):
            raise AssertionError(f"examples/proxy/haproxy.cfg has no {old!r}")
        text = re.sub(old, new, text, flags=re.MULTILINE)
    return text


class ProxyTest(unittest.TestCase):
    """HAProxy and the server on this machine, without TLS between the two."""

    tls_to_server = False
    softlookup = None  # The package, once it is imported.

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.path = directory.name
        make_certificates(cls.path)
        cls.certificate = os.path.join(cls.path, "ca.pem")
        cls.start_server()
        cls.start_proxy()
        cls.make_client()
        cls.lookup = staticmethod(lambda: cls.client.store("mine").lookup([1.0, 2.0]).values)
        cls.client.create_store("mine", key_dim=2, value_dim=1).append([[1.0, 2.0]], [[7.0]])

    @classmethod
    def start(cls, command, **options):
        process = subprocess.Popen(command, **options)

        def stop():
            process.terminate()
            process.wait(SECONDS)
            if process.stdout:
                process.stdout.close()
        cls.addClassCleanup(stop)
        return process

    @classmethod
    def start_server(cls):
        flags = []
        if "--auth" in HELP:
            auth = os.path.join(cls.path, "auth.json")
            with open(auth, "w", encoding="ascii") as file:
                json.dump({"identities": [{"name": "test", "grants": [{"role": "admin", "stores": "*"}],
                                           "token_sha256": hashlib.sha256(TOKEN.encode()).hexdigest()}]}, file)
            os.chmod(auth, 0o600)
            flags = [f"--auth={auth}"]
        if cls.tls_to_server:
            flags += [f"--tls-certificate={cls.path}/server.pem", f"--tls-key={cls.path}/server-key.pem",
                      f"--tls-client-ca={cls.path}/ca.pem"]
        server = cls.start([SERVER, "--ephemeral", "--listen=127.0.0.1:0", "--http-listen=127.0.0.1:0",
                            "--log-level=error", *flags], stdout=subprocess.PIPE, text=True)
        ready = server.stdout.readline()
        cls.server = {name: re.search(rf"{name}=\S+:(\d+)", ready)[1] for name in ("grpc", "http")}

    @classmethod
    def start_proxy(cls):
        cls.port = free_port()
        there = {r"^ +(user|group|chroot) .*\n": "",
                 r"/dev/log local0": "stderr format raw local0 err",
                 r":443 ssl crt \S+": f"127.0.0.1:{cls.port} ssl crt {cls.path}/proxy.pem",
                 r"check port 7472": f"check port {cls.server['http']}"}
        if cls.tls_to_server:
            there |= {r"^ +server local .*\n": "", r"^ +#server remote": "    server remote",
                      r"softlookup\.internal:7471": f"127.0.0.1:{cls.server['grpc']}",
                      r"verifyhost softlookup\.internal": "verifyhost localhost",
                      r"/etc/haproxy/softlookup-ca\.pem": cls.certificate,
                      r"/etc/haproxy/proxy\.pem": f"{cls.path}/proxy.pem"}
        else:
            there |= {r"127\.0\.0\.1:7471": f"127.0.0.1:{cls.server['grpc']}"}
        path = os.path.join(cls.path, "haproxy.cfg")
        with open(path, "w", encoding="utf-8") as file:
            file.write(configuration(there))
        cls.checked = subprocess.run(["haproxy", "-c", "-f", path], capture_output=True, text=True,
                                     timeout=SECONDS, check=False)
        if cls.checked.returncode != 0:
            raise AssertionError(cls.checked.stderr)
        cls.proxy = cls.start(["haproxy", "-db", "-f", path])

    @classmethod
    def make_client(cls):
        package = os.path.join(cls.path, "package")
        subprocess.run([sys.executable, "-B", os.path.join(ROOT, "tests/python/unpack_wheel.py"), ROOT, package],
                       check=True, stdout=subprocess.DEVNULL, timeout=SECONDS)
        if cls.softlookup is None:  # Imported once for both classes.
            sys.path.insert(0, os.path.join(package, "site"))
            import softlookup  # pylint: disable=import-error,import-outside-toplevel
            from softlookup._proto.softlookup.v1 import lookup_pb2  # pylint: disable=import-error,import-outside-toplevel
            from softlookup._proto.softlookup.v1 import soft_lookup_pb2_grpc  # pylint: disable=import-error,import-outside-toplevel
            sys.path.pop(0)
            ProxyTest.softlookup, ProxyTest.messages, ProxyTest.stub_of = (
                softlookup, lookup_pb2, staticmethod(soft_lookup_pb2_grpc.SoftLookupStub))
        import grpc  # pylint: disable=import-outside-toplevel
        cls.grpc = grpc
        with open(cls.certificate, "rb") as file:
            trusted = grpc.ssl_channel_credentials(file.read())
        cls.channel = staticmethod(lambda token: grpc.secure_channel(
            f"localhost:{cls.port}", grpc.composite_channel_credentials(
                trusted, grpc.access_token_call_credentials(token)) if token else trusted,
            [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", 64 * MIB)]))
        token = os.path.join(cls.path, "token")
        with open(token, "w", encoding="ascii") as file:
            file.write(TOKEN)
        cls.client = cls.softlookup.connect(f"localhost:{cls.port}", tls_ca=cls.certificate, token_file=token,
                                            deadline=SECONDS)
        cls.addClassCleanup(cls.client.close)
        channel = cls.channel(TOKEN)
        cls.addClassCleanup(channel.close)
        cls.stub = cls.stub_of(channel)
        health = channel.unary_unary("/grpc.health.v1.Health/Check")

        def is_up():
            with contextlib.suppress(grpc.RpcError):
                return health(b"", timeout=SECONDS, wait_for_ready=True) == b"\x08\x01"
        wait_until(is_up, "a healthy server behind the proxy")

    def setUp(self):
        # Of this test alone: HAProxy would still count what the last one did.
        number = 2 + sorted(unittest.defaultTestLoader.getTestCaseNames(ProxyTest)).index(self._testMethodName)
        self.source = f"127.0.{number}.{2 + self.tls_to_server}"

    def tearDown(self):
        self.assertEqual(self.lookup().tolist(), [[7.0]])
        self.assertIsNone(self.proxy.poll())

    def attacker(self, **options):
        return Attacker(self.source, self.port, self.certificate, **options)

    def code_of(self, token, method="/softlookup.v1.SoftLookup/GetStore"):
        with self.channel(token) as channel:
            with self.assertRaises(self.grpc.RpcError) as refused:
                channel.unary_unary(method)(b"", timeout=SECONDS)
        return refused.exception.code().name

    def test_haproxy_has_no_warning_about_it(self):
        self.assertNotIn("WARNING", self.checked.stderr)

    def test_calls_and_streams_and_errors_pass(self):
        one = self.messages.LookupRequest(store="mine")
        one.queries.rows, one.queries.cols = 1, 2
        one.queries.values.extend([1.0, 2.0])
        self.assertEqual(len(list(self.stub.StreamLookup(iter([one] * 3), timeout=SECONDS))), 3)
        with self.assertRaises(KeyError) as refused:
            self.client.store("absent").info()
        self.assertEqual(refused.exception.reason, "STORE_NOT_FOUND")

    def test_large_messages_pass(self):
        rows = [[1.0] * 128] * 4096  # 2 MiB of keys.
        wide = self.client.create_store("wide", key_dim=128, value_dim=1)
        wide.append(rows, [[1.0]] * len(rows))
        wide.delete()

    def test_without_a_token_nothing_but_health_is_served(self):
        self.assertEqual(self.code_of(None), "UNAUTHENTICATED")
        self.assertEqual(self.code_of("short"), "UNAUTHENTICATED")
        with self.channel(None) as channel:
            self.assertEqual(channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=SECONDS), b"\x08\x01")

    @unittest.skipUnless("--auth" in HELP, "this server knows no identities")
    def test_an_unknown_token_is_refused_by_the_server(self):
        self.assertEqual(self.code_of("B" * 43), "UNAUTHENTICATED")

    def test_administration_and_reflection_and_endless_health_are_not_served(self):
        for method in ("/softlookup.admin.v1.Admin/CreateBackup", "/grpc.health.v1.Health/Watch",
                       "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"):
            self.assertEqual(self.code_of(TOKEN, method), "UNIMPLEMENTED", method)

    def test_what_is_no_grpc_is_refused(self):
        for status, headers in (("405", request(method="GET")), ("415", request(content_type="text/plain"))):
            one = self.attacker().open().send(frame(HEADERS, END_HEADERS | END_STREAM, 1, headers))
            self.assertIn(status.encode(), one.answer(status.encode()))
            one.socket.close()

    def test_http_1_is_refused(self):
        one = self.attacker(alpn="http/1.1")
        one.is_ended([b"POST /softlookup.v1.SoftLookup/GetStore HTTP/1.1\r\nHost: localhost\r\n\r\n"])
        self.assertNotIn(b"HTTP/1.1 200", one.received)

    def test_tls_1_1_is_refused(self):
        warnings.simplefilter("ignore", DeprecationWarning)  # Python knows that it is old.
        context = ssl.create_default_context(cafile=self.certificate)
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
        with socket.create_connection(("127.0.0.1", self.port), SECONDS) as plain:
            with self.assertRaisesRegex(ssl.SSLError, "ALERT_PROTOCOL_VERSION"):
                context.wrap_socket(plain, server_hostname="localhost")

    def test_one_header_of_12_megabytes_ends_the_connection(self):
        block = request() + b"\0" + length(3) + b"x-a" + length(12 * MIB) + b"a" * (12 * MIB)
        sent, _ = self.attacker().open().is_ended(in_frames(block), pause=0.01)
        self.assertLess(sent, MIB)

    def test_ten_thousand_headers_end_the_connection(self):
        block = request() + b"".join(header(f"x-{i}", "") for i in range(10000))
        sent, _ = self.attacker().open().is_ended(in_frames(block), pause=0.01)
        self.assertLess(sent, MIB)

    def test_a_header_named_ten_thousand_times_ends_the_connection(self):
        # HPACK's bomb: 3,000 bytes in the table of headers, and a byte for each of its uses.
        block = request() + header("x-a", "a" * 3000, b"\x40") + b"\xbe" * 10000
        sent, _ = self.attacker().open().is_ended([frame(HEADERS, END_HEADERS | END_STREAM, 1, block)])
        self.assertLess(sent, MIB)

    def test_more_headers_than_64_end_the_call(self):
        block = request() + b"".join(header(f"x-{i}", "") for i in range(64))
        one = self.attacker().open().send(frame(HEADERS, END_HEADERS | END_STREAM, 1, block))
        self.assertIn(frame(RST_STREAM, 0, 1, b"")[3:], one.answer(frame(RST_STREAM, 0, 1, b"")[3:]))
        one.socket.close()

    def test_headers_that_never_end_end_the_connection(self):
        # Headers of one byte fill the buffer. Empty frames fill nothing: time ends those.
        sent, _ = self.attacker().open().is_ended([frame(HEADERS, 0, 1, request()), *[
            frame(CONTINUATION, 0, 1, header("x", ""))] * 20000])
        self.assertLess(sent, MIB)
        one = self.attacker().open().send(frame(HEADERS, 0, 1, request()))
        _, seconds = one.is_ended(continuations(b""), pause=0.1, seconds=20)
        self.assertLess(seconds, 20)

    def test_slow_headers_end_the_connection(self):
        one = self.attacker().open().send(frame(HEADERS, END_HEADERS, 1, request())[:20])
        _, seconds = one.is_ended((request()[i:i + 1] for i in range(11, 200)), pause=0.3, seconds=20)
        self.assertLess(seconds, 20)

    def test_a_silent_connection_is_ended(self):
        _, seconds = self.attacker().is_ended([], seconds=20)
        self.assertLess(seconds, 20)

    def test_calls_that_are_reset_at_once_hold_nothing(self):
        one = self.attacker().open()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            for stream in range(1, 20001, 2):
                one.send(frame(HEADERS, END_HEADERS, stream, request()) + frame(RST_STREAM, 0, stream, b"\0\0\0\x08"))
        one.socket.close()

    def test_a_source_that_guesses_tokens_is_turned_away(self):
        one = self.attacker().open()
        for i in range(60):
            one.send(frame(HEADERS, END_HEADERS | END_STREAM, 2 * i + 1, request(token=None)))
        self.assertIn(b"grpc-status\x018", one.answer(b"grpc-status\x018"))
        self.assertIn(b"grpc-status\x0216", one.received)
        self.assertIn(b"application/grpc", one.received)
        one.socket.close()
        # Its good tokens, too; who comes from elsewhere is served, as tearDown sees.
        one = self.attacker().open().send(frame(HEADERS, END_HEADERS | END_STREAM, 1, request()))
        self.assertIn(b"grpc-status\x018", one.answer(b"grpc-status\x018"))
        one.socket.close()

    @unittest.skipUnless("--auth" in HELP, "this server knows no identities")
    def test_a_source_that_the_server_refuses_again_and_again_is_turned_away(self):
        one = self.attacker().open()
        for i in range(200):
            one.send(frame(HEADERS, END_HEADERS | END_STREAM, 2 * i + 1, request(token="B" * 43))).receive(1)
            if b"grpc-status\x018" in one.received:
                break
        self.assertIn(b"grpc-status\x018", one.received)
        one.socket.close()

    def test_a_source_gets_64_connections(self):
        def first_closed(source):
            """Of 65 connections that do nothing, the number of the one that the proxy closes first."""
            plain = []
            with contextlib.ExitStack() as held:
                for number in range(65):
                    try:
                        one = socket.create_connection(("127.0.0.1", self.port), SECONDS, source_address=(source, 0))
                    except ConnectionError:
                        return number
                    plain.append(held.enter_context(one))
                closed = select.select(plain, [], [], SECONDS)[0]
                return plain.index(closed[0]) if closed else None
        # Where it takes long to make them, the proxy closes the first one before the last one comes.
        tries = []
        while not any(tries) and len(tries) < 10:
            tries.append(first_closed(f"{self.source}{len(tries)}"))
        # Its threads can count several of the last ones before they look at the count.
        self.assertGreater(tries[-1], 64 - 8, tries)

    def test_zz_all_this_took_little_memory(self):
        with open(f"/proc/{self.proxy.pid}/status", encoding="ascii") as file:
            kibibytes = int(re.search(r"VmHWM:\s+(\d+) kB", file.read())[1])
        self.assertLess(kibibytes, 256 << 10)


if "--tls-client-ca" in HELP:
    class TlsToServerTest(ProxyTest):
        """HAProxy shows a client certificate to a server on another machine."""

        tls_to_server = True


if __name__ == "__main__":
    if shutil.which("haproxy") is None:
        print("skipped: haproxy is not installed; scripts/install-packages --test", file=sys.stderr)
        sys.exit(77)
    outcome = unittest.main(argv=sys.argv[:1], exit=False).result
    sys.stdout.flush()
    sys.stderr.flush()
    # On a busy machine Debian's gRPC for Python has crashed while the interpreter ended, after all tests had passed.
    os._exit(not outcome.wasSuccessful())
