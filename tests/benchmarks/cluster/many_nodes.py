#!/usr/bin/python3
"""Simulates lookups in a store whose ranges are spread over many nodes: how p99 grows with nodes, and what hedging buys.

    many_nodes.py [--seed 1] [--lookups 20000] [--nodes 1,2,5,10,20,50,100]

Time is told, not waited. The same arguments print the same table. What is assumed:

A store has 10^9 rows. Reading all of them takes one node PASS_ALL seconds, and each of n nodes an n-th of that. There are
as many ranges as nodes, and each range is at two nodes. Lookups come at random times, so many that each node is busy for
half of the time. A router asks one node of each range, the one with fewer of its calls in progress, and has the answer
when the last part is there. A node scans for one range at a time. All lookups of that range which wait when a pass begins
share it.

A pass takes its time times a random factor close to 1. A node becomes slow now and then, for a second or so, and is then
SLOWNESS times slower. A node dies now and then: it falls silent, and the router's connection breaks DETECTED seconds
later. Until then the router does not know. Afterwards it asks the other node of a range, until the node is back. A lookup
whose part fails at both nodes has failed, and is in no column.

With hedging, a part that has no answer after a delay is asked of the range's other node, too. The first answer counts. The
delay is one second, as the router has it, or a multiple of the median time of a part.
"""
import argparse
import heapq
import itertools
import random
import statistics

PASS_ALL = 10.0  # Seconds: 10^9 rows of 1 KiB at 100 GB/s.
BUSY = 0.5  # Of the time, with a pass for each lookup.
SPREAD = 0.05  # Standard deviation of the logarithm of a pass's time.
SLOW_EVERY, SLOW_FOR, SLOWNESS = 200.0, 1.0, 5.0  # Seconds a node, on average, and the factor.
DEAD_EVERY, DEAD_FOR, DETECTED = 20_000.0, 60.0, 20.0
NETWORK = 0.0005  # Seconds from the router to a node and back.


class Node:
    def __init__(self, world):
        self.world = world
        self.waiting = {}  # Parts by range.
        self.is_busy = False
        self.in_progress = 0  # Calls of the router.
        self.slow_until = 0.0
        self.dead_until = self.detected = 0.0
        world.after(world.random.expovariate(1 / SLOW_EVERY), self.become_slow)
        world.after(world.random.expovariate(1 / DEAD_EVERY), self.die)

    def is_avoided(self):
        return self.detected <= self.world.now < self.dead_until

    def become_slow(self):
        self.slow_until = self.world.now + self.world.random.expovariate(1 / SLOW_FOR)
        self.world.after(self.world.random.expovariate(1 / SLOW_EVERY), self.become_slow)

    def die(self):
        world = self.world
        self.dead_until = world.now + DEAD_FOR
        self.detected = world.now + DETECTED
        world.after(DETECTED, self.fail_all)
        world.after(DEAD_FOR, self.begin_pass)
        world.after(world.random.expovariate(1 / DEAD_EVERY) + DEAD_FOR, self.die)

    def fail_all(self):
        waiting, self.waiting = self.waiting, {}
        for parts in waiting.values():
            for part in parts:
                part.fail(self)

    def ask(self, part):
        self.in_progress += 1
        self.waiting.setdefault(part.range, []).append(part)
        self.begin_pass()

    def begin_pass(self):
        world = self.world
        if self.is_busy or not self.waiting or world.now < self.dead_until:
            return
        # The range whose first part has waited longest.
        number = min(self.waiting, key=lambda each: self.waiting[each][0].sent)
        parts = self.waiting.pop(number)
        time = world.pass_time * world.random.lognormvariate(0, SPREAD)
        if world.now < self.slow_until:
            time *= SLOWNESS
        self.is_busy = True
        world.after(time, lambda: self.end_pass(parts))

    def end_pass(self, parts):
        self.is_busy = False
        if self.world.now < self.dead_until:  # It died meanwhile, and answers nothing.
            for part in parts:
                self.waiting.setdefault(part.range, []).append(part)
            if self.world.now >= self.detected:
                self.fail_all()
            return
        for part in parts:
            part.answer(self)
        self.begin_pass()


