"""Measures ratios against peers in interleaved rounds and prints one JSON row each. Called by tests/bench.sh."""
import argparse
import json
import math
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
from types import SimpleNamespace

import engine
import measures
import workloads

GROUPS = {"engine": engine.rows, "workloads": workloads.rows}
WITHOUT_MEASURES = ("controller", "analysis")


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def median_interval(values, confidence=0.95):
    """Order-statistic interval of the median: the narrowest symmetric one that covers at least `confidence`; needs 6 values."""
    ordered, n = sorted(values), len(values)
    best = None
    for k in range(1, n // 2 + 1):  # from the k-th smallest to the k-th largest
        coverage = 1 - 2 * sum(math.comb(n, i) for i in range(k)) / 2**n
        if coverage >= confidence:
            best = k
    return None if best is None else [ordered[best - 1], ordered[n - best]]


def rounds(rows, count, seed):
    """Every program once a round, in an order drawn anew each round, paired rows behind them; returns a list
    of one (ours, theirs, ratio) a round by row."""
    paired = [row for row in rows if isinstance(row, measures.Paired)]
    single = [row for row in rows if row not in paired]
    programs = list(dict.fromkeys([row.peer for row in single] + [row.ours for row in single]))
    values = {program: [] for program in programs}
    of_paired = {row: [] for row in paired}
    generator = random.Random(seed)
    for number in range(count):
        generator.shuffle(programs)
        for program in programs:
            values[program].append(program.measure())
        for row in paired:
            of_paired[row].append(row.measure())
        say(f"round {number + 1} of {count}")
    return {**of_paired, **{row: [(a, b, a / b) for a, b in zip(values[row.ours], values[row.peer])] for row in single}}


def row_of(row, values):
    ours, theirs, ratios = zip(*values)
    return {"name": row.name, "peer": row.peer.name, "ratio": statistics.median(ratios), "ci95": median_interval(ratios),
            "n": len(ratios), "unit": row.unit, "ours": statistics.median(ours), "theirs": statistics.median(theirs), "reach": row.reach}


def describe_machine():
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip() or "no commit"
    cpus = len(os.sched_getaffinity(0))
    say(f"{model}, {cpus} CPUs, Linux {platform.release()}, commit {commit}")


def main():
    parser = argparse.ArgumentParser(prog="tests/bench.sh")
    parser.add_argument("group", nargs="?", choices=[*GROUPS, *WITHOUT_MEASURES])
    parser.add_argument("--json", metavar="FILE", help="write the rows there as one JSON array, too")
    parser.add_argument("--rounds", type=int, default=9, help="at least 7")
    parser.add_argument("--duration-ms", type=int, default=1000, help="of each measurement")
    parser.add_argument("--only", metavar="TEXT", help="rows whose name contains this")
    parser.add_argument("--seed", type=int, default=1, help="of the order within rounds")
    parser.add_argument("--worker", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--bench", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--protos", required=True, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rounds < 7:
        parser.error("--rounds: an interval of the median needs at least 7 rounds here")
    wanted = [arguments.group] if arguments.group else [*GROUPS, *WITHOUT_MEASURES]
    results = []
    describe_machine()
    with tempfile.TemporaryDirectory() as folder:
        folders = SimpleNamespace(worker=arguments.worker, bench=arguments.bench, protos=arguments.protos,
                                  result=f"{folder}/result.pb")
        for group in wanted:
            if group in WITHOUT_MEASURES:
                say(f"{group}: no measures yet")
                continue
            all_rows = GROUPS[group](folders, arguments.duration_ms)
            rows = [row for row in all_rows if not arguments.only or arguments.only in row.name]
            if not rows:
                parser.error(f"--only: no row's name contains '{arguments.only}'; there are\n  " + "\n  ".join(row.name for row in all_rows))
            values = rounds(rows, arguments.rounds, arguments.seed)
            for row in rows:
                results.append(row_of(row, values[row]))
                print(json.dumps(results[-1]), flush=True)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(results, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    try:
        main()
    except (measures.Failed, subprocess.SubprocessError, OSError) as error:
        say(str(error))
        sys.exit(1)
