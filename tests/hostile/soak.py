"""All hostile kinds at once, for as long as one likes, beside a client that behaves well.

Its latency is measured alone first. With a server that has --auth, the two have identities of
their own. A second client sends health checks: their latency is what gRPC and the machine take,
without any work of the server.
"""
import os
import random
import threading
import time

import cases
import judge
import server_process

THREADS = 6
INTERVAL = 0.005  # Seconds between the well-behaved client's lookups.


def figures(measured):
    seconds = measured["seconds"]
    return {"p50": judge.percentile(seconds, 0.5) * 1000, "p99": judge.percentile(seconds, 0.99) * 1000,
            "longest": max(seconds) * 1000, "calls": measured["probes"],
            "errors": measured["error_count"], "wrong": measured["wrong"]}


def line(name, found):
    return (f"{name}: p50 {found['p50']:.2f} ms, p99 {found['p99']:.2f} ms, longest "
            f"{found['longest']:.0f} ms, {found['calls']} calls, {found['errors']} errors, "
            f"{found['wrong']} with wrong bits")


class Hostility:
    """Threads that each do one hostile case after the other."""

    def __init__(self, server, access, workspace, until):
        self.server, self.access, self.workspace, self.until = server, access, workspace, until
        self.kinds = [case for case in cases.CASES if not case.flags and not case.needs]
        self.done, self.bytes_sent, self.lock = 0, 0, threading.Lock()
        self.threads = [threading.Thread(target=self.work, args=(seed,)) for seed in range(THREADS)]
        for thread in self.threads:
            thread.start()

    def work(self, seed):
        chosen = random.Random(seed)
        while time.monotonic() < self.until and self.server.alive:
            context = cases.Context(self.server, self.access, 1.0, 20, self.workspace)
            try:
                chosen.choice(self.kinds).run(context)
            except Exception:
                pass  # What the others leave to a case is not what it was written for.
            finally:
                context.close()
            with self.lock:
                self.done += 1
                self.bytes_sent += context.meter.sent

    def join(self):
        for thread in self.threads:
            thread.join()


def run(run_state, seconds):
    """Returns 0 if the server lived and no answer was wrong."""
    flags, friend, foe = (), cases.Access(), cases.Access()
    workspace = run_state.workspace
    if "--auth" in run_state.help:
        flags = workspace.flags("plaintext")
        friend, foe = (workspace.access("plaintext", name) for name in ("read", "manage"))
    server = server_process.Server(run_state.path, flags)
    judge.plant(server, workspace.access("plaintext") if flags else cases.Access())
    probers = {"lookups": run_state.prober, "health checks": judge.ProberProcess()}

    def begin():
        for name, prober in probers.items():
            prober.begin(server, friend, INTERVAL, health=name == "health checks")

    def end(when):
        found = {name: figures(prober.end()) for name, prober in probers.items()}
        for name in probers:
            print(line(f"{name} {when}", found[name]), flush=True)
        return found

    begin()
    threading.Event().wait(min(30.0, max(2.0, seconds / 4)))  # The measurement itself.
    alone = end("alone")

    start_bytes = server.memory()
    server.reset_memory_peak()
    begin()
    # Strangers have processors of their own. Here they share the server's, so they only get what it
    # leaves. Being nice is not enough: a nice thread still ends its time slice before it gives way.
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    hostility = Hostility(server, foe, workspace, time.monotonic() + seconds)
    hostility.join()
    beside = end("beside")
    for name in probers:
        print(f"ratio of {name}: p50 {beside[name]['p50'] / alone[name]['p50']:.2f}, "
              f"p99 {beside[name]['p99'] / alone[name]['p99']:.2f}")
    print(f"{hostility.done} hostile cases sent {hostility.bytes_sent / judge.MIB:.0f} MiB; memory rose "
          f"from {start_bytes / judge.MIB:.0f} to {server.memory_peak() / judge.MIB:.0f} MiB")
    lived = server.alive
    if not lived:
        print(server.death())
    server.kill()
    probers["health checks"].stop()
    return 0 if lived and not beside["lookups"]["wrong"] else 1
