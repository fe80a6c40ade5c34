"""gRPC calls over http2.Connection, and how they ended."""
import base64
import struct
import time
import urllib.parse

import contract
import http2


def prefixed(message, compressed=0, length=None):
    """A message as gRPC frames it; `length` may lie."""
    return struct.pack(">BI", compressed, len(message) if length is None else length) + message


def headers_of(path, deadline=None, metadata=(), without=(), replaced=()):
    """The headers of a call, in the usual order: some left out, some with other values."""
    headers = [(":method", "POST"), (":scheme", "http"), (":path", path),
               (":authority", "localhost"), ("te", "trailers"),
               ("content-type", "application/grpc")]
    if deadline is not None:
        headers.append(("grpc-timeout", f"{max(0, round(deadline * 1000))}m"))
    values = dict(replaced)
    return [(name, values.get(name, value)) for name, value in headers
            if name not in without] + list(metadata)


class Outcome:
    """How a call ended. `code` is None if the server named none: `end` says what came instead."""

    def __init__(self, stream, connection):
        found = dict(stream.headers)
        status = found.get("grpc-status", "")
        self.http_status = found.get(":status")
        self.code = int(status) if status.isdigit() and stream.ended else None
        self.message = urllib.parse.unquote(found.get("grpc-message", ""))
        self.reason, self.metadata, self.domain = None, {}, None
        self._read_details(found.get("grpc-status-details-bin"))
        self.messages = list(messages_in(stream.data))
        self.reset, self.over, self.closed = stream.reset, stream.over, connection.closed
        self.ended_at = stream.ended_at

    def _read_details(self, encoded):
        if encoded is None:
            return
        encoded += "=" * (-len(encoded) % 4)
        status = contract.MESSAGES["rpc.Status"].FromString(base64.b64decode(encoded))
        info = contract.MESSAGES["rpc.ErrorInfo"]()
        for detail in status.details:
            if detail.Unpack(info):
                self.reason, self.domain = info.reason, info.domain
                self.metadata = dict(info.metadata)

    @property
    def refused(self):
        """Ended, and not well, in whatever way."""
        return self.code not in (None, contract.OK) or self.reset is not None or self.closed

    def __str__(self):
        if self.code is not None:
            reason = f" {self.reason}" if self.reason else ""
            return f"{contract.code_name(self.code)}{reason} ({self.message[:90]})"
        if self.reset is not None:
            return f"reset with {self.reset}"
        if self.closed:
            return "the connection was closed"
        if self.over:
            return f"ended with :status {self.http_status} and no grpc-status"
        return "not over"


def messages_in(data):
    """The whole messages in the DATA of a stream."""
    at = 0
    while len(data) - at >= 5:
        size = int.from_bytes(data[at + 1:at + 5], "big")
        if len(data) - at < 5 + size:
            return
        yield bytes(data[at + 5:at + 5 + size])
        at += 5 + size


class Call:
    """A call in progress. `deadline` in seconds, or None."""

    def __init__(self, connection, path, deadline=None, metadata=(), without=(), replaced=()):
        self.connection, self.deadline = connection, deadline
        self.begun_at = time.monotonic()
        self.stream = connection.send_headers(
            headers_of(path, deadline, metadata, without, replaced))

    def send(self, message, end=False):
        """Sends one whole message. False if the call was over before it was sent."""
        return self.connection.send_data(self.stream, prefixed(message), end)

    def send_raw(self, data, end=False):
        return self.connection.send_data(self.stream, data, end)

    def half_close(self):
        if not self.stream.over:
            self.connection.send_data(self.stream, b"", end=True)

    def reset(self, error=http2.CANCEL):
        self.connection.reset(self.stream, error)

    def wait_messages(self, count, seconds):
        """Waits until so many answers are there; returns those that are."""
        self.connection.wait(
            lambda: self.stream.over or sum(1 for _ in messages_in(self.stream.data)) >= count,
            seconds)
        return list(messages_in(self.stream.data))

    def wait_over(self, seconds):
        return self.connection.wait(lambda: self.stream.over, seconds)

    def outcome(self):
        return Outcome(self.stream, self.connection)

    @property
    def seconds_beyond_deadline(self):
        """How long after its deadline it ended, or it goes on; negative before it."""
        if self.deadline is None or self.connection.closed:
            return float("-inf")
        ended_at = self.stream.ended_at or time.monotonic()
        return ended_at - self.begun_at - self.deadline
