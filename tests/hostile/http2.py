"""HTTP/2 by hand (RFC 9113): every frame is what the test says, right or wrong.

A Connection reads whatever the server sends as soon as the test waits for anything. It answers
SETTINGS and PING, and gives windows back, unless told not to. One thread at a time may use it.
"""
import select
import socket
import ssl
import struct
import time

import hpack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS = 0, 1, 2, 3, 4
PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 5, 6, 7, 8, 9

END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
PRIORITY_FLAG = 0x20

SETTINGS_ENABLE_PUSH = 2
SETTINGS_MAX_CONCURRENT_STREAMS = 3
SETTINGS_INITIAL_WINDOW_SIZE = 4
SETTINGS_MAX_FRAME_SIZE = 5

CANCEL = 8
LARGEST_WINDOW = (1 << 31) - 1
RECEIVE_WINDOW = 1 << 24  # What a client that reads offers for each stream.


class OutOfTime(Exception):
    """A case may not take longer."""


def frame(kind, flags=0, stream=0, payload=b"", length=None):
    """One frame; `length` may lie about the payload."""
    size = len(payload) if length is None else length
    return struct.pack(">I", size)[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def settings_frame(values):
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", *item) for item in values.items()))


def window_update(stream, increment):
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", increment))


def rst_stream(stream, error=CANCEL):
    return frame(RST_STREAM, 0, stream, struct.pack(">I", error))


class Stream:
    """What the server has said on one stream."""

    def __init__(self, number, send_window):
        self.number = number
        self.send_window = send_window
        self.headers = []  # Trailers follow in the same list.
        self.data = bytearray()
        self.ended = False
        self.reset = None  # The error code of a RST_STREAM.
        self.ended_at = None

    @property
    def over(self):
        return self.ended or self.reset is not None

    def end(self, reset=None):
        if not self.over:
            self.ended_at = time.monotonic()
        if reset is None:
            self.ended = True
        else:
            self.reset = reset


class Connection:
    """A TCP connection that the test speaks HTTP/2 on.

    settings: the client's first SETTINGS; None sends neither preface nor settings.
    acknowledge: answers the server's SETTINGS and PING.
    give_windows: gives back the windows of what was read, so that the server can go on.
    meter: an object whose `sent` counts bytes.
    give_up_at: time.monotonic() beyond which every wait raises OutOfTime.
    connect_seconds: how long connecting and a handshake of TLS may take.
    """

    def __init__(self, address, meter, give_up_at, settings=(), acknowledge=True,
                 give_windows=True, tls=None, small_buffers=False, connect_seconds=10):
        self.meter, self.give_up_at = meter, give_up_at
        self.acknowledge, self.give_windows = acknowledge, give_windows
        self.streams, self.decoder = {}, hpack.Decoder()
        self.closed, self.goaway, self.settings_seen = False, None, {}
        self.initial_window, self.send_window, self.frame_bytes_max = 65535, 65535, 16384
        self.last_pong, self.next_stream = b"", 1
        self._input, self._header_block, self._replies = bytearray(), bytearray(), bytearray()
        self._sending = False
        self.socket = socket.socket()
        if small_buffers:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(max(0.1, min(connect_seconds, give_up_at - time.monotonic())))
        try:
            self.socket.connect(address)
            if tls is not None:
                self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        except BaseException:
            self.socket.close()
            raise
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        if settings is not None:
            first = {SETTINGS_INITIAL_WINDOW_SIZE: RECEIVE_WINDOW, **dict(settings)}
            self.send(PREFACE + settings_frame(first))
            if give_windows:
                self.send(window_update(0, LARGEST_WINDOW - 65535))

    def close(self):
        self.closed = True
        self.socket.close()

    # Sending.

    def send(self, data):
        """Sends bytes; reads meanwhile, so that two full buffers do not block each other. Returns
        False once the connection is closed."""
        self._sending = True  # Replies wait: they must not come between the parts of a frame.
        self._send_all(data)
        while self._replies and not self.closed:
            replies, self._replies = bytes(self._replies), bytearray()
            self._send_all(replies)
        self._sending = False
        return not self.closed

    def _send_all(self, data):
        view = memoryview(data)
        while view and not self.closed:
            try:
                sent = self.socket.send(view)
                self.meter.sent += sent
                view = view[sent:]
            except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
                self._wait(1.0, for_writing=True)
                self._receive()
            except OSError:
                self._drain_and_close()

    def send_headers(self, headers, flags=END_HEADERS, stream=None):
        """Opens a stream with these headers, or sends them on the one of that number."""
        number = self.next_stream if stream is None else stream
        if stream is None:
            self.next_stream += 2
        if number not in self.streams:
            self.streams[number] = Stream(number, self.initial_window)
        self.send(frame(HEADERS, flags, number, hpack.encode_headers(headers)))
        return self.streams[number]

    def send_data(self, stream, data, end=False):
        """Sends DATA as the server's windows allow. Returns False if the stream was over first."""
        view = memoryview(data)
        while len(view) or end:
            room = min(len(view), self.frame_bytes_max, self.send_window, stream.send_window)
            if len(view) and room <= 0:
                if stream.over or self.closed:
                    return False
                self.poll(1.0)
                continue
            part, view = view[:room], view[room:]
            last = end and not len(view)
            self.send_window -= len(part)
            stream.send_window -= len(part)
            self.send(frame(DATA, END_STREAM if last else 0, stream.number, bytes(part)))
            if last:
                break
        return not self.closed

    def reset(self, stream, error=CANCEL):
        self.send(rst_stream(stream.number, error))

    # Receiving.

    def poll(self, seconds):
        """Takes what has come, or waits up to `seconds` for more. Returns False if nothing came."""
        if self._receive():
            return True
        if self.closed:
            return False
        self._wait(seconds)
        return self._receive()

    def wait(self, condition, seconds):
        """Reads until condition() or the connection's end; returns what condition() says last."""
        until = time.monotonic() + seconds
        while not condition() and not self.closed:
            left = until - time.monotonic()
            if left <= 0:
                break
            self.poll(left)
        return condition()

    def wait_processed(self, seconds):
        """Waits until the server has read all that was sent, or has closed the connection."""
        self.send(frame(PING, 0, 0, b"all read"))
        return self.wait(lambda: self.last_pong == b"all read", seconds) or self.closed

    def wait_closed(self, seconds):
        return self.wait(lambda: self.closed, seconds)

    def _wait(self, seconds, for_writing=False):
        now = time.monotonic()
        if now >= self.give_up_at:
            raise OutOfTime("the case's time is over")
        if not self.closed:
            select.select([self.socket], [self.socket] if for_writing else [], [],
                          max(0.0, min(seconds, self.give_up_at - now)))

    def _receive(self):
        came = self._read_all()
        if self._replies and not self._sending:
            self.send(b"")
        return came

    def _read_all(self):
        came = False
        while not self.closed:
            try:
                data = self.socket.recv(1 << 18)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return came
            except OSError:
                data = b""
            if not data:
                self.close()
                return came
            came = True
            self._input += data
            self._take_frames()
        return came

    def _drain_and_close(self):
        """A failed send: what the server said before it closed is still there to read."""
        self._read_all()
        self.close()

    def _take_frames(self):
        at = 0
        while len(self._input) - at >= 9:
            size = int.from_bytes(self._input[at:at + 3], "big")
            if len(self._input) - at < 9 + size:
                break
            kind, flags = self._input[at + 3], self._input[at + 4]
            number = int.from_bytes(self._input[at + 5:at + 9], "big") & LARGEST_WINDOW
            self._take_frame(kind, flags, number, bytes(self._input[at + 9:at + 9 + size]))
            at += 9 + size
        del self._input[:at]

    def _take_frame(self, kind, flags, number, payload):
        stream = self.streams.get(number)
        if kind == DATA:
            if stream is not None:
                stream.data += payload
            if self.give_windows and payload:
                self._replies += window_update(0, len(payload))
                if not flags & END_STREAM:
                    self._replies += window_update(number, len(payload))
        elif kind in (HEADERS, CONTINUATION):
            self._header_block += payload
            if flags & END_HEADERS:
                headers = self.decoder.decode(bytes(self._header_block))
                self._header_block.clear()
                if stream is not None:
                    stream.headers += headers
        elif kind == RST_STREAM and stream is not None:
            stream.end(reset=struct.unpack(">I", payload)[0])
        elif kind == SETTINGS and not flags & ACK:
            self._take_settings(payload)
        elif kind == PING and not flags & ACK and self.acknowledge:
            self._replies += frame(PING, ACK, 0, payload)
        elif kind == PING:
            self.last_pong = payload
        elif kind == GOAWAY:
            self.goaway = (struct.unpack(">I", payload[4:8])[0], payload[8:])
        elif kind == WINDOW_UPDATE:
            increment = struct.unpack(">I", payload)[0]
            if number == 0:
                self.send_window += increment
            elif stream is not None:
                stream.send_window += increment
        if kind in (DATA, HEADERS) and flags & END_STREAM and stream is not None:
            stream.end()

    def _take_settings(self, payload):
        for at in range(0, len(payload), 6):
            name, value = struct.unpack(">HI", payload[at:at + 6])
            self.settings_seen[name] = value
            if name == SETTINGS_INITIAL_WINDOW_SIZE:
                for stream in self.streams.values():
                    stream.send_window += value - self.initial_window
                self.initial_window = value
            elif name == SETTINGS_MAX_FRAME_SIZE:
                self.frame_bytes_max = value
        if self.acknowledge:
            self._replies += frame(SETTINGS, ACK)
