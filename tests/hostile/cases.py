"""What a case is, and what it may do: a Context connects, calls, and says what is wrong."""
import dataclasses
import threading
import time
from typing import Callable

import contract
import grpc_call
import http2

# Codes that only this server's own checks give: they come with an ErrorInfo.
WITH_REASON = (contract.INVALID_ARGUMENT, contract.NOT_FOUND, contract.ALREADY_EXISTS,
               contract.FAILED_PRECONDITION)
LATE_SECONDS = 2.0  # A call may outlive its deadline by this, times the machine's slowness.
# The deadline of a call that has no end of its own, and that the case expects to be served.
ENDLESS_SECONDS = 0.5
# The deadline of other calls, unless a case names one: Context.patience() of so many seconds.
PATIENT, PATIENCE_SECONDS = object(), 5.0


@dataclasses.dataclass
class Case:
    """One hostile act. Its name never changes: reports are compared by it."""
    name: str
    run: Callable
    short: bool = False  # Part of the ordinary test run.
    # A server of its own with these flags: a tuple, or a function of the run's Workspace.
    flags: object = ()
    fresh: bool = False  # A server that has seen nothing yet, also without flags.
    needs: tuple = ()  # Flags without which the server cannot be asked for this: skipped.
    seconds: float = 30
    megabytes: float = 12  # What it may send.
    # Memory beyond the common bound that docs/limits.md grants for what the case does.
    memory_megabytes: float = 0
    liveness_only: str = ""  # Why no more is asked than that the server lives.
    access: object = None  # A function of the Workspace: how the judge gets in.


CASES = []


def case(name, **options):
    def register(run):
        add_case(name, run, **options)
        return run
    return register


def add_case(name, run, **options):
    assert all(other.name != name for other in CASES), name
    CASES.append(Case(name, run, **options))


@dataclasses.dataclass
class Access:
    """How a client gets in: an ssl.SSLContext and files for it, a token."""
    tls: object = None
    token: str = None
    ca: str = None
    certificate: str = None
    key: str = None

    @property
    def metadata(self):
        return [("authorization", f"Bearer {self.token}")] if self.token else []


class Meter:
    """Bytes that a case has sent, over all of its connections."""

    def __init__(self):
        self.sent = 0


class Context:
    """What a case's function gets. Threads of a case each use connections of their own."""

    def __init__(self, server, access, scale, seconds, workspace=None):
        self.server, self.access, self.scale, self.workspace = server, access, scale, workspace
        self.meter = Meter()
        seconds *= scale
        # CTest must not end the run first: the case that hangs would not be named.
        self.give_up_at = time.monotonic() + (min(seconds, 400) if server.sanitized else seconds)
        self.problems, self.notes = [], []
        self._connections, self._connection, self._lock = [], None, threading.Lock()

    # Connecting.

    def connect(self, **options):
        options.setdefault("tls", self.access.tls)
        options.setdefault("connect_seconds", self.patience(10))
        connection = http2.Connection(self.server.address, self.meter, self.give_up_at, **options)
        with self._lock:
            self._connections.append(connection)
        return connection

    @property
    def connection(self):
        """A connection for those who need only one that works."""
        if self._connection is None or self._connection.closed or self._connection.goaway:
            self._connection = self.connect()
        return self._connection

    def close(self):
        for connection in self._connections:
            connection.close()

    # Calling.

    def patience(self, seconds):
        """So many seconds; with a sanitizer, as many as only a server that hangs takes."""
        return seconds * self.scale if self.server.sanitized else seconds

    def start(self, method, deadline=PATIENT, connection=None, metadata=None, **options):
        """Starts a call of a method by its name, or of a path. The deadline is in seconds, or None."""
        path = contract.METHODS[method].path if method in contract.METHODS else method
        deadline = self.patience(PATIENCE_SECONDS) if deadline is PATIENT else deadline
        return grpc_call.Call(connection or self.connection, path, deadline,
                              self.access.metadata if metadata is None else metadata, **options)

    def finish(self, call, seconds=None):
        """Waits for the call's end as long as its deadline allows, or `seconds`."""
        late = LATE_SECONDS * self.scale
        call.wait_over(seconds or (call.deadline or 10.0) + late)
        beyond = call.seconds_beyond_deadline
        if beyond > late or (beyond >= 0 and not call.stream.over):
            self.problem(f"a call was {beyond:.1f} s beyond its deadline of {call.deadline} s")
        return call.outcome()

    def call(self, method, *messages, deadline=PATIENT, connection=None, **options):
        """Sends the messages, ends the sending, and waits for the end of the call."""
        call = self.start(method, deadline, connection, **options)
        for message in messages:
            data = message if isinstance(message, bytes) else message.SerializeToString()
            if not call.send(data):
                break
        call.half_close()
        return self.finish(call)

    # Judging.

    def problem(self, text):
        with self._lock:
            self.problems.append(text)

    def check(self, condition, text):
        if not condition:
            self.problem(text)
        return condition

    def expect(self, outcome, codes, reasons=(), what=""):
        """The call ended with one of these codes and, if any are given, one of these reasons."""
        codes = (codes,) if isinstance(codes, int) else tuple(codes)
        reasons = (reasons,) if isinstance(reasons, str) else tuple(reasons)
        wanted = " or ".join(contract.code_name(code) for code in codes)
        if reasons:
            wanted += " with " + " or ".join(reasons)
        prefix = what + ": " if what else ""
        if outcome.code not in codes or (reasons and outcome.reason not in reasons
                                         and outcome.code != contract.OK):
            return self.check(False, f"{prefix}wanted {wanted}, got {outcome}")
        if outcome.code in WITH_REASON:
            return self.check(outcome.reason is not None and outcome.domain == "softlookup",
                              f"{prefix}{outcome} has no ErrorInfo of softlookup")
        return True

    def expect_ended(self, outcome, what=""):
        """Refused or served, but by a decision: no crash's, no bug's status."""
        return self.check(
            outcome.code is not None and outcome.code not in (contract.UNKNOWN, contract.INTERNAL)
            or outcome.reset is not None, f"{what}: no decision: {outcome}")

    def expect_refused(self, outcome, what=""):
        return self.check(outcome.refused, f"{what}: wanted a refusal, got {outcome}")

    def expect_cut_for_its_rate(self, connection):
        """A server that is slowed down by a sanitizer may not see as many calls within a second."""
        self.check(connection.closed or self.server.sanitized, "the connection goes on")

    def expect_cut_off(self, connection, what="", seconds=5.0):
        """The server closes the connection or sends GOAWAY."""
        connection.wait(lambda: connection.goaway is not None, seconds * self.scale)
        return self.check(connection.closed or connection.goaway is not None,
                          f"{what}: the connection goes on")

    def in_threads(self, functions):
        """Runs them side by side; a problem in one is the case's."""
        def guarded(function):
            try:
                function()
            except Exception as error:  # Also a bug in the case: it must not pass.
                self.problem(f"{type(error).__name__}: {error}")
        threads = [threading.Thread(target=guarded, args=(function,)) for function in functions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
