#!/usr/bin/python3
"""Breaks the protocol of replicas in known ways, and asks that the simulation finds each.

    simulation_mutants.py [--compiler clang++] [--only NAME] [--seconds 60] [--seed 1]

Each mutant replaces one text of one source. Exit 1 if a mutant lives for --seconds of CPU time, or if its text is no
longer in the source.
"""
import argparse
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[3]
CORE = pathlib.Path("core/replication")
TESTS = pathlib.Path("tests/core/replication")
BASE = [pathlib.Path("core/base") / name for name in ("check.cc", "error.cc")]


@dataclass(frozen=True)
class Mutant:
    name: str
    path: pathlib.Path
    before: str
    after: str


MUTANTS = [
    Mutant("an entry is named without a compare of the commit point", CORE / "proposer.cc",
           "{{keys_.commit_point(), EncodeCommitPoint(term_.commit_point)},", "{"),
    Mutant("an entry is named without any compare", CORE / "proposer.cc",
           "{{keys_.commit_point(), EncodeCommitPoint(term_.commit_point)},\n"
           "                    {keys_.primary(), EncodePrimary(term_.primary)}}", "{}"),
    Mutant("an unknown outcome is called a failure", CORE / "proposer.cc",
           "queue[i].done(is_unknown ? WriteMayBeMade(why) : WriteNotMade(why));", "queue[i].done(WriteNotMade(why));"),
    Mutant("a failed compare is called a failure, though an earlier attempt was made", CORE / "proposer.cc",
           "if (!is_named && result.values[0].has_value()) {", "if (false) {"),
    Mutant("an entry is named with too few copies", CORE / "proposer.cc",
           "holders_.size() < term_.config.copies", "holders_.empty()"),
    Mutant("a primary counts a copy that its own disk has refused", CORE / "proposer.cc",
           "has_refused_ = !own.ok();", "has_refused_ = false;"),
    Mutant("a replica trusts one member of etcd for ever", CORE / "replica.cc",
           "next_majority_ = now + options_.poll_interval;", "next_majority_ = absl::InfiniteFuture();"),
    Mutant("an answer about an entry of an earlier term counts as a copy", CORE / "proposer.cc",
           "epoch != entry_.epoch || sequence != entry_.sequence", "sequence != entry_.sequence"),
    Mutant("a copy counts of a node that has left the group", CORE / "proposer.cc",
           "if (!IsReplica(node) || Holds(node)) return;", "if (Holds(node)) return;"),
    Mutant("a slot is overwritten that replicas still need", CORE / "proposer.cc",
           "if (entry_.sequence <= keys_.slots()) return true;", "return true;"),
    Mutant("a staged entry is overwritten by one of another epoch", TESTS / "simulated_store.h",
           "staged_[{entry.sequence, entry.epoch}] = entry;",
           "std::erase_if(staged_, [&](const auto& other) { return other.first.first == entry.sequence; });\n"
           "    staged_[{entry.sequence, entry.epoch}] = entry;"),
    Mutant("entries are trimmed that others still need", CORE / "replica.cc",
           "kept_from = std::min(kept_from,", "static_cast<void>("),
    Mutant("entries are trimmed that have slots", CORE / "replica.cc", "newest > slots ? newest - slots + 1 : 0",
           "newest"),
    Mutant("an entry is applied before readers have the last one", CORE / "follower.cc", "if (!store_.is_ready()) {",
           "if (false) {"),
    Mutant("a replica tells to have applied what a power cut takes", CORE / "replica.cc",
           "if (!store_.Sync().ok()) return;", ""),
    Mutant("a read is served before it has caught up", CORE / "replica.cc",
           "barrier.sequence <= applied", "true"),
    Mutant("a read trusts what an old read of etcd shows", CORE / "replica.cc",
           ".puts = {{options_.keys.barrier(options_.node), make_nonce_()}}", ".puts = {}"),
    Mutant("a replica leads that has not applied all entries", CORE / "replica.cc",
           "return applied.sequence == point.sequence && applied.digest == point.digest;", "return true;"),
    Mutant("a replica leads though the commit point has changed since it was read", CORE / "replica.cc",
           "{keys.commit_point(), as_read(view.commit_point_text)},", ""),
    Mutant("the bytes of an entry are not compared with its digest", CORE / "follower.cc",
           "DigestOf(slot.previous, slot.epoch, *bytes) != slot.digest", "false"),
    Mutant("a replica syncs bytes of another digest", CORE / "replica.cc",
           "DigestOf(entry.previous, entry.epoch, entry.bytes) != entry.digest", "false"),
    Mutant("an election goes on whose lease has ended", CORE / "replica.cc",
           "if (standing_.is_running() && lease_.lease() != standing_lease_) standing_.Abandon();", ""),
    Mutant("replicas are changed for some that do not have what is committed", CORE / "config_change.cc",
           "if (have_all < config_.copies) {", "if (false) {"),
    Mutant("replicas are changed without a new commit point", CORE / "config_change.cc",
           "point.nonce = nonce_;", ""),
    Mutant("a primary counts copies on nodes that have left", CORE / "proposer.cc",
           "std::erase_if(holders_, [&](const std::string& node) { return !IsReplica(node); });", ""),
    Mutant("a candidate takes its own election for that of another", CORE / "replica.cc",
           "if (!result.succeeded && result.values[0] != EncodePrimary(candidacy_.primary)) return Wake();",
           "if (!result.succeeded) return Wake();"),
    Mutant("a node waits for bytes that nobody has", CORE / "follower.cc",
           "was_trimmed || absl::IsOutOfRange(bytes.status())", "false"),
    Mutant("a read from before an election is applied after it", CORE / "replica.cc",
           "follower_.Abandon();", ""),
    Mutant("a primary follows itself", CORE / "replica.cc",
           "proposer_.is_leading() ? Follower::Applies::kNo : Follower::Applies::kYes", "Follower::Applies::kYes"),
    Mutant("a node that has left the group meanwhile becomes its primary", CORE / "replica.cc",
           'if (!IsIn(*config)) return Resign("this node has left the group");', ""),
    Mutant("a primary that gave up keeps its key", CORE / "replica.cc",
           'if (has_term_ && !proposer_.is_leading()) Resign("");', ""),
    Mutant("a node leaves the address of its earlier process in etcd", CORE / "replica.cc",
           "told != view.addresses.end() && told->second != options_.address", "false"),
    Mutant("a lease that counted as ended comes back", CORE / "lease_keeper.cc",
           "if (clock_.Now() >= alive_until_) return Revoke();", ""),
]


