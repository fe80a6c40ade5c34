"""Judges a server during and after a case: answers, life, memory, and what it gave back."""
import json
import os
import subprocess
import sys
import threading
import time

import cases
import contract
import http2

MIB = 1 << 20
ANSWER_SECONDS = 2.0  # In which a known lookup is answered, times the machine's slowness.
# What memory may grow by during a case: so many times the bytes sent, and this.
BYTES_FACTOR, BYTES_SLACK = 4, 16 * MIB
# What the allocator and gRPC's own pools may keep for good, beyond the server's start.
RETAINED = 64 * MIB
# Beyond this much kept, the next case gets a new server, so that its own growth is seen.
REPLACE_BEYOND = 24 * MIB
# A lookup alone takes about a millisecond; a machine where it takes more than this is slow.
USUAL_ANSWER_SECONDS = 0.05
SCALE_MAX = 5.0
# A sanitizer's times are not judged: what is waited for then ends a server that hangs.
SANITIZED_SCALE = 20.0
LOG_NOTED = 64 << 10  # A client that fills the operator's log is worth a word.
PROBE_INTERVAL = 0.05  # Seconds between known lookups during a case.


class Golden:
    """The known lookup and its answer: the same bits on every server of the run."""
    request = contract.lookup_request().SerializeToString()
    answer = None


def plant(server, access):
    """Makes the stores that cases and the judge use; checks the known answer."""
    context = cases.Context(server, access, SANITIZED_SCALE if server.sanitized else 1.0, 30)
    new = contract.new

    def must(method, message):
        outcome = context.call(method, message, deadline=context.patience(10))
        if outcome.code != contract.OK:
            raise RuntimeError(f"setting up, {method}: {outcome}")
        return outcome.messages[0]

    dims = {"key_dim": contract.DIM, "value_dim": contract.DIM}
    must("CreateStore", new("CreateStoreRequest", store=new(
        "Store", name=contract.KNOWN_STORE, **dims)))
    must("Append", contract.append_request(contract.KNOWN_ROWS, contract.KNOWN_STORE))
    decayed = contract.MESSAGES["MemorySpec"](name="decayed", kind=2, decay=0.5)
    must("CreateStore", new("CreateStoreRequest", store=new(
        "Store", name=contract.SCRATCH_STORE, memories=[decayed], **dims)))
    rows = contract.SCRATCH_ROWS
    must("Append", contract.append_request(
        rows, ids=range(1, rows + 1), row_labels=[{"labels": ["even" if i % 2 == 0 else "odd"]}
                                                  for i in range(rows)],
        writer="known-writer", sequence=1))
    answer = must("Lookup", Golden.request)
    context.close()
    if Golden.answer is None:
        Golden.answer = answer
    if answer != Golden.answer:
        raise RuntimeError("the known lookup has another answer on a new server")


SERVING = b"\x08\x01"  # A HealthCheckResponse with the status SERVING.


