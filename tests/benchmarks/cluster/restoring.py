#!/usr/bin/python3
"""How long lookups and appends take while a store is restored, beside how long they take otherwise.

    restoring.py BIN [--megabytes 220] [--rate 20] [--rounds 5] [--seconds 100]

BIN is the directory of softlookup-server and softlookup. Starts the same cluster as moving_ranges.py, with room for two stores
of this size. Fills one, in ranges over three nodes, and backs it up. Then measures calls to it in rounds: `steady` as it is, and
`restoring` while the backup comes back under another name, with its ranges, and for a second after. Both should last about
as long: the slowest calls are those that wait for the disk, and p99 of a few of them leaves these out. Takes twenty minutes.
Needs Debian's etcd-server.
"""
import ranged_cluster

COPY = "bench/copy"


def restore(cluster, load):
    cluster.tool("backup", "restore-store", "all", ranged_cluster.STORE, "--as", COPY, "--keep-ranges")
    ranged_cluster.let_run(load, 1)


def main():
    parser = ranged_cluster.parser_of(__doc__.splitlines()[0], rounds=5, seconds=100)
    parser.add_argument("--megabytes", type=int, default=220, help="of the store (default: 220)")
    arguments = parser.parse_args()
    size = arguments.megabytes * 1_000_000
    with ranged_cluster.started(arguments.binaries, 3 * size) as cluster:
        ranged_cluster.fill(cluster, size // ranged_cluster.ROW_BYTES)
        cluster.add("n3")
        cluster.tool("cluster", "rebalance", ranged_cluster.STORE)
        cluster.tool("backup", "create", "all")
        ranged_cluster.compare(cluster, arguments, "restoring", lambda load: restore(cluster, load),
                               after=lambda: cluster.tool("store", "delete", COPY))


if __name__ == "__main__":
    main()
