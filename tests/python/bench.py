#!/usr/bin/python3
"""How much the package adds to gRPC's own stubs, and to the tool: bench.py SERVER ROOT TOOL, by hand.

Prints two ratios: the time of a lookup of T=256, d=128 over 100 rows, to that of a bare stub call with ready bytes; and
the rate of an append of 1,000,000 x (128 + 128) float32 from one array, to that of `softlookup append` of the same file.
"""
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import grpc
import numpy as np

import softlookup as sl
from softlookup._proto.softlookup.v1 import lookup_pb2, matrix_pb2, soft_lookup_pb2_grpc
from subject import TOOL, local_server

QUERIES, DIM, ROWS = 256, 128, 100
APPENDED = int(os.environ.get("SOFTLOOKUP_BENCH_ROWS", "1000000"))


def bench_lookup(client: sl.Client, address: str) -> None:
    random = np.random.default_rng(1)
    store = client.create_store("lookup", key_dim=DIM, value_dim=DIM)
    store.append(*(random.normal(size=(ROWS, DIM)).astype("f4") for _ in range(2)))
    queries = random.normal(size=(QUERIES, DIM)).astype("f4")
    ready = queries.tobytes()
    channel = grpc.insecure_channel(address, [("grpc.max_receive_message_length", 64 << 20)])
    stub = soft_lookup_pb2_grpc.SoftLookupStub(channel)

    def bare() -> object:
        matrix = matrix_pb2.Matrix(rows=QUERIES, cols=DIM, data=ready)
        return stub.Lookup(lookup_pb2.LookupRequest(store="lookup", queries=matrix), timeout=10)

    def ours() -> object:
        return store.lookup(queries)

    times = {bare: [], ours: []}
    for turn in range(600):
        for call in times if turn % 2 else reversed(times):
            begin = time.perf_counter()
            call()
            times[call].append(time.perf_counter() - begin)
    medians = [statistics.median(times[call][100:]) for call in (ours, bare)]
    print(
        "lookup: %.0f us, bare stub %.0f us, ratio %.3f"
        % (*(1e6 * m for m in medians), medians[0] / medians[1])
    )
    channel.close()


def bench_append(client: sl.Client, address: str, directory: str) -> None:
    random = np.random.default_rng(1)
    block = random.normal(size=(APPENDED // 100, 2 * DIM)).astype("f4")
    paths = [f"{directory}/{name}.npy" for name in ("keys", "values")]
    for path, part in zip(paths, (block[:, :DIM], block[:, DIM:])):
        np.save(path, np.tile(part, (100, 1)))
    keys, values = (np.load(path) for path in paths)
    ours, tool = [], []
    for turn in range(8):
        name = f"append-{turn}"
        client.create_store(name, key_dim=DIM, value_dim=DIM)
        begin = time.perf_counter()
        if turn % 2:
            client.store(name).append(keys, values, deadline=60)
            ours.append(APPENDED / (time.perf_counter() - begin))
        else:
            out = subprocess.run(
                [
                    TOOL,
                    "--server",
                    address,
                    "append",
                    name,
                    "--keys",
                    paths[0],
                    "--values",
                    paths[1],
                ],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            ).stdout
            tool.append(APPENDED / float(re.search(r"in ([\d.]+) s", out)[1]))
        client.store(name).delete()
    print(
        "append: %.0f rows/s, tool %.0f rows/s, ratio %.3f"
        % (max(ours), max(tool), max(ours) / max(tool))
    )


def main() -> None:
    with local_server() as server, sl.connect(
        server.address
    ) as client, tempfile.TemporaryDirectory() as directory:
        bench_lookup(client, server.address)
        if "--lookup" not in sys.argv:
            bench_append(client, server.address, directory)


if __name__ == "__main__":
    main()
