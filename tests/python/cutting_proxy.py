"""A TCP proxy that cuts connections at any byte, as tests/testing/cutting_proxy.h does for C++."""
import contextlib
import random
import select
import socket
import struct
import threading
from typing import Dict, Optional, Tuple


class CuttingProxy:
    """Passes connections on to a server, and cuts the first `cuts` of them: each after some number of bytes towards the
    server or towards the client. What was not passed on is lost. After the last cut, connections last.
    """

    def __init__(
        self, server: str, seed: int, cuts: int, bytes_to_server: int, bytes_to_client: int
    ) -> None:
        self.cuts = 0
        self._server = server
        self._random = random.Random(seed)
        self._left, self._most = cuts, (bytes_to_server, bytes_to_client)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        self._stop, self._stopped = socket.socketpair()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self) -> "CuttingProxy":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes all connections, and takes no new ones."""
        self._stop.close()
        self._thread.join()

    def set_server(self, server: str) -> None:
        """Where connections that begin from now on go."""
        self._server = server

    def _run(self) -> None:
        connections: "Dict[socket.socket, _Connection]" = (
            {}
        )  # By socket: the connection that it is a side of.
        while True:
            sockets = [self._listener, self._stopped, *connections]
            ready = select.select(sockets, [], [])[0]
            if self._stopped in ready:
                break
            for sock in ready:
                if sock is self._listener:
                    self._accept(connections)
                elif sock in connections and not connections[sock].move(sock):
                    self._end(connections, connections[sock])
        for connection in set(connections.values()):
            connection.close(False)
        self._listener.close()
        self._stopped.close()

    def _accept(self, connections: "Dict[socket.socket, _Connection]") -> None:
        client = self._listener.accept()[0]
        host, port = self._server.rsplit(":", 1)
        try:
            server = socket.create_connection((host, int(port)), timeout=10)
        except OSError:
            client.close()
            return
        budget = None
        if self._left > 0:
            self._left -= 1
            side = self._random.randrange(2)
            budget = (side, self._random.randint(1, self._most[side]))
        connection = _Connection(client, server, budget)
        connections[client] = connections[server] = connection

    def _end(
        self, connections: "Dict[socket.socket, _Connection]", connection: "_Connection"
    ) -> None:
        for sock in connection.sides:
            del connections[sock]
        self.cuts += connection.was_cut
        connection.close(connection.was_cut and self._random.random() < 0.5)


class _Connection:
    def __init__(
        self, client: socket.socket, server: socket.socket, budget: Optional[Tuple[int, int]]
    ) -> None:
        self.sides = (client, server)
        self.budget = budget  # (0: towards the server, 1: towards the client; bytes), or None.
        self.was_cut = False

    def move(self, source: socket.socket) -> bool:
        """Passes on what has come in; False once the connection is to be closed."""
        side = self.sides.index(source)
        try:
            data = source.recv(1 << 16)
            if self.budget is not None and self.budget[0] == side:
                left = self.budget[1]
                self.budget = (side, left - len(data))
                if len(data) >= left:
                    self.was_cut = True
                    data = data[: left - 1]
            if data:
                self.sides[1 - side].sendall(data)
        except OSError:
            return False
        return bool(data) and not self.was_cut

    def close(self, reset: bool) -> None:
        for sock in self.sides:
            with contextlib.suppress(OSError):
                if reset:  # Overtakes what was passed on.
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                sock.close()