class Part:
    """A router's call for one range of a lookup."""

    def __init__(self, lookup, number):
        self.lookup, self.range = lookup, number
        self.world = lookup.world
        self.sent = self.world.now
        self.asked, self.failed = [], 0
        self.is_answered = False
        self.ask_another()
        if self.world.hedge is not None:
            self.world.after(self.world.hedge, self.hedge)

    def ask_another(self):
        nodes = [node for node in self.world.nodes_of(self.range) if node not in self.asked]
        if not nodes:
            return
        node = min(nodes, key=lambda each: (each.is_avoided(), each.in_progress))
        self.asked.append(node)
        self.world.calls += 1
        node.ask(self)

    def hedge(self):
        if not self.is_answered and len(self.asked) == 1:
            self.ask_another()

    def fail(self, node):
        node.in_progress -= 1
        self.failed += 1
        if self.is_answered:
            return
        self.ask_another()
        if self.failed == len(self.asked):
            self.lookup.fail()

    def answer(self, node):
        node.in_progress -= 1
        if self.is_answered:
            return
        self.is_answered = True
        self.world.part_times.append(self.world.now - self.sent + NETWORK)
        self.lookup.note_answer()


class Lookup:
    def __init__(self, world):
        self.world, self.begin = world, world.now
        self.left = world.count  # Parts without an answer.
        self.has_failed = False
        for number in range(world.count):
            Part(self, number)

    def fail(self):
        if not self.has_failed:
            self.has_failed = True
            self.world.failed += 1

    def note_answer(self):
        self.left -= 1
        if self.left == 0 and not self.has_failed:
            self.world.times.append(self.world.now - self.begin + NETWORK)


class World:
    def __init__(self, count, seed, hedge):
        self.count, self.hedge = count, hedge
        self.random = random.Random(seed)
        self.pass_time = PASS_ALL / count
        self.now = 0.0
        self.events, self.numbers = [], itertools.count()
        self.calls = self.failed = 0
        self.times, self.part_times = [], []
        self.nodes = [Node(self) for _ in range(count)]

    def after(self, delay, act):
        heapq.heappush(self.events, (self.now + delay, next(self.numbers), act))

    def nodes_of(self, number):
        return [self.nodes[number]] if self.count == 1 else [self.nodes[number], self.nodes[(number + 1) % self.count]]

    def run(self, lookups):
        begun = 0

        def begin():
            nonlocal begun
            begun += 1
            Lookup(self)
            if begun < lookups:
                self.after(self.random.expovariate(BUSY / self.pass_time), begin)

        begin()
        while len(self.times) + self.failed < lookups:
            self.now, _, act = heapq.heappop(self.events)
            act()
        return self


def quantile(times, share):
    return sorted(times)[min(int(share * len(times)), len(times) - 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lookups", type=int, default=20_000)
    parser.add_argument("--nodes", default="1,2,5,10,20,50,100")
    arguments = parser.parse_args()
    print("nodes  pass     p50      p99 in passes: no hedging  after 1 s       after 3 medians")
    for count in map(int, arguments.nodes.split(",")):
        plain = World(count, arguments.seed, None).run(arguments.lookups)
        median = statistics.median(plain.part_times)
        row = [f"{count:5d}  {plain.pass_time * 1e3:5.0f} ms {quantile(plain.times, 0.5) * 1e3:5.0f} ms"]
        for world in (plain, *(World(count, arguments.seed, hedge).run(arguments.lookups) for hedge in (1.0, 3 * median))):
            p99 = quantile(world.times, 0.99)
            extra = world.calls / (count * arguments.lookups) - 1
            row.append(f"{p99 / world.pass_time:7.1f}, +{100 * extra:4.1f} %")
        print("  ".join(row), flush=True)


if __name__ == "__main__":
    main()
