#!/usr/bin/python3
"""Does the server survive a hostile client?  hostile_test.py --server PATH [OPTION...]

Starts the server on free ports of loopback, does one hostile thing after the other to it, and
judges it during and after each: a known lookup is answered with the same bits in time, the process
lives, its memory is bounded by what was sent, and the hostile call itself ends as the contract
says. README.md beside this file tells more. Exit 0 if all passed.
"""
import argparse
import re
import sys
import time

sys.dont_write_bytecode = True

import cases
import http2
import judge
import server_process
import soak
import subjects
import workspace

MIB = judge.MIB


class Run:
    """Servers by their flags, and the cases' results."""

    def __init__(self, options):
        self.path = options.server
        self.kind = server_process.RoutedServer if options.routed else server_process.Server
        self.help = server_process.help_text(self.path, options.sanitized)
        self.workspace = workspace.Workspace(self.help, options.sanitized)
        self.prober = judge.ProberProcess()
        self.server, self.access, self.key, self.start_bytes = None, None, None, 0
        self.sanitized, self.quiet = options.sanitized, options.quiet
        self.least_scale = options.least_scale
        self.scale = judge.SANITIZED_SCALE if self.sanitized else self.least_scale
        self.passed, self.failed, self.skipped = 0, [], []

    def close(self):
        self._stop_server()
        self.prober.stop()
        self.workspace.close()

    def _stop_server(self):
        if self.server is not None:
            wrong = self.server.stop() if self.sanitized and self.server.alive else None
            if wrong:
                print(f"FAIL at the end of a server: {wrong}", flush=True)
                self.failed.append(("the end of a server", wrong.splitlines()[0]))
            self.server.kill()
            self.server.log.close()
        self.server = None

    def _server_for(self, case):
        """The running server, if it suits; else a new one."""
        flags = case.flags(self.workspace) if callable(case.flags) else case.flags
        access = case.access(self.workspace) if case.access else cases.Access()
        key = (flags, access.token)
        if self.server is not None and self.key == key and self.server.alive and not case.fresh:
            return
        self._stop_server()
        self.server = self.kind(self.path, flags, self.sanitized)
        self.access, self.key = access, key
        judge.plant(self.server, access)
        self.start_bytes = self.server.memory()

    def measure_machine(self):
        """How slow the machine is today: a known lookup alone."""
        self._server_for(cases.Case("baseline", None))
        self.prober.begin(self.server, self.access)
        cases.threading.Event().wait(1.0)  # Long enough for a percentile.
        seconds = self.prober.end()["seconds"]
        slow = judge.percentile(seconds, 0.99)
        if not self.sanitized:
            self.scale = max(self.least_scale,
                             min(judge.SCALE_MAX, slow / judge.USUAL_ANSWER_SECONDS))
        print(f"a known lookup alone takes {slow * 1000:.1f} ms at the 99th percentile; "
              f"times are scaled by {self.scale:.1f}", flush=True)

    def run_case(self, case):
        missing = [flag for flag in case.needs if flag not in self.help]
        if missing:
            self.skipped.append(case.name)
            print(f"skip {case.name}: the server has no {' '.join(missing)}", flush=True)
            return
        begun = time.monotonic()
        try:
            self._server_for(case)
        except (RuntimeError, OSError, http2.OutOfTime) as error:
            self._report(case, [f"no server to test: {error}"], begun, "")
            self._stop_server()
            return
        context = cases.Context(self.server, self.access, self.scale, case.seconds, self.workspace)
        verdict = judge.Judge(self.server, self.access, self.prober, self.start_bytes, self.scale)
        verdict.begin()
        try:
            case.run(context)
        except http2.OutOfTime as error:
            context.problem(f"not done in {case.seconds * self.scale:.0f} s: {error}")
        except Exception as error:  # Also a bug in the case: the others go on.
            context.problem(f"{type(error).__name__}: {error}")
        wrong = verdict.end(case, context)
        wrong += context.problems
        if context.meter.sent > case.megabytes * MIB:
            wrong.append(f"the case itself is wrong: it sent {context.meter.sent / MIB:.0f} MiB")
        figures = (f"{context.meter.sent / MIB:.2f} MiB sent, +{verdict.grown / MIB:.1f} MiB, "
                   f"slowest answer {verdict.worst * 1000:.0f} ms")
        self._report(case, wrong, begun, "; ".join([figures, *context.notes]))
        if not self.server.alive or wrong or verdict.kept > judge.REPLACE_BEYOND:
            self._stop_server()

    def _report(self, case, wrong, begun, figures):
        seconds = time.monotonic() - begun
        if wrong or not self.quiet:
            print(f"{'FAIL' if wrong else 'ok  '} {case.name} ({seconds:.1f} s, {figures})", flush=True)
        for text in wrong[:4]:
            print(f"     {text}", flush=True)
        if len(wrong) > 4:
            print(f"     and {len(wrong) - 4} more like these", flush=True)
        if wrong:
            self.failed.append((case.name, wrong[0].splitlines()[0]))
        else:
            self.passed += 1

    def summarise(self):
        self._stop_server()
        if self.failed:
            print("failed:\n  " + "\n  ".join(f"{name}: {wrong}" for name, wrong in self.failed))
        if self.skipped:
            print(f"{len(self.skipped)} skipped")
        print(f"{self.passed} passed, {len(self.failed)} failed")
        return 1 if self.failed else 0


def part(text):
    number, count = (int(word) for word in text.split("/"))
    if not 1 <= number <= count:
        raise ValueError(text)
    return number, count


def parse_options():
    parser = argparse.ArgumentParser(description="Hostile clients against a softlookup-server.")
    parser.add_argument("--server", help="the binary to test")
    parser.add_argument("--short", action="store_true", help="the cases of the ordinary test run")
    parser.add_argument("--only", metavar="REGEX", default="", help="cases whose name has this")
    parser.add_argument("--part", type=part, default=(1, 1), metavar="K/N",
                        help="every Nth of those cases, from the Kth on")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--quiet", action="store_true", help="print only the cases that fail")
    parser.add_argument("--sanitized", action="store_true",
                        help="the server's memory and times are its sanitizer's: judge neither")
    parser.add_argument("--least-scale", metavar="FACTOR", type=float, default=1.0,
                        help="scale times by no less, where other work may begin on the machine")
    parser.add_argument("--routed", action="store_true",
                        help="put a router in front of a node with a real etcd, and judge the router")
    parser.add_argument("--soak", metavar="SECONDS", type=float,
                        help="all kinds at once beside a well-behaved client, instead of the cases")
    options = parser.parse_args()
    if not options.list and not options.server:
        parser.error("--server is missing")
    return options


def main():
    options = parse_options()
    subjects.load()
    chosen = [case for case in cases.CASES
              if re.search(options.only, case.name) and (case.short or not options.short)]
    number, count = options.part
    chosen = chosen[number - 1::count]
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    run = Run(options)
    try:
        if options.soak:
            return soak.run(run, options.soak)
        begun = time.monotonic()
        run.measure_machine()
        for case in chosen:
            run.run_case(case)
        print(f"{len(chosen)} cases in {time.monotonic() - begun:.0f} s")
        return run.summarise()
    finally:
        run.close()


if __name__ == "__main__":
    sys.exit(main())
