"""A softlookup-server of our own, on free ports of loopback: its process, memory and metrics."""
import os
import re
import select
import subprocess
import tempfile
import time
import urllib.request

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
SANITIZED_FACTOR = 10  # How much longer a server with a sanitizer may take to start and to answer.


def help_text(path, sanitized):
    seconds = 30 * (SANITIZED_FACTOR if sanitized else 1)
    return subprocess.run([path, "--help"], stdout=subprocess.PIPE, text=True, timeout=seconds,
                          check=True).stdout


class Server:
    """A running server. Keeps everything in memory, unless `flags` say otherwise."""

    def __init__(self, path, flags=(), sanitized=False, storage=("--ephemeral",)):
        self.sanitized = sanitized  # Its memory and times are a sanitizer's.
        self._slowness = SANITIZED_FACTOR if sanitized else 1
        self.log = tempfile.TemporaryFile()
        # A build with asan gives memory back nearly as soon as others do.
        environment = dict(os.environ, ASAN_OPTIONS=":".join(
            ["quarantine_size_mb=8:allocator_release_to_os_interval_ms=500", os.environ.get("ASAN_OPTIONS", "")]))
        if any(flag.startswith("--data-dir") for flag in flags):
            storage = ()
        self.process = subprocess.Popen(
            [path, "--listen=127.0.0.1:0", "--http-listen=127.0.0.1:0", "--log-level=warning",
             *storage, *flags],
            stdout=subprocess.PIPE, stderr=self.log, env=environment)
        self.pid = self.process.pid
        ready = self._read_ready_line(30 * self._slowness)
        if ready is None:
            self.kill()
            raise RuntimeError(f"the server did not start:\n{self.log_text()}")
        self.address, self.http_address = ready

    def _read_ready_line(self, seconds):
        until = time.monotonic() + seconds
        line = b""
        while b"\n" not in line:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return None
            more = os.read(self.process.stdout.fileno(), 4096)
            if not more:
                return None
            line += more
        found = re.search(rb"grpc=(\S+):(\d+) http=(\S+):(\d+)", line)
        host, port, http_host, http_port = (part.decode() for part in found.groups())
        return (host, int(port)), (http_host, int(http_port))

    @property
    def alive(self):
        return self.process.poll() is None

    def death(self):
        """How it ended, for people."""
        code = self.process.poll()
        if code is None:
            return "it lives"
        ended = f"signal {-code}" if code < 0 else f"exit code {code}"
        log = self.log_text()
        # A sanitizer's report, if there is one, tells most at its beginning.
        report = re.search(r"(WARNING|ERROR): \w+Sanitizer|runtime error:", log)
        told = log[report.start():][:6000] if report else log[-300:]
        return f"the server died of {ended}: {told.strip()}"

    def log_text(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def log_bytes(self):
        return os.fstat(self.log.fileno()).st_size

    def memory(self):
        """Bytes of physical memory now; 0 once it is dead."""
        try:
            with open(f"/proc/{self.pid}/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * PAGE_BYTES
        except (OSError, IndexError):
            return 0

    def reset_memory_peak(self):
        try:
            with open(f"/proc/{self.pid}/clear_refs", "w", encoding="ascii") as file:
                file.write("5")
        except OSError:
            pass  # It is dead, which the judge sees.

    def memory_peak(self):
        """The most bytes of physical memory since reset_memory_peak()."""
        try:
            with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
                return int(re.search(r"VmHWM:\s*(\d+) kB", file.read())[1]) * 1024
        except (OSError, TypeError):
            return 0

    def cpu_seconds(self):
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def metrics(self):
        """{name with its labels: value}"""
        host, port = self.http_address
        with urllib.request.urlopen(f"http://{host}:{port}/metrics",
                                    timeout=10 * self._slowness) as page:
            lines = page.read().decode().splitlines()
        return {name: float(value) for name, _, value in
                (line.rpartition(" ") for line in lines if line and not line.startswith("#"))}

    def stop(self):
        """Has it end by itself. None if it does so well, else what went wrong: also what a sanitizer
        finds at the end."""
        self.process.terminate()
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            return "the server does not stop"
        return self.death() if self.process.returncode != 0 else None

    def calls_in_progress(self):
        return sum(value for name, value in self.metrics().items()
                   if name.startswith("softlookup_calls_in_progress"))

    def kill(self):
        if self.alive:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class RoutedServer(Server):
    """A router in front of the only node of a cluster, with the same flags. The router is judged."""

    def __init__(self, path, flags=(), sanitized=False):
        self._directory = tempfile.TemporaryDirectory()
        self._etcd, self._node = None, None
        client, peer = "unix://localhost:1", "unix://localhost:2"  # Files in the directory.
        self._etcd = subprocess.Popen(
            ["etcd", "--data-dir=etcd", f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
             f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
             f"--initial-cluster=default={peer}", "--logger=zap", "--log-level=error"],
            cwd=self._directory.name, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        disk = tuple(flag for flag in flags if flag.startswith(("--data-dir=", "--backup-dir=")))
        shared = tuple(flag for flag in flags if flag not in disk)
        if not any(flag.startswith("--data-dir=") for flag in disk):
            disk = (f"--data-dir={self._directory.name}/data", *disk)
        cluster = (f"--cluster-etcd=unix:{self._directory.name}/localhost:1", "--cluster=c")
        try:
            self._node = Server(path, (*disk, *cluster, "--group=g", "--node=n",
                                       "--cluster-listen=127.0.0.1:0", *shared), sanitized)
            super().__init__(path, shared, sanitized, ("--router", *cluster))
        except BaseException:
            self._end()
            raise

    @property
    def alive(self):
        return super().alive and (self._node is None or self._node.alive)

    def death(self):
        return super().death() if self._node.alive else "the node: " + self._node.death()

    def stop(self):
        return super().stop() or self._node.stop()

    def kill(self):
        super().kill()
        self._end()

    def _end(self):
        if self._node is not None:
            self._node.kill()
            self._node.log.close()
            self._node = None
        if self._etcd is not None:
            self._etcd.kill()
            self._etcd.wait()
            self._etcd = None
            self._directory.cleanup()
