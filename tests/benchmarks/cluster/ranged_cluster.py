"""A cluster on this machine with a store in ranges, and what calls to it take: for the scripts beside this file.

One member of etcd, nodes of one thread each, and a router. Needs Debian's etcd-server.
"""
import argparse
import contextlib
import json
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

DIM = 128  # Components of a key, and of a value.
ROW_BYTES = 8 * DIM + DIM + 12  # With its sketch.
RANGES = 12
STORE = "bench/moving"


def free_ports(count):
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener in listeners:
            listener.bind(("127.0.0.1", 0))
        return [listener.getsockname()[1] for listener in listeners]


class Cluster:
    def __init__(self, binaries, memory_limit, work, stack):
        self.binaries, self.memory_limit, self.work, self.stack = binaries, memory_limit, work, stack
        self.addresses = {}
        client, peer = (f"http://127.0.0.1:{port}" for port in free_ports(2))
        self.start("etcd", "etcd", "--data-dir", work / "etcd", "--log-level", "error", "--initial-cluster",
                   f"default={peer}", "--initial-advertise-peer-urls", peer, "--listen-peer-urls", peer,
                   "--listen-client-urls", client, "--advertise-client-urls", client)
        self.member = ["--cluster", "bench", "--cluster-etcd", client.removeprefix("http://")]
        self.start_node("n1")
        self.add("n2")
        self.start_server("router", "--router", *self.member)

    def start(self, name, *command, **options):
        """Starts a process that ends with the stack. What it says on standard error is in the file NAME.err."""
        command = ["setpriv", "--pdeathsig", "KILL", *(str(part) for part in command)]
        with open(self.work / f"{name}.err", "wb") as err:
            process = self.stack.enter_context(subprocess.Popen(command, stderr=err, **options))
        self.stack.callback(process.kill)
        return process

    def start_server(self, name, *flags):
        """Starts a server, and waits until it is ready."""
        process = self.start(name, self.binaries / "softlookup-server", "--listen", "127.0.0.1:0", "--http-listen",
                             "127.0.0.1:0", *flags, stdout=subprocess.PIPE, text=True)
        ready = re.search(r"grpc=(\S+)", process.stdout.readline())
        if not ready:
            raise SystemExit(f"{name} did not start:\n" + (self.work / f"{name}.err").read_text())
        self.addresses[name] = ready[1]

    def start_node(self, name):
        self.start_server(name, "--data-dir", self.work / name, "--backup-dir", self.work / f"{name}.backups",
                          "--threads", 1, "--memory-limit", self.memory_limit, "--group", "g", "--node", name,
                          "--founder", "n1", "--cluster-listen", "127.0.0.1:0", *self.member)

    def add(self, name):
        """Makes a node a replica. It is ready once it has the records of the group."""
        self.tool("cluster", "add", name, at="n1")
        self.start_node(name)

    def tool(self, *arguments, at="router"):
        command = [self.binaries / "softlookup", "--server", self.addresses[at], *arguments]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"softlookup {' '.join(map(str, arguments))}: {done.stderr}")
        return done.stdout

    def nodes_of_ranges(self, store=STORE):
        """The node of each range, by where the range begins."""
        lines = self.tool("cluster", "ranges", store).splitlines()
        rows = [line.split() for line in lines if re.match(r"\s*\d+\s", line)]
        return {int(row[0]): row[2] for row in rows}

    def row_count(self):
        return int(json.loads(self.tool("store", "get", STORE, "-o", "json"))["row_count"])


def fill(cluster, rows):
    cluster.tool("loadtest", "--rows", int(rows * 0.45), "--dim", DIM, "--keep", "--store-prefix", "bench",
                 "--concurrency", 1, "--duration", "500ms")
    made = next(line.split()[0] for line in cluster.tool("store", "list").splitlines() if "bench/" in line)
    cluster.tool("store", "rename", made, STORE)
    cluster.tool("cluster", "split", STORE, "--ranges", RANGES // 2)
    nodes = cluster.nodes_of_ranges()
    for begin in nodes:  # What comes goes to n2.
        cluster.tool("cluster", "move", STORE, "--begin", begin, "--to", "n2" if begin == max(nodes) else "n1")
    while cluster.row_count() < rows:
        cluster.tool("loadtest", "--store", STORE, "--mix", "append=1", "--append-rows", 500, "--concurrency", 1,
                     "--warm-up", 0, "--duration", "500ms")
    cluster.tool("cluster", "split", STORE, "--ranges", RANGES)
    cluster.tool("cluster", "rebalance", STORE, "--nodes", "n1,n2")


def let_run(load, seconds):
    with contextlib.suppress(subprocess.TimeoutExpired):
        load.wait(seconds)
        raise SystemExit("the load ended early")


def measure(cluster, name, rate, action):
    """Runs `action`, which is given the load, and prints and returns the p99 of each kind of call meanwhile, in ms."""
    result = cluster.work / "result.json"
    result.unlink(missing_ok=True)
    load = cluster.start("load", cluster.binaries / "softlookup", "--server", cluster.addresses["router"], "loadtest",
                         "--store", STORE, "--rate", rate, "--mix", "lookup=80,append=20", "--append-rows", 4,
                         "--retries", 1, "--warm-up", 2, "--duration", 3600, "--json", result,
                         stdout=subprocess.DEVNULL)
    let_run(load, 3)
    begin = time.monotonic()
    action(load)
    seconds = time.monotonic() - begin
    let_run(load, 0)
    load.send_signal(signal.SIGINT)
    load.wait()
    report = json.loads(result.read_text())
    parts, p99 = [], {}
    for method, calls in report["methods"].items():
        latency = calls["latency_ms"]
        p99[method] = latency["p99"]
        failed = calls["errors"] + calls["rejected"] + calls["overflow"]
        parts.append(f"{method}: {calls['finished']} calls, {failed} failed, "
                     f"p50 {latency['p50']:.1f} p99 {latency['p99']:.1f} max {latency['max']:.1f} ms")
    print(f"{name:10} {seconds:5.1f} s  {'; '.join(parts)}; {report['retries']} retries", flush=True)
    return p99


def compare(cluster, arguments, name, action, after=lambda: None):
    """Measures calls in rounds: `steady` as it is, and while `action` runs. Prints how many times as long p99 is then.

    Calls `after` at the end of each round.
    """
    ratios = {}
    for _ in range(arguments.rounds):
        steady = measure(cluster, "steady", arguments.rate, lambda load: let_run(load, arguments.seconds))
        other = measure(cluster, name, arguments.rate, action)
        after()
        for method in steady:
            ratios.setdefault(method, []).append(other[method] / steady[method])
    for method, values in ratios.items():
        listed = ", ".join(f"{value:.2f}" for value in values)
        print(f"p99 of {method}, {name} / steady: {listed}; median {statistics.median(values):.2f}")


def parser_of(description, rounds, seconds=30):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("binaries", metavar="BIN", type=pathlib.Path)
    parser.add_argument("--rate", type=float, default=20, help="calls a second (default: 20)")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--seconds", type=float, default=seconds, help=f"of a steady measurement (default: {seconds})")
    return parser


@contextlib.contextmanager
def started(binaries, memory_limit):
    """A cluster in a temporary directory, which ends and goes with the block, also when a signal ends the script."""
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda number, _: sys.exit(128 + number))
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        yield Cluster(binaries, memory_limit, work, stack)
