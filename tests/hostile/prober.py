"""A well-behaved client in a process of its own, so that a busy hostile client does not slow it.

Reads one JSON object a line from standard input and answers each with one:
  {"do": "begin", "target": "HOST:PORT", "path": "/service/method", "request": HEX, "answer": HEX,
   "token": TEXT or null, "ca": FILE or null, "certificate": FILE or null, "key": FILE or null,
   "interval": SECONDS}
  {"do": "end"} ->  {"probes": N, "wrong": N, "errors": [TEXT], "seconds": [...], "lag": SECONDS}
In between it asks for the same answer again and again. `lag` is by how much its own waits were
longest too long: how busy the machine is.
"""
import json
import sys
import threading
import time

import grpc

DEADLINE_SECONDS = 40  # A server that hangs for longer has failed any bound.


def read_file(path):
    with open(path, "rb") as file:
        return file.read()


def open_channel(command):
    # A connection of its own, each time.
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0),
               ("grpc.initial_reconnect_backoff_ms", 100), ("grpc.ssl_target_name_override", "localhost")]
    if not command.get("ca"):
        return grpc.insecure_channel(command["target"], options[:-1])
    pair = [read_file(command[name]) if command.get(name) else None for name in ("key", "certificate")]
    credentials = grpc.ssl_channel_credentials(read_file(command["ca"]), *pair)
    return grpc.secure_channel(command["target"], credentials, options)


class Prober:
    def __init__(self, command):
        self.channel = open_channel(command)
        self.call = self.channel.unary_unary(command["path"])
        self.request, self.answer = bytes.fromhex(command["request"]), bytes.fromhex(command["answer"])
        self.metadata = [("authorization", "Bearer " + command["token"])] if command.get("token") else None
        self.seconds, self.wrong, self.errors, self.lag = [], 0, [], 0.0
        self.interval, self.over = command["interval"], threading.Event()
        self.thread = threading.Thread(target=self.probe_until_over)
        self.thread.start()

    def probe_until_over(self):
        while True:
            self.probe()
            begun = time.monotonic()
            if self.over.wait(self.interval):
                return
            self.lag = max(self.lag, time.monotonic() - begun - self.interval)

    def probe(self):
        begun = time.monotonic()
        try:
            answer = self.call(self.request, timeout=DEADLINE_SECONDS, metadata=self.metadata)
            self.wrong += answer != self.answer
        except grpc.RpcError as error:
            self.errors.append(f"{error.code().name}: {error.details()}"[:200])
        self.seconds.append(time.monotonic() - begun)

    def end(self):
        self.over.set()
        self.thread.join()
        self.channel.close()
        return {"probes": len(self.seconds), "wrong": self.wrong, "errors": self.errors[:3],
                "error_count": len(self.errors), "seconds": self.seconds, "lag": self.lag}


def main():
    prober = None
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "begin":
            prober, answer = Prober(command), {}
        else:
            answer = prober.end()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
