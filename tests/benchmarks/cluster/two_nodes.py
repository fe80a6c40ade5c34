#!/usr/bin/python3
"""How long a lookup takes over two nodes of one thread each, beside one server of two threads with as many rows.

    two_nodes.py BIN [--rows 1000000] [--queries 1] [--concurrency 1] [--rounds 5] [--seconds 15]

BIN is the directory of softlookup-server and softlookup. Starts the same cluster as moving_ranges.py, fills a store in it that
two ranges share, and fills one of the same size at a server of its own. Then sends lookups in rounds: to the server, to the router,
and to the server again, against whose mean time the router's is held. Also counts the bytes that cross the loopback interface, less
those that cross it while nobody looks up. Nothing else should use that interface meanwhile. Takes five minutes. Needs Debian's
etcd-server.
"""
import argparse
import json
import pathlib
import statistics
import threading
import time

import ranged_cluster


def loopback_bytes():
    lines = pathlib.Path("/proc/net/dev").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.split()[0] == "lo:")


def idle_bytes_a_second(seconds=5):
    before, begin = loopback_bytes(), time.monotonic()
    threading.Event().wait(seconds)
    return (loopback_bytes() - before) / (time.monotonic() - begin)


def fill(cluster, rows, at):
    """Makes a store of random rows, and returns its name."""
    cluster.tool("loadtest", "--rows", rows, "--dim", ranged_cluster.DIM, "--keep", "--concurrency", 1, "--duration", "500ms",
                 at=at)
    return next(line.split()[0] for line in cluster.tool("store", "list", at=at).splitlines() if "loadtest/" in line)


def measure(cluster, arguments, store, at, idle):
    """The mean time of a lookup, in ms, and the bytes of one, where `idle` bytes a second are not its own."""
    before, begin = loopback_bytes(), time.monotonic()
    report = json.loads(cluster.tool("loadtest", "--store", store, "--concurrency", arguments.concurrency, "--queries",
                                     arguments.queries, "--warm-up", 0, "--duration", arguments.seconds, "-o", "json", at=at))
    lookups = report["methods"]["lookup"]
    if lookups["errors"]:
        raise SystemExit(f"{lookups['errors']} lookups failed at the {at}")
    sent = loopback_bytes() - before - idle * (time.monotonic() - begin)
    return lookups["latency_ms"]["mean"], sent / lookups["finished"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binaries", metavar="BIN", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=1, help="of a lookup (default: 1)")
    parser.add_argument("--concurrency", type=int, default=1, help="lookups in flight (default: 1)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=15, help="of each measurement (default: 15)")
    arguments = parser.parse_args()
    with ranged_cluster.started(arguments.binaries, 2 * arguments.rows * ranged_cluster.ROW_BYTES) as cluster:
        ranged = fill(cluster, arguments.rows, "router")
        cluster.tool("cluster", "split", ranged, "--ranges", 2)
        cluster.tool("cluster", "move", ranged, "--begin", 0, "--to", "n1")
        cluster.tool("cluster", "move", ranged, "--begin", max(cluster.nodes_of_ranges(ranged)), "--to", "n2")
        cluster.start_server("server", "--data-dir", cluster.work / "server", "--threads", 2)
        whole = fill(cluster, arguments.rows, "server")
        idle = idle_bytes_a_second()
        times, sizes = [], []
        for _ in range(arguments.rounds):
            before, of_one = measure(cluster, arguments, whole, "server", idle)
            over_two, of_two = measure(cluster, arguments, ranged, "router", idle)
            after, _ = measure(cluster, arguments, whole, "server", idle)
            times.append(2 * over_two / (before + after))
            sizes.append(of_two / of_one)
            print(f"server {before:.2f} and {after:.2f} ms, two nodes {over_two:.2f} ms: {times[-1]:.2f} times as long; "
                  f"{of_two:.0f} bytes to {of_one:.0f}", flush=True)
        print(f"median: {statistics.median(times):.2f} times as long, {statistics.median(sizes):.2f} times the bytes")


if __name__ == "__main__":
    main()
