#!/usr/bin/python3
"""Does a test fail when the code is wrong?  mutants.py TREE [OPTION...]

Draws small changes of core/ and server/ at random, makes one at a time in TREE, a clone of this
repository that it may write to, builds it, and runs the release tests until one fails. A mutant
that fails a test, hangs or crashes has died. One that passes all tests lives: it needs a test, or
a reason why it changes nothing. Exit 0 if at least 95 of 100 die.

A mutant takes half a minute on two cores if a test of its own folder notices it, and else four.
With --own-tests, one that those tests do not notice lives, and nothing else is run. The same --seed
and tree draw the same mutants. --again judges only those that live in a file of results, wherever their
lines are by now. --part 1/2 and --part 2/2 judge every second of them, for two runs
side by side, each with a clone of its own.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True

import mutate

# On a quiet machine the longest test takes half of the first, and the longest program a fifth of the second.
TEST_TIMEOUT_SECONDS = 60
PROGRAM_TIMEOUT_SECONDS = 120
# Labels of tests that say nothing about a source's code.
NO_CODE = ("tidy", "benchmark", "contract")
# Whose sources are changed.
FOLDERS = ("core", "server")


def sources(tree):
    for folder in FOLDERS:
        for path in sorted((tree / folder).rglob("*")):
            if path.suffix in (".cc", ".h"):
                yield path


def all_mutations(tree):
    found = []
    for path in sources(tree):
        found += mutate.mutations_of(str(path.relative_to(tree)), path.read_text())
    return found


Program = collections.namedtuple("Program", "name label")


class Tree:
    """A clone with a release build of its own."""

    def __init__(self, path, jobs):
        self.path, self.build, self.jobs = path, path / "build" / "release", jobs

    def make(self, *targets):
        return subprocess.run(["cmake", "--build", self.build, "-j", str(self.jobs), "--target", *(targets or ["all"])],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0

    def configure(self):
        # A mutant changes one source: that alone is compiled again, not its library as one.
        subprocess.run(["cmake", "--preset", "release", "-DSOFTLOOKUP_BUILD_TESTS=ON", "-DCMAKE_UNITY_BUILD=OFF"],
                       cwd=self.path, stdout=subprocess.DEVNULL, check=True)
        listed = subprocess.run(["cmake", "--build", self.build, "--target", "help"],
                                stdout=subprocess.PIPE, text=True, check=True).stdout
        self.targets = set(re.findall(r"^(\w+): phony$", listed, re.MULTILINE))

    def programs(self, source):
        """The test programs of a source's folder of tests/, those first that test the source itself or its neighbours."""
        folder, _, rest = source.partition("/")
        text = (self.path / "tests" / folder / "CMakeLists.txt").read_text()
        declared = re.findall(r"softlookup_test\((\w+) LABELS (\w+)\s+SOURCES ([^()]*?)\s+DEPENDS", text)
        own, neighbour = str(pathlib.Path(rest).with_suffix("")) + "_test.cc", str(pathlib.Path(rest).parent) + "/"

        def distance(sources):
            return 0 if own in sources.split() else 1 if neighbour in sources else 2

        declared.sort(key=lambda program: distance(program[2]))
        return [Program(name, label) for name, label, _ in declared if name in self.targets]

    def failing_program(self, name):
        """The test of a program that fails, or None. Runs the program's tests as one process a core."""
        shards = [subprocess.Popen(
            [self.build / "tests" / name, "--gtest_fail_fast", "--gtest_brief=1"],
            env=os.environ | {"GTEST_TOTAL_SHARDS": str(self.jobs), "GTEST_SHARD_INDEX": str(index)},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
            for index in range(self.jobs)]
        failed = None
        for shard in shards:
            try:
                out, _ = shard.communicate(timeout=PROGRAM_TIMEOUT_SECONDS if failed is None else 1)
                if shard.returncode != 0:
                    found = re.search(r"\[  FAILED  \] ([\w/.]+)", out)
                    failed = failed or (found.group(1) if found else f"{name} (crashed)")
            except subprocess.TimeoutExpired:
                failed = failed or f"{name} (hung)"
                shard.kill()
                shard.communicate()
        return failed

    def passes(self, own_tests):
        """True if the tree as it is builds and passes the tests that mutants meet."""
        if not own_tests:
            return self.make() and self.failing_test() is None
        names = [program.name for folder in FOLDERS for program in self.programs(f"{folder}/any.cc")]
        return self.make(*names) and not any(self.failing_program(name) for name in names)

    def failing_test(self, labels_left_out=()):
        """The name of a test that fails, or None. Runs all tests but those of the labels, and those that judge no code."""
        # A mutant may kill its parents' terminal or leave servers behind: a session of its own.
        ran = subprocess.run(
            ["ctest", "--test-dir", self.build, "-j", str(2 * self.jobs), "--stop-on-failure", "--timeout",
             str(TEST_TIMEOUT_SECONDS), "-LE", "|".join(f"^{label}$" for label in (*NO_CODE, *labels_left_out))],
            capture_output=True, text=True, errors="replace", start_new_session=True, check=False)
        if ran.returncode == 0:
            return None
        failed = [line for line in ran.stdout.split("\n") if "***" in line]
        return failed[0].split(": ", 1)[-1].split(" ")[0] if failed else "ctest"


def outcome(tree, mutation, own_tests):
    path = tree.path / mutation.path
    text = path.read_text()
    path.write_text(mutate.apply(mutation, text))
    try:
        # Most mutants die of the tests of their own folder, which are built and run in seconds.
        programs = tree.programs(mutation.path)
        for program in programs:
            if not tree.make(program.name):
                return "does not compile"
            if test := tree.failing_program(program.name):
                return f"died: {test}"
        if own_tests:
            return "lives"
        if not tree.make():
            return "does not compile"
        test = tree.failing_test({program.label for program in programs})
        return f"died: {test}" if test else "lives"
    finally:
        path.write_text(text)


def part_of(drawn, part):
    """Every Nth of what was drawn, for a part such as 1/2."""
    match = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", part)
    if not match or int(match[1]) > int(match[2]):
        sys.exit(f"--part is K/N with K from 1 to N, not {part}")
    return drawn[int(match[1]) - 1::int(match[2])]


def without_line(mutant):
    """The text of a mutant without the number of its line, which other changes of the file move."""
    return re.sub(r":\d+:", ":", mutant, count=1)


def lived_in(results):
    return {without_line(mutant) for mutant, came in results.items() if came == "lives"}


def read_results(path):
    """The outcomes by the texts of their mutants."""
    results = [json.loads(line) for line in path.read_text().splitlines()]
    return {result["mutant"]: result["outcome"] for result in results}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tree", type=pathlib.Path, help="a clone that may be changed")
    parser.add_argument("--count", type=int, default=100, help="mutants to judge")
    parser.add_argument("--seed", type=int, default=1, help="which mutants are drawn")
    parser.add_argument("--part", default="1/1", metavar="K/N", help="judge every Nth of those drawn, from the Kth on")
    parser.add_argument("--own-tests", action="store_true", help="run the tests of a mutant's own folder only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes that build and test at a time")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no mutant after this long")
    parser.add_argument("--results", type=pathlib.Path, help="a file of JSON lines; mutants in it are not run again")
    parser.add_argument("--again", type=pathlib.Path, metavar="RESULTS", help="judge those that live in this file of results")
    parser.add_argument("--list", action="store_true", help="print the mutants drawn, and run nothing")
    options = parser.parse_args()

    drawn = all_mutations(options.tree)
    if options.again:
        lived = lived_in(read_results(options.again))
        drawn = [mutation for mutation in drawn if without_line(str(mutation)) in lived]
    random.Random(options.seed).shuffle(drawn)
    drawn = part_of(drawn, options.part)
    if options.list:
        print("\n".join(map(str, drawn[:options.count])))
        return 0
    known = read_results(options.results) if options.results and options.results.exists() else {}
    tree = Tree(options.tree, options.jobs)
    tree.configure()
    if not tree.passes(options.own_tests):
        print("the tree itself does not build and pass", file=sys.stderr)
        return 2
    begun, judged, lives = time.monotonic(), 0, []
    for mutation in drawn:
        if judged == options.count or time.monotonic() - begun > 60 * options.minutes:
            break
        came = known.get(str(mutation)) or outcome(tree, mutation, options.own_tests)
        if options.results and str(mutation) not in known:
            with options.results.open("a") as file:
                print(json.dumps({"mutant": str(mutation), "outcome": came}), file=file)
        print(f"{came}  {mutation}", flush=True)
        if came == "does not compile":
            continue
        judged += 1
        if came == "lives":
            lives.append(mutation)
    print(f"{judged - len(lives)} of {judged} died")
    for mutation in lives:
        print(f"  lives: {mutation}")
    return 0 if judged and (judged - len(lives)) / judged >= 0.95 else 1


if __name__ == "__main__":
    sys.exit(main())