class ProberProcess:
    """prober.py, beside the hostile client."""

    def __init__(self):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "prober.py")
        self.process = subprocess.Popen([sys.executable, "-B", path], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def ask(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def begin(self, server, access, interval=PROBE_INTERVAL, health=False):
        """Sends known lookups; with `health`, health checks, which ask no work of the server."""
        if health:
            path, request, answer = "/grpc.health.v1.Health/Check", b"", SERVING
        else:
            path, request, answer = contract.METHODS["Lookup"].path, Golden.request, Golden.answer
        self.ask(do="begin", target="%s:%d" % server.address, path=path, request=request.hex(),
                 answer=answer.hex(), token=access.token, ca=access.ca,
                 certificate=access.certificate, key=access.key, interval=interval)

    def end(self):
        return self.ask(do="end")

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def percentile(numbers, share):
    ordered = sorted(numbers)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Judge:
    def __init__(self, server, access, prober, start_bytes, scale):
        self.server, self.access, self.prober = server, access, prober
        self.start_bytes, self.scale = start_bytes, scale

    def begin(self):
        self.pid = self.server.pid
        self.before, self.log_before = self.server.memory(), self.server.log_bytes()
        self.server.reset_memory_peak()
        self.prober.begin(self.server, self.access)

    def end(self, case, context):
        """What is wrong, in words; also fills in `grown` and `kept`, in bytes."""
        peak = self.server.memory_peak()
        context.close()
        probed = self.prober.end()
        self.worst, self.grown = max(probed["seconds"]), max(0, peak - self.before)
        self.kept = 0
        logged = self.server.log_bytes() - self.log_before
        if logged > LOG_NOTED:
            context.notes.append(f"{logged / MIB:.1f} MiB were logged")
        if not self.server.alive:
            return [self.server.death()]
        # A case of which only liveness is asked may make the server slow; wrong bits never pass.
        life_is_enough = case.liveness_only or self.server.sanitized
        wrong = [] if life_is_enough else self._wrong_during(case, context, probed)
        if probed["wrong"]:
            wrong.append(f"{probed['wrong']} known lookups had other bits")
        wrong += self._wrong_after(case, context)
        if not self.server.alive:
            wrong.append(self.server.death())
        return wrong

    def _wrong_during(self, case, context, probed):
        wrong = []
        allowed = ANSWER_SECONDS * self.scale + 2 * probed["lag"]
        if self.worst > allowed:
            wrong.append(f"a known lookup took {self.worst:.1f} s during the case, "
                         f"of {allowed:.1f} s allowed")
        if probed["error_count"]:
            wrong.append(f"{probed['error_count']} of {probed['probes']} known lookups failed: "
                         f"{probed['errors'][0]}")
        bound = BYTES_FACTOR * context.meter.sent + BYTES_SLACK + case.memory_megabytes * MIB
        if self.grown > bound:
            wrong.append(f"memory grew by {self.grown / MIB:.0f} MiB, of {bound / MIB:.0f} MiB "
                         f"allowed for {context.meter.sent / MIB:.1f} MiB sent")
        return wrong

    def _wrong_after(self, case, context):
        after = cases.Context(self.server, self.access, self.scale, 60)
        wrong = []
        try:
            begun = time.monotonic()
            outcome = self._known_lookup(after, begun)
            if outcome is None or outcome.messages != [Golden.answer]:
                wrong.append(f"after the case the known lookup is not answered: {outcome}, "
                             f"{time.monotonic() - begun:.1f} s")
            wrong += [f"a known lookup after the case: {text}" for text in after.problems]
            if not wrong:
                delete_all_but_known(after)
                wrong += self._wrong_memory_after(case, context)
        except (OSError, http2.OutOfTime) as error:
            wrong.append(f"after the case the known lookup is not answered: {error}")
        finally:
            after.close()
        return wrong

    def _known_lookup(self, context, begun):
        """Tried again while the server has not yet seen that the case's connections are gone."""
        allowed = ANSWER_SECONDS * self.scale
        while True:
            try:
                outcome = context.call("Lookup", Golden.request, deadline=allowed)
            except OSError:
                outcome = None
            if (outcome and not outcome.closed) or time.monotonic() > begun + allowed:
                return outcome
            threading.Event().wait(0.05)  # Nothing notifies of a free connection.

    def _wrong_memory_after(self, case, context):
        if self.server.sanitized:
            return []
        # Freed when the last reference goes, soon after the connections.
        allowed = (RETAINED + BYTES_FACTOR * context.meter.sent + BYTES_SLACK
                   + case.memory_megabytes * MIB)
        begun = time.monotonic()
        never = threading.Event()
        while True:
            self.kept = max(0, self.server.memory() - self.start_bytes)
            waited = time.monotonic() - begun
            # The first second is only for the next case, which then keeps this server.
            if self.kept <= (REPLACE_BEYOND if waited < 1 else allowed) or waited > 5 * self.scale:
                break
            never.wait(0.05)  # Nothing notifies of memory that is given back.
        if self.kept > allowed and not case.liveness_only:
            return [f"after the case {self.kept / MIB:.0f} MiB more than at the start are kept, "
                    f"of {allowed / MIB:.0f} MiB allowed"]
        return []


def delete_all_but_known(context):
    """Leaves the server with the stores of plant() alone."""
    token = ""
    names = []
    while True:
        outcome = context.call("ListStores", contract.new(
            "ListStoresRequest", page_size=1000, page_token=token), deadline=context.patience(10))
        if outcome.code != contract.OK:
            raise http2.OutOfTime(f"ListStores: {outcome}")
        page = contract.MESSAGES["ListStoresResponse"].FromString(outcome.messages[0])
        names += [store.name for store in page.stores]
        token = page.next_page_token
        if not token:
            break
    for name in names:
        if not name.startswith(contract.KNOWN_PREFIX):
            context.call("DeleteStore", contract.new("DeleteStoreRequest", name=name),
                         deadline=context.patience(10))
