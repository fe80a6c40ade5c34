"""A terminal in which a page's commands run, one by one, and the servers that they ask.

A terminal leaves no process behind: the processes that a command has started end with the command, also those that left
its session. For that, the process that runs the terminals adopts them (adopt_orphans()).
"""
import contextlib
import ctypes
import dataclasses
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import time

SECONDS = 30       # Longest time of a command, and until a server is ready.
STOP_SECONDS = 10  # Longest time until a server has stopped.

SECOND = r"127\.0\.0\.1:7481"  # Where pages have a second server, beside the one that the tool asks.

# What stands for something else on the machine of a reader. {} are filled in by Terminal.
SUBSTITUTES = [
    (r"0\.0\.0\.0:7471", "127.0.0.1:0"),
    (SECOND, "127.0.0.1:{second_port}"),
    (r"softlookup\.example:7471", "localhost:{port}"),
    (r"softlookup\.example", "localhost"),
    (r"/srv/softlookup", "{directory}/srv"),
    (r"/etc/softlookup", "{directory}/etc"),
    (r"/root/softlookup-tls", "{directory}/root"),
    (r"/var/(lib|log)/softlookup", r"{directory}/\1"),
    (r"-g softlookup\b", "-g {group}"),  # The group that the package makes.
]

# What every command runs with.
#
# softlookup is the tool with load tests that end soon, on few rows. Their exit codes 9 and 8 are no failures here, as
# they are verdicts on figures: "this client was the bottleneck", or "p99 is over 20 ms". But 8 also means wrong answers,
# and these are one.
#
# The trap notes a command that fails where bash goes on and the exit code does not tell, as in `echo $(false)`.
PRELUDE = r"""
softlookup() {
  if [[ ${1:-} != loadtest ]]; then command softlookup "$@"; return; fi
  local -A short=([--duration]=0.1 [--warm-up]=0 [--rate]=200 [--rows]=500)
  local arguments=() code=0
  while (($#)); do
    if [[ -n ${short[$1]:-} ]]; then arguments+=("$1" "${short[$1]}"); shift 2; else arguments+=("$1"); shift; fi
  done
  [[ " ${arguments[*]} " == *" --duration "* ]] || arguments+=(--duration 0.1)
  [[ " ${arguments[*]} " == *" --warm-up "* ]] || arguments+=(--warm-up 0)
  command softlookup "${arguments[@]}" 2>"$TMPDIR/.errors" || code=$?
  cat "$TMPDIR/.errors" >&2
  case $code in
    8) grep -qE 'no rate was found|no answer could be checked|--fail-if' "$TMPDIR/.errors" || return $code;;
    9) ;;
    *) return $code;;
  esac
}
rm -f "$TMPDIR/.failed"
trap 'echo "failed: $BASH_COMMAND" >>"$TMPDIR/.failed"' ERR
set -eEuo pipefail
"""

# After the command: what it has started in the background has to end, too, and well.
CLOSING = r"""
# The shell may have forgotten a job that has ended, but it knows how the last one ended.
for job in $(jobs -p) ${!-}; do wait $job; done
if [[ -s $TMPDIR/.failed ]]; then cat "$TMPDIR/.failed"; exit 1; fi
{ declare -px; printf 'cd %q\n' "$PWD"; } >"$TMPDIR/.state"
"""

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # Of <linux/prctl.h>.
LIBC = ctypes.CDLL(None, use_errno=True)


def set_process_option(option, value):
    if LIBC.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}, {value})")


def adopt_orphans():
    """Has processes whose parents have ended become children of this one, so that end_children() finds them."""
    set_process_option(PR_SET_CHILD_SUBREAPER, 1)


def children():
    with open("/proc/thread-self/children", encoding="ascii") as file:
        return {int(pid) for pid in file.read().split()}


def end_children(kept=()):
    """Ends all children of this process but those of the ids in kept, and in their turn the children of these."""
    while ended := children() - set(kept):
        for pid in ended:
            os.kill(pid, signal.SIGKILL)  # It is there until it is waited for.
            os.waitpid(pid, 0)


def start(script, environment, **options):
    """Starts bash in a session of its own. It is killed if this process dies."""
    return subprocess.Popen(["bash", "-c", script], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            preexec_fn=lambda: set_process_option(PR_SET_PDEATHSIG, signal.SIGKILL),
                            start_new_session=True, **options)