def flags():
    libraries = ["absl_flat_hash_map", "absl_status", "absl_statusor", "absl_strings", "absl_synchronization", "absl_time"]
    found = subprocess.run(["pkg-config", "--cflags", "--libs", *libraries], capture_output=True, text=True, check=True)
    return [*found.stdout.split(), "-lcrypto", "-lpthread"]


class Build:
    """The simulation in a folder of its own, of which one source at a time is compiled anew."""

    def __init__(self, folder, compiler):
        self.folder, self.compiler = pathlib.Path(folder), compiler
        for part in (CORE, TESTS, pathlib.Path("core/base"), pathlib.Path("core/include")):
            shutil.copytree(ROOT / part, self.folder / part)
        self.sources = [*sorted(path.relative_to(self.folder) for part in (CORE, TESTS)
                                for path in (self.folder / part).glob("*.cc")
                                if not path.name.endswith("_test.cc")), *BASE]
        self.program = self.folder / "replication_histories"
        for source in self.sources:
            self.compile(source)

    def compile_users(self, path):
        """Compiles a source, or all sources of the simulation if `path` is a header of it."""
        if path.suffix == ".cc":
            return self.compile(path)
        for source in self.sources:
            if source.parent == path.parent:
                self.compile(source)

    def compile(self, source):
        subprocess.run([self.compiler, "-std=c++20", "-O1", "-w", "-I.", "-Icore/include", "-c", source,
                        "-o", self.object(source)], cwd=self.folder, check=True)

    @staticmethod
    def object(source):
        return str(source).replace("/", "_") + ".o"

    def link(self):
        subprocess.run([self.compiler, *map(self.object, self.sources), "-o", self.program, *flags()],
                       cwd=self.folder, check=True)

    def dies(self, seed, seconds):
        """Returns why a history of this build breaks an invariant, if one does within the CPU time; None otherwise."""
        command = ["prlimit", f"--cpu={seconds}", self.program, str(seed), "1000000000"]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if -ran.returncode in (signal.SIGXCPU, signal.SIGKILL):
            return None
        lines = [line for line in ran.stdout.splitlines() if line.startswith("violation: ")]
        return lines[0] if lines else f"exit {ran.returncode}: {ran.stderr[-200:].strip()}"


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="clang++")
    parser.add_argument("--only", default="", help="mutants whose name has this text")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1, help="of the first history")
    arguments = parser.parse_args()
    living = []
    with tempfile.TemporaryDirectory() as folder:
        build = Build(folder, arguments.compiler)
        for mutant in (each for each in MUTANTS if arguments.only in each.name):
            path = build.folder / mutant.path
            text = path.read_text()
            if text.count(mutant.before) != 1:
                sys.exit(f"{mutant.name}: its text is in {mutant.path} {text.count(mutant.before)} times, not once")
            path.write_text(text.replace(mutant.before, mutant.after))
            build.compile_users(mutant.path)
            build.link()
            begin = cpu_seconds()
            why = build.dies(arguments.seed, arguments.seconds)
            print(f"{'dies' if why else 'LIVES'} after {cpu_seconds() - begin:.1f} s: {mutant.name}: {why or ''}",
                  flush=True)
            if not why:
                living.append(mutant.name)
            path.write_text(text)
            build.compile_users(mutant.path)
    sys.exit(1 if living else 0)


if __name__ == "__main__":
    main()
