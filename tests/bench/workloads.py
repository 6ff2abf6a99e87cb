"""The rows of `tests/bench.sh workloads`: each workload on target kernel beside an independent program that does the same."""
from measures import Attempt, Paired, Program

WARMUP_MS = 300
REGION_BYTES = 256 << 20
REACH = "0.95 to 1.05"
GROUPS, FDS, MESSAGE_BYTES = 10, 20, 100  # hackbench's defaults
LOOPS = 500  # of its default 100 a tenth of the time is start and end
ONE_CPU = ["taskset", "-c", "0"]


def row(name, peer, ours, unit):
    """In each round ours, peer, peer, ours: they differ by less than the machine's state does within a minute."""
    return Paired(name, peer, ours, unit, REACH, blocks=1)


def messaging_rows(folders, _duration_ms):
    messages = GROUPS * FDS * FDS * LOOPS
    for workers, flag in (("threads", ["-T"]), ("processes", ["-P"])):
        hackbench = Program("hackbench -p", ["hackbench", "-p", *flag, "-g", GROUPS, "-f", FDS, "-s", MESSAGE_BYTES, "-l", LOOPS],
                            r"Time: (\S+)", lambda seconds: messages / seconds)
        settings = {"groups": GROUPS, "fds": FDS, "message_bytes": f"{MESSAGE_BYTES}B", "loops": LOOPS, "workers": workers}
        yield row(f"messaging {GROUPS} x {FDS} pairs, {MESSAGE_BYTES} B, {workers}", hackbench,
                  Attempt(folders, "messaging", "kernel", "message_rate", settings), "1/s")


def transfer_rows(folders, duration_ms):
    for words, writers, message_bytes, pipe_bytes, under in (
            ("64 KiB x 1 MiB, 1w1r", 1, 65536, 1 << 20, []), ("64 KiB x 1 MiB, 2w1r", 2, 65536, 1 << 20, []),
            ("64 KiB x 1 MiB, 1w1r, one CPU", 1, 65536, 1 << 20, ONE_CPU), ("4 KiB x 64 KiB, 1w1r, one CPU", 1, 4096, 65536, ONE_CPU)):
        settings = {"writers": writers, "readers": 1, "message_bytes": f"{message_bytes}B", "pipe_bytes": f"{pipe_bytes}B",
                    "warmup": f"{WARMUP_MS}ms", "duration": f"{duration_ms}ms"}
        peer = [*under, f"{folders.bench}/pipe_peer", writers, 1, message_bytes, pipe_bytes, WARMUP_MS, duration_ms]
        yield row(f"transfer {words}", Program("pipe_peer", peer), Attempt(folders, "transfer", "kernel", "throughput", settings, under), "B/s")


def memory_rows(folders, duration_ms):
    times = {"region_bytes": f"{REGION_BYTES}B", "warmup": f"{WARMUP_MS}ms", "duration": f"{duration_ms}ms"}
    yield row("fault 256 MiB, 1 task", Program("fault_peer", [f"{folders.bench}/fault_peer", REGION_BYTES, WARMUP_MS, duration_ms]),
              Attempt(folders, "fault", "kernel", "fault_rate", times), "1/s")
    for operation, peer_operation in (("read", "read"), ("copy", "copy"), ("copy", "memcpy"), ("triad", "triad")):
        peer = Program(f"stream_peer {peer_operation}", [f"{folders.bench}/stream_peer", peer_operation, REGION_BYTES, WARMUP_MS, duration_ms])
        yield row(f"bandwidth {operation} 256 MiB, 1 task", peer,
                  Attempt(folders, "bandwidth", "kernel", "bandwidth", {**times, "operation": operation}), "B/s")


def rows(folders, duration_ms):
    return [*messaging_rows(folders, duration_ms), *transfer_rows(folders, duration_ms), *memory_rows(folders, duration_ms)]