class Server:
    """A server that a shell has started, and that is ready."""

    def __init__(self, script, environment):
        """Raises AssertionError if the server does not start in time."""
        self.process = start(script, environment)
        ready = re.search(r"grpc=(\S+):(\d+)", self.read_line())
        if not ready:
            self.process.kill()
            self.stop()
            raise AssertionError(f"the server did not start, or was not ready within {SECONDS} s:\n{script}")
        self.host, self.port = ready[1], ready[2]

    def read_line(self):
        """The first line that the server prints, or what of it there is when it ends or SECONDS are over."""
        end, line = time.monotonic() + SECONDS, b""
        while not line.endswith(b"\n"):
            left = max(end - time.monotonic(), 0)
            if not select.select([self.process.stdout], [], [], left)[0]:
                return ""
            byte = os.read(self.process.stdout.fileno(), 1)
            if not byte:
                break
            line += byte
        return line.decode(errors="replace")

    def stop(self):
        """Raises AssertionError if the server had to be killed."""
        self.process.terminate()  # It may have ended.
        try:
            self.process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired as error:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"a server did not stop within {STOP_SECONDS} s of SIGTERM") from error
        finally:
            self.process.stdout.close()


@dataclasses.dataclass
class Product:
    """The paths of what is tested."""
    server: str
    root: str  # Of the sources.
    tool: str


class Terminal:
    """A shell that is given a page's commands one by one, and the servers that they ask."""

    def __init__(self, directory, product):
        self.directory = directory
        self.state = os.path.join(directory, ".state")  # Keeps the variables and the directory of the shell.
        self.work = os.path.join(directory, "clone")    # Where a page begins. It looks like a clone that was built.
        self.server = self.second = None
        programs = os.path.join(self.work, "build/release/bin")
        os.makedirs(programs)
        for name in ("docker", "docs", "examples", "scripts", "tests"):
            os.symlink(os.path.join(product.root, name), os.path.join(self.work, name))
        for name, path in (("softlookup", product.tool), ("softlookup-server", product.server),
                           ("python3", sys.executable)):
            os.symlink(path, os.path.join(programs, name))
        self.begin()

    def begin(self):
        """Forgets the variables and the servers so far."""
        self.stop()
        with open(self.state, "w", encoding="utf-8") as file:
            file.write(f"cd {self.work}\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def servers(self):
        return [server for server in (self.server, self.second) if server]

    def stop(self):
        with contextlib.ExitStack() as all_of_them:
            all_of_them.callback(end_children)
            for server in self.servers():
                all_of_them.callback(server.stop)  # Not kill(): the next server may take the same data directory.
        self.server = self.second = None

    def environment(self):
        path = os.path.join(self.work, "build/release/bin") + os.pathsep + os.environ["PATH"]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SOFTLOOKUP_")}
        return kept | {"PATH": path, "TMPDIR": self.directory, "SOFTLOOKUP_LISTEN": "127.0.0.1:0",
                       "SOFTLOOKUP_HTTP_LISTEN": "127.0.0.1:0", "SOFTLOOKUP_LOG_LEVEL": "error"}

    def of_here(self, text):
        for pattern, substitute in SUBSTITUTES:
            filled = substitute.format(directory=self.directory, group=os.getgid(),
                                       port=self.server.port if self.server else 0,
                                       second_port=self.second.port if self.second else 0)
            text = re.sub(pattern, filled, text)
        return text

    def serve(self, command):
        """Starts a server in place of those before, and has the tool ask it; or the second one, beside it."""
        beside = re.search(f"--listen {SECOND}", command)
        if not beside:
            self.stop()
        server = Server(f"source {self.state}\nexec {self.of_here(command)}", self.environment())
        if beside:
            self.second = server
            return
        self.server = server
        with open(self.state, "a", encoding="utf-8") as file:
            file.write(f"export SOFTLOOKUP_SERVER={server.host}:{server.port}\n")

    def run(self, text):
        """Runs a command. Returns its exit code, None if it did not end in time, and what it printed.

        The code is 0 only if all parts of the command have ended well. If the page has not started a server yet, this
        starts one.
        """
        if not self.server:
            self.serve("softlookup-server --ephemeral")
        # By eval, as bash takes `! true` and a failing `a && b` for no reason to end a script.
        script = f"source {self.state}\n{PRELUDE}\neval {shlex.quote(self.of_here(text))}\n" \
                 f"code=$?; ((code == 0)) || exit $code\n{CLOSING}"
        kept = {server.process.pid for server in self.servers()}
        with start(script, self.environment(), stderr=subprocess.STDOUT, text=True, errors="replace") as shell:
            try:
                printed = shell.communicate(timeout=SECONDS)[0]
                return shell.returncode, printed
            except subprocess.TimeoutExpired:
                shell.kill()
                shell.wait()
                end_children(kept)  # They may hold the output of the shell open.
                return None, shell.communicate()[0]
            finally:
                shell.kill()  # It has ended, unless an exception such as KeyboardInterrupt is on its way.
                shell.wait()
                end_children(kept)

    def find(self, name):
        """The file of this name that commands have made, or None."""
        for folder, _, names in os.walk(self.directory):
            path = os.path.join(folder, name)
            if name in names and os.path.isfile(path):
                return path
        return None
