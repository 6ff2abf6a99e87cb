"""The rows of `tests/bench.sh engine`: what the engine costs, each beside what a user has without it."""
import os

from measures import Attempt, Comparison, Fastest, Paired, Program

WARMUP_MS = 300
SPIN = "50us"
GROUPS, FDS, MESSAGE_BYTES = 10, 20, 100
LOOPS = 3000  # 12 million messages: longer than what processes need to touch their pages first
MIMALLOC = "libmimalloc.so.2"


def transfer_rows(folders, duration_ms):
    def peer(message_bytes, pipe_bytes, writers=1, readers=1):
        return Program("pipe(2), pipe_peer", [f"{folders.bench}/pipe_peer", writers, readers, message_bytes, pipe_bytes, WARMUP_MS, duration_ms])

    def ours(message_bytes, pipe_bytes, writers=1, readers=1, **switches):
        settings = {"writers": writers, "readers": readers, "message_bytes": f"{message_bytes}B", "pipe_bytes": f"{pipe_bytes}B",
                    "warmup": f"{WARMUP_MS}ms", "duration": f"{duration_ms}ms", **{f"engine.{name}": value for name, value in switches.items()}}
        return Attempt(folders, "transfer", "engine", "throughput", settings)

    large, small = (65536, 1 << 20), (4096, 65536)
    one, two, four_kib = peer(*large), peer(*large, writers=2), peer(*small)
    spinning = ours(*large, wait_spin=SPIN)
    yield Comparison("transfer 64 KiB x 1 MiB, 1w1r, wait_spin 0", one, ours(*large), "B/s", ">= 3")
    yield Comparison(f"transfer 64 KiB x 1 MiB, 1w1r, wait_spin {SPIN}", one, spinning, "B/s", ">= 4")
    yield Comparison(f"transfer 64 KiB x 1 MiB, 1w1r, wait_spin {SPIN}",
                     Program("two threads copying without a lock, copy_peer", [f"{folders.bench}/copy_peer", *large, duration_ms]), spinning, "B/s", ">= 0.35")
    yield Comparison("transfer 4 KiB x 64 KiB, 1w1r, wait_spin 0", four_kib, ours(*small), "B/s", ">= 3")
    yield Comparison(f"transfer 4 KiB x 64 KiB, 1w1r, wait_spin {SPIN}", four_kib, ours(*small, wait_spin=SPIN), "B/s", ">= 3")
    yield Comparison("transfer 64 KiB x 1 MiB, 1w1r, prealloc", one, ours(*large, page_cache="prealloc"), "B/s")
    yield Comparison("transfer 64 KiB x 1 MiB, 2w1r", two, ours(*large, writers=2), "B/s")


def messaging_rows(folders, _duration_ms):
    messages = GROUPS * FDS * FDS * LOOPS
    for scheduling, under, reach in (("default scheduling", [], ">= 1.5"), ("SCHED_BATCH", ["chrt", "--batch", "0"], ">= 2")):
        for workers, flag in (("threads", ["-T"]), ("processes", [])):
            hackbench = Program("hackbench -p", [*under, "hackbench", "-p", *flag, "-g", GROUPS, "-f", FDS, "-s", MESSAGE_BYTES, "-l", LOOPS],
                                r"Time: (\S+)", lambda seconds: messages / seconds)
            settings = {"groups": GROUPS, "fds": FDS, "message_bytes": f"{MESSAGE_BYTES}B", "loops": LOOPS, "workers": workers}
            yield Comparison(f"messaging {GROUPS} x {FDS} pairs, {MESSAGE_BYTES} B, {workers}, {scheduling}", hackbench,
                             Attempt(folders, "messaging", "engine", "message_rate", settings, under), "1/s", reach)


def allocation_rows(folders):
    def bench(*arguments, build="engine_bench"):
        return Program(build, [f"{folders.bench}/{build}", *arguments])

    def allocators(size, how):
        command = [f"{folders.bench}/malloc_peer", size, how]
        return Fastest([Program("glibc", command), Program("mimalloc", command, environment={**os.environ, "LD_PRELOAD": MIMALLOC})])

    for how, words in (("pair", "pairs"), ("batch", "batches of 64")):
        page = bench("page", how)
        yield Comparison(f"page allocate + free, {words}, fastpath on", bench("page", how, build="engine_bench_no_policy"), page, "ns", "<= 1.02")
        yield Comparison(f"page allocate + free, {words}", allocators(4096, how), page, "ns", "<= 1")
        yield Comparison(f"object of 192 B allocate + free, {words}", allocators(192, how), bench("object", how), "ns", "<= 1")
    # Inverted, so that the ratio says how many times faster the bulk request is.
    yield Comparison("64 pages, weighted interleave 3:1, single steps", bench("bulk", 64), bench("bulk", "single"), "ns", ">= 4")
    for words, sizes in (("64 KiB x 1 MiB", (65536, 1 << 20, 256)), ("4 KiB x 64 KiB", (4096, 65536, 1024))):
        transfer = ("transfer", *sizes)
        yield Paired(f"transfer {words}, both workers on one CPU, per CPU time, counters in", bench(*transfer, build="engine_bench_no_counters"),
                     bench(*transfer), "B/s", ">= 0.98")


def rows(folders, duration_ms):
    return [*transfer_rows(folders, duration_ms), *messaging_rows(folders, duration_ms), *allocation_rows(folders)]
