#!/usr/bin/python3
"""How long lookups and appends take while the ranges of a store move, beside how long they take otherwise.

    moving_ranges.py BIN [--memory-limit 128] [--rate 20] [--rounds 3] [--seconds 30]

BIN is the directory of softlookup-server and softlookup. Starts one member of etcd, three nodes of one thread each with
--memory-limit in MiB, and a router, all on this machine, in a temporary directory. Fills a store, in ranges over the first
two nodes, with 1.7 times as many bytes as one node may have. Then gives the third node its share of the ranges under load,
and measures in rounds: `steady` as it is, and `moving` while one range after the other moves to another node. Four of five
calls are lookups of one query, the others append four rows. Takes five minutes. Needs Debian's etcd-server.
"""
import time

import ranged_cluster

PART_OF_LIMIT = 1.7  # Of one node's limit, the bytes of the store.


def move_for(cluster, seconds):
    """Moves one range after the other, from the node with the most ranges to the one with the fewest."""
    nodes = cluster.nodes_of_ranges()
    end = time.monotonic() + seconds
    moves = 0
    while time.monotonic() < end:
        counts = {node: list(nodes.values()).count(node) for node in ("n1", "n2", "n3")}
        to = min(counts, key=counts.get)
        others = sorted((node for node in counts if node != to), key=counts.get)
        # Where all have the same number, the nodes take turns.
        source = others[-1] if counts[others[-1]] > counts[to] else others[moves % 2]
        begin = [begin for begin, node in nodes.items() if node == source][moves % counts[source]]
        cluster.tool("cluster", "move", ranged_cluster.STORE, "--begin", begin, "--to", to)
        nodes[begin] = to
        moves += 1
    print(f"{moves} moves", flush=True)


def main():
    parser = ranged_cluster.parser_of(__doc__.splitlines()[0], rounds=3)
    parser.add_argument("--memory-limit", type=int, default=128, help="of a node, in MiB (default: 128)")
    arguments = parser.parse_args()
    limit = arguments.memory_limit << 20
    with ranged_cluster.started(arguments.binaries, limit) as cluster:
        ranged_cluster.fill(cluster, int(limit * PART_OF_LIMIT / ranged_cluster.ROW_BYTES))
        print(f"{cluster.row_count()} rows, {len(cluster.nodes_of_ranges())} ranges")
        ranged_cluster.measure(cluster, "third node", arguments.rate, lambda _: cluster.add("n3"))
        ranged_cluster.measure(cluster, "rebalance", arguments.rate,
                               lambda _: cluster.tool("cluster", "rebalance", ranged_cluster.STORE))
        ranged_cluster.compare(cluster, arguments, "moving", lambda _: move_for(cluster, arguments.seconds))


if __name__ == "__main__":
    main()
