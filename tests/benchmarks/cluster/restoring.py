#!/usr/bin/python3
"""How long lookups and appends take while a store is restored, beside how long they take otherwise.

    restoring.py BIN [--megabytes 220] [--rate 20] [--rounds 5] [--seconds 30]

BIN is the directory of softlookup-server and softlookup. Starts the same cluster as moving_ranges.py, with room for two stores
of this size. Fills one, in ranges over three nodes, and backs it up. Then measures calls to it in rounds: `steady` as it is, and
`restoring` while the backup comes back under another name, with its ranges, and for a second after. Takes eight minutes.
Needs Debian's etcd-server.
"""
import argparse
import contextlib
import pathlib
import signal
import sys
import tempfile

import moving_ranges as moving

COPY = "bench/copy"


def restore(cluster, load):
    cluster.tool("backup", "restore-store", "all", moving.STORE, "--as", COPY, "--keep-ranges")
    moving.let_run(load, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binaries", metavar="BIN", type=pathlib.Path)
    parser.add_argument("--megabytes", type=int, default=220, help="of the store (default: 220)")
    parser.add_argument("--rate", type=float, default=20, help="calls a second (default: 20)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=30, help="of a steady measurement (default: 30)")
    arguments = parser.parse_args()
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda number, _: sys.exit(128 + number))
    size = arguments.megabytes * 1_000_000
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = moving.Cluster(arguments.binaries, 3 * size, work, stack)
        moving.fill(cluster, size // moving.ROW_BYTES)
        cluster.add("n3")
        cluster.tool("cluster", "rebalance", moving.STORE)
        cluster.tool("backup", "create", "all")
        ratios = {}
        for _ in range(arguments.rounds):
            steady = moving.measure(cluster, "steady", arguments.rate,
                                    lambda load: moving.let_run(load, arguments.seconds))
            restoring = moving.measure(cluster, "restoring", arguments.rate, lambda load: restore(cluster, load))
            cluster.tool("store", "delete", COPY)
            for method in steady:
                ratios.setdefault(method, []).append(restoring[method] / steady[method])
        moving.print_ratios("restoring", ratios)


if __name__ == "__main__":
    main()
