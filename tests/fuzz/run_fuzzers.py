#!/usr/bin/python3
"""Runs libFuzzer's binaries, of the preset `fuzz`, and says how much of the decoders they reached.

    run_fuzzers.py BUILD [--seconds 60] [--jobs CPUS] [TARGET...]

Each TARGET, by default all, starts from corpus/TARGET, once for so many seconds, and fails at the
first finding, whose input is left in BUILD/findings. What has been found of new inputs is kept in
BUILD/corpus for the next run; a finding that is mended belongs into corpus/TARGET.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
RSS_LIMIT_MB = 2048
INPUT_SECONDS_MAX = 10
GRACE_SECONDS = 60

# For each target: the longest input, what it decodes, and words that its inputs are made of.
TARGETS = {
    "auth_file": (4096, ("server/security/auth_rules.cc", "server/security/identity.cc",
                         "client/tool/auth_file.cc"), "json.dict"),
    "csv": (2048, ("client/tool/csv_reader.cc", "client/tool/byte_source.cc"), "csv.dict"),
    "engine": (4096, ("server/rpc/codec.cc", "core/engine/validate.cc"), None),
    "flag_text": (64, (), None),
    "fvecs": (2048, ("client/tool/fvecs_reader.cc",), None),
    "log_record": (2048, ("core/storage/records.cc", "core/storage/coding.h"), None),
    "npy": (1024, ("client/tool/npy_reader.cc", "client/tool/row_reader.cc"), "npy.dict"),
    "ranges": (2048, ("server/rpc/ranges_codec.cc",), None),
    "request": (4096, ("server/rpc/message_scan.cc", "server/rpc/codec.cc"), None),
    "row_tags": (2048, ("client/tool/row_tags.cc",), "csv.dict"),
    "store_log": (8192, ("core/store/store_loader.cc", "core/engine/load_stores.cc",
                         "core/storage/records.cc"), None),
    "trace_context": (128, ("server/observability/trace_context.cc",), None),
}


def run(build, target, seconds):
    """Runs one binary. Returns whether it found nothing, and a line that says how it went."""
    bytes_max, _, dictionary = TARGETS[target]
    found = os.path.join(build, "findings", "")
    grown = os.path.join(build, "corpus", target)
    for folder in (found, grown):
        os.makedirs(folder, exist_ok=True)
    command = [os.path.join(build, "tests", f"fuzz_{target}"), grown, os.path.join(HERE, "corpus", target),
               f"-max_total_time={seconds}", f"-max_len={bytes_max}", f"-rss_limit_mb={RSS_LIMIT_MB}",
               f"-timeout={INPUT_SECONDS_MAX}", "-print_final_stats=1", f"-artifact_prefix={found}{target}-"]
    if dictionary:
        command.append("-dict=" + os.path.join(HERE, dictionary))
    env = dict(os.environ, LLVM_PROFILE_FILE=profile_path(build, target))
    # One that hangs outside of an input is a finding, too.
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env,
                              errors="replace", timeout=seconds + GRACE_SECONDS)
        log, is_well = done.stdout, done.returncode == 0
    except subprocess.TimeoutExpired as error:
        log, is_well = (error.stdout or b"").decode(errors="replace") + "\ndid not end in time\n", False
    runs = re.findall(r"stat::number_of_executed_units:\s+(\d+)", log)
    edges = re.findall(r"cov: (\d+)", log)
    line = (f"{target}: {int(runs[-1]) if runs else 0:,} inputs in {seconds} s, "
            f"{edges[-1] if edges else 0} edges")
    if not is_well:
        tail = "\n".join(log.splitlines()[-60:])
        line = f"{line}; FAILED\n$ {' '.join(command)}\n{tail}"
    return is_well, line


def profile_path(build, target):
    return os.path.join(build, "corpus", f"{target}.profraw")


def tool(name):
    """A tool of LLVM's, also under its name with Debian's version; None if there is none."""
    version = re.search(r"version (\d+)", subprocess.run(["clang++", "--version"], capture_output=True,
                                                         text=True).stdout)
    names = (f"{name}-{version[1]}", name) if version else (name,)
    return next(filter(None, map(shutil.which, names)), None)


def coverage(build, target):
    """How many of its decoders' lines the target reached, as text; empty where nothing can tell."""
    sources = TARGETS[target][1]
    profdata, cov = tool("llvm-profdata"), tool("llvm-cov")
    raw = profile_path(build, target)
    if not sources or not profdata or not cov or not os.path.exists(raw):
        return ""
    merged = raw.replace(".profraw", ".profdata")
    subprocess.run([profdata, "merge", "-sparse", raw, "-o", merged], check=True)
    exported = subprocess.run(
        [cov, "export", "-summary-only", os.path.join(build, "tests", f"fuzz_{target}"),
         f"-instr-profile={merged}", *(os.path.join(ROOT, source) for source in sources)],
        check=True, capture_output=True, text=True)
    files = json.loads(exported.stdout)["data"][0]["files"]
    return "".join(f"\n    {os.path.relpath(file['filename'], ROOT)}: "
                   f"{file['summary']['lines']['percent']:.0f}% of {file['summary']['lines']['count']} lines"
                   for file in files)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("targets", nargs="*", choices=[[], *TARGETS])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    flags = parser.parse_args()
    build = os.path.abspath(flags.build)
    targets = flags.targets or list(TARGETS)
    is_well = True
    with concurrent.futures.ThreadPoolExecutor(flags.jobs) as pool:
        results = pool.map(lambda target: run(build, target, flags.seconds), targets)
        for target, (passed, line) in zip(targets, results):
            is_well &= passed
            print(line + (coverage(build, target) if passed else ""), flush=True)
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
