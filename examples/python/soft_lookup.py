#!/usr/bin/python3
"""A store made, filled, asked and deleted again.  soft_lookup.py [ADDRESS]

ADDRESS is by default that of SOFTLOOKUP_SERVER, else 127.0.0.1:7471.
Exits with 1 where the server's answers are not NumPy's.
"""
import os
import sys

import grpc
import numpy as np

from numpy_client import Client, error_details, to_matrix
from softlookup.v1 import attention_pb2, row_pb2

STORE = "examples/python"


def weighted_sums(queries, keys, values):
    """The definition, in float64: softmax(queries keys' / sqrt(d)) values."""
    logits = queries.astype(float) @ keys.T.astype(float) / np.sqrt(keys.shape[1])
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ values.astype(float)


def main(address):
    client = Client(address)
    random = np.random.default_rng(1)
    keys = random.standard_normal((1000, 64), np.float32)
    values = random.standard_normal((1000, 8), np.float32)
    queries = random.standard_normal((3, 64), np.float32)

    client.create(STORE, key_dim=64, value_dim=8)
    try:
        client.append(STORE, keys[:100], values[:100])
        # A stream acknowledges each of its appends in turn; the later ones are under way meanwhile.
        acknowledged = client.stub.StreamAppend(
            row_pb2.AppendRequest(store=STORE, keys=to_matrix(keys[i:i + 300]),
                                  values=to_matrix(values[i:i + 300])) for i in (100, 400, 700))
        print("rows:", [answer.row_count for answer in acknowledged])

        options = attention_pb2.AttentionOptions(weights=attention_pb2.WEIGHTS_MODE_TOP, top_weights=3)
        answers, details = client.lookup(STORE, queries, timeout=5, options=options)
        error = np.abs(answers - weighted_sums(queries, keys, values)).max() / np.abs(answers).max()
        print("answers:\n", answers)
        print("heaviest rows of the first query:", list(details.weights[0].positions))
        print(f"difference from NumPy's float64: {error:.1e} of the largest component")

        try:
            client.lookup(STORE, np.zeros((1, 5)))
            reason = None
        except grpc.RpcError as refused:
            reason, metadata, _ = error_details(refused)
            print(f"refused: {refused.code().name}, {reason}, {metadata}: {refused.details()}")
    finally:
        client.delete(STORE)
    return 0 if error <= 1e-5 and reason == "SHAPE_MISMATCH" else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2] or [os.environ.get("SOFTLOOKUP_SERVER") or "127.0.0.1:7471"]))
