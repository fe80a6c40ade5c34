"""Soft lookups with NumPy arrays. Needs python3-grpcio, python3-numpy, and what make_stubs makes on the path."""
import os
import pathlib

import grpc
import numpy as np
from google.rpc import error_details_pb2, status_pb2
from softlookup.v1 import lookup_pb2, matrix_pb2, row_pb2, soft_lookup_pb2_grpc, store_pb2


def to_matrix(array):
    """The rows of a two-dimensional array, as float32."""
    rows = np.atleast_2d(np.asarray(array, "<f4"))
    return matrix_pb2.Matrix(rows=rows.shape[0], cols=rows.shape[1], data=rows.tobytes())


def to_array(matrix):
    return np.frombuffer(matrix.data, "<f4").reshape(matrix.rows, matrix.cols)


def error_details(error):
    """(reason, metadata, seconds to wait before a retry, or None) of a grpc.RpcError."""
    packed = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
    info, retry, wait = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo(), None
    for detail in status_pb2.Status.FromString(packed).details:
        detail.Unpack(info)
        if detail.Unpack(retry):
            wait = retry.retry_delay.ToTimedelta().total_seconds()
    return info.reason, dict(info.metadata), wait


class BearerToken(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor,
                  grpc.StreamUnaryClientInterceptor, grpc.StreamStreamClientInterceptor):
    """Sends a token with every call. gRPC's own call credentials need TLS."""

    def __init__(self, token):
        self._header = ("authorization", f"Bearer {token}")

    def _intercept(self, continuation, details, request):
        metadata = (*(details.metadata or ()), self._header)
        return continuation(details._replace(metadata=metadata), request)

    intercept_unary_unary = intercept_unary_stream = _intercept
    intercept_stream_unary = intercept_stream_stream = _intercept


def open_channel(address, options):
    """TLS and a token, if the environment names files of them as it does for `softlookup`."""
    def read(variable):
        path = os.environ.get(variable)
        return pathlib.Path(path).read_bytes() if path else None

    ca, certificate, key, token = (read(f"SOFTLOOKUP_{name}") for name in (
        "TLS_CA", "TLS_CERTIFICATE", "TLS_KEY", "TOKEN_FILE"))
    if ca or certificate:
        credentials = grpc.ssl_channel_credentials(ca, key, certificate)
        channel = grpc.secure_channel(address, credentials, options)
    else:
        channel = grpc.insecure_channel(address, options)
    if token:
        channel = grpc.intercept_channel(channel, BearerToken(token.decode().strip()))
    return channel


class Client:
    """`stub` has every method of the service; those below take and give arrays."""

    def __init__(self, address="127.0.0.1:7471"):
        limit = 64 << 20  # As the server's: gRPC's own default is 4 MiB.
        self.stub = soft_lookup_pb2_grpc.SoftLookupStub(open_channel(
            address, [("grpc.max_receive_message_length", limit), ("grpc.enable_retries", 1)]))

    def create(self, name, key_dim, value_dim, **fields):
        store = store_pb2.Store(name=name, key_dim=key_dim, value_dim=value_dim, **fields)
        return self.stub.CreateStore(store_pb2.CreateStoreRequest(store=store))

    def append(self, store, keys, values, **fields):
        return self.stub.Append(row_pb2.AppendRequest(
            store=store, keys=to_matrix(keys), values=to_matrix(values), **fields))

    def lookup(self, store, queries, timeout=None, **fields):
        """(values [T, value_dim], the whole answer with its stats and weights)."""
        answer = self.stub.Lookup(lookup_pb2.LookupRequest(
            store=store, queries=to_matrix(queries), **fields), timeout=timeout)
        return to_array(answer.values), answer

    def delete(self, name):
        self.stub.DeleteStore(store_pb2.DeleteStoreRequest(name=name))
