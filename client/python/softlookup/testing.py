"""A server of your own, for tests: the installed softlookup-server on a free port.

    with softlookup.testing.local_server() as server:
        client = server.connect()
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from typing import IO, Any, Iterator, Sequence

from softlookup._client import Client
from softlookup._connection import Connection
from softlookup._core.settings import load_settings

_READY = re.compile(rb"grpc=(\S+) http=(\S+)")


@dataclass(frozen=True)
class LocalServer:
    """A server that runs: its addresses, HOST:PORT, for gRPC and for HTTP, and its process."""

    address: str
    http_address: str
    process: "subprocess.Popen[bytes]"

    def connect(self, **options: Any) -> Client:
        """A client of it. `options` are those of softlookup.connect(), without the environment's."""
        return Client(Connection(load_settings(self.address, **options, environment={})))


@contextlib.contextmanager
def local_server(
    binary: str = "softlookup-server",
    *,
    flags: Sequence[str] = (),
    data_dir: str = "",
    seconds: float = 30.0,
) -> Iterator[LocalServer]:
    """Runs a server on free ports of the loopback interface until the context ends.

    binary      Its path, or a name to be found in PATH.
    flags       More flags of it (softlookup-server --help).
    data_dir    Where it keeps its stores. Default: in memory only.
    seconds     How long it may take to start, and to stop.
    FileNotFoundError if there is no such program; RuntimeError, with its log, if it does not start.
    """
    path = shutil.which(binary)
    if path is None:
        raise FileNotFoundError(
            f"{binary} is not there: install the package softlookup, or give local_server() its path"
        )
    storage = f"--data-dir={data_dir}" if data_dir else "--ephemeral"
    command = [path, storage, "--listen=127.0.0.1:0", "--http-listen=127.0.0.1:0"]
    # The flags are the caller's, and those of the environment are of another server.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SOFTLOOKUP_")}
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [*command, "--log-level=warning", *flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment,
        )
        assert process.stdout is not None
        try:
            ready = _READY.search(_first_line(process.stdout, seconds))
            if ready is None:
                process.kill()
                process.wait()
                log.seek(0)
                told = log.read(4000).decode(errors="replace").strip()
                raise RuntimeError(f"{path} did not start: {told}")
            yield LocalServer(ready[1].decode(), ready[2].decode(), process)
        finally:
            process.stdout.close()
            process.terminate()
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _first_line(stream: IO[bytes], seconds: float) -> bytes:
    """The first line; what has come of it if the stream ends, or after so many seconds."""
    line, end = b"", time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while b"\n" not in line and selector.select(max(0.0, end - time.monotonic())):
            more = os.read(stream.fileno(), 4096)
            if not more:
                break
            line += more
    return line
