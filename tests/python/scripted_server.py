"""A gRPC server whose answers a test writes: bytes, streams of bytes, and errors with their trailers."""
import concurrent.futures
import contextlib
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional, Tuple

import grpc


class Failure(Exception):
    """Ends a call with a code of gRPC, a message and trailers."""

    def __init__(
        self, code: str, message: str = "", trailers: Iterable[Tuple[str, str]] = ()
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.trailers = getattr(grpc.StatusCode, code), message, trailers


#: What answers a call: answer(method, request, metadata).
Answer = Callable[[str, Any, Mapping[str, str]], Any]


class _Handler(grpc.GenericRpcHandler):
    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def service(self, details: Any) -> Any:
        method = details.method.rsplit("/", 1)[1]
        metadata = dict(details.invocation_metadata)

        def guarded(request: Any, context: Any) -> Any:
            try:
                return self._answer(method, request, metadata)
            except Failure as failure:
                context.set_trailing_metadata(failure.trailers)
                context.abort(failure.code, failure.message)

        def streamed(request: Any, context: Any) -> Iterator[bytes]:
            try:
                yield from self._answer(method, request, metadata)
            except Failure as failure:
                context.set_trailing_metadata(failure.trailers)
                context.abort(failure.code, failure.message)

        if method in ("StreamAppend", "StreamLookup"):
            return grpc.stream_stream_rpc_method_handler(streamed)
        if method in ("ReadRows", "WatchMemory"):
            return grpc.unary_stream_rpc_method_handler(streamed)
        return grpc.unary_unary_rpc_method_handler(guarded)


@contextlib.contextmanager
def scripted_server(
    answer: Answer, host: str = "127.0.0.1", credentials: Optional[grpc.ServerCredentials] = None
) -> Iterator[str]:
    """The address of a server that answers with answer(method, request, metadata): the bytes of a message, of
    streams an iterator of them, where `request` is one of the requests; or it raises a Failure."""
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4), handlers=[_Handler(answer)])
    if credentials is None:
        port = server.add_insecure_port(f"{host}:0")
    else:
        port = server.add_secure_port(f"{host}:0", credentials)
    server.start()
    try:
        yield f"{host}:{port}"
    finally:
        server.stop(0).wait()
