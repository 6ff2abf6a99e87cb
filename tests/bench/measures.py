"""What can be measured: by group, each measure as a name, its peer, and the two commands that give one number each."""
import re
import subprocess

WARMUP_MS = 300
MESSAGE_BYTES = 65536
PIPE_BYTES = 1048576
SHAPES = ((1, 1), (2, 1))  # writers, readers


class Failed(Exception):
    pass


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def positive(value, command):
    if value <= 0:
        raise Failed(f"{' '.join(command)}: nothing moved; is the machine busy with something else?")
    return value


class PipePeer:
    """pipe(2) as tests/bench/pipe_peer.c drives it."""

    def __init__(self, folders, writers, readers, duration_ms):
        self.name = "pipe(2), pipe_peer"
        self._command = [folders.peer, *map(str, (writers, readers, MESSAGE_BYTES, PIPE_BYTES, WARMUP_MS, duration_ms))]

    def measure(self):
        return positive(float(run(self._command)), self._command)


class Transfer:
    """One attempt of the workload `transfer` in pipeyard-worker."""

    def __init__(self, folders, target, settings, writers, readers, duration_ms):
        settings = dict(settings, writers=writers, readers=readers, message_bytes=f"{MESSAGE_BYTES}B",
                        pipe_bytes=f"{PIPE_BYTES}B", warmup=f"{WARMUP_MS}ms", duration=f"{duration_ms}ms")
        self._result = folders.result
        self._decode = ["protoc", "--decode=pipeyard.v1.WorkerResult", "-I", folders.protos, "pipeyard/v1/worker.proto"]
        self._command = [folders.worker, "run", "--workload", "transfer", "--target", target, "--result", self._result]
        for name, value in settings.items():
            self._command += ["--set", f"{name}={value}"]

    def measure(self):
        run(self._command)
        with open(self._result, "rb") as file:
            text = subprocess.run(self._decode, stdin=file, capture_output=True, text=True, check=True).stdout
        if "outcome: OUTCOME_OK" not in text:
            raise Failed(f"{' '.join(self._command)}: not ok\n{text[:400]}")
        return positive(float(re.search(r'name: "throughput".*?value: (\S+)', text, re.DOTALL).group(1)), self._command)


class Comparison:
    """A row: ours against the peer."""

    def __init__(self, name, peer, ours, unit="B/s"):
        self.name, self.peer, self.ours, self.unit = name, peer, ours, unit


def engine(folders, duration_ms):
    rows = []
    for writers, readers in SHAPES:
        # One peer a shape: the same measurement of a round serves all rows of the shape.
        peer = PipePeer(folders, writers, readers, duration_ms)
        for label, target, settings in (("kernel", "kernel", {}),
                                        ("engine two-page", "engine", {"engine.page_cache": "two-page"}),
                                        ("engine prealloc", "engine", {"engine.page_cache": "prealloc"})):
            rows.append(Comparison(f"transfer {label}, {writers}w{readers}r, 64KiB", peer,
                                   Transfer(folders, target, settings, writers, readers, duration_ms)))
    return rows


GROUPS = {"engine": engine}
WITHOUT_MEASURES = {"controller": "issue 4 of 6", "analysis": "issue 6 of 6"}
