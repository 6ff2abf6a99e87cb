"""What can be measured, by group: rows of ours against a peer, both programs that give one number."""
import re
import statistics
import subprocess


class Failed(Exception):
    pass


def run(command, environment=None):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def positive(value, command):
    if value <= 0:
        raise Failed(f"{' '.join(command)}: nothing moved; is the machine busy with something else?")
    return value


class Program:
    """A program that prints one number, or text that holds one."""

    def __init__(self, name, command, pattern=r"(\S+)", convert=float, environment=None):
        self.name, self._command, self._pattern, self._convert, self._environment = name, list(map(str, command)), pattern, convert, environment

    def measure(self):
        found = re.search(self._pattern, run(self._command, self._environment))
        if not found:
            raise Failed(f"{' '.join(self._command)}: no number in its output")
        return positive(self._convert(float(found.group(1))), self._command)


class Fastest:
    """The lowest of several programs: the peer that costs least."""

    def __init__(self, programs):
        self.name = f"the faster of {', '.join(program.name for program in programs)}"
        self._programs = programs

    def measure(self):
        return min(program.measure() for program in self._programs)


class Attempt:
    """A metric of one attempt in pipeyard-worker."""

    def __init__(self, folders, workload, target, metric, settings, under=()):
        self.name = f"pipeyard-worker {workload} {target}"
        self._metric, self._result = metric, folders.result
        self._decode = ["protoc", "--decode=pipeyard.v1.WorkerResult", "-I", folders.protos, "pipeyard/v1/worker.proto"]
        self._command = [*under, folders.worker, "run", "--workload", workload, "--target", target, "--result", self._result]
        for name, value in settings.items():
            self._command += ["--set", f"{name}={value}"]

    def measure(self):
        run(self._command)
        with open(self._result, "rb") as file:
            text = subprocess.run(self._decode, stdin=file, capture_output=True, text=True, check=True).stdout
        if "outcome: OUTCOME_OK" not in text:
            raise Failed(f"{' '.join(self._command)}: not ok\n{text[:400]}")
        return positive(float(re.search(rf'name: "{self._metric}".*?value: (\S+)', text, re.DOTALL).group(1)), self._command)


class Comparison:
    """A row: ours against the peer. `reach` is what docs/PERFORMANCE.md says the ratio should be."""

    def __init__(self, name, peer, ours, unit, reach=""):
        self.name, self.peer, self.ours, self.unit, self.reach = name, peer, ours, unit, reach


class Paired(Comparison):
    """A row of two programs that differ by a few per cent: each round measures them `blocks` times in the order ours, peer, peer, ours,
    which cancels what drifts. A round gives one ratio, since neighbouring blocks see the same state of the machine."""

    def __init__(self, name, peer, ours, unit, reach="", blocks=9):
        super().__init__(name, peer, ours, unit, reach)
        self._blocks = blocks

    def measure(self):
        """A round: the medians over its blocks of ours, of the peer, and of the ratio."""
        ours, theirs = [], []
        for _ in range(self._blocks):
            first, *both, last = [program.measure() for program in (self.ours, self.peer, self.peer, self.ours)]
            ours.append((first + last) / 2)
            theirs.append(sum(both) / 2)
        return statistics.median(ours), statistics.median(theirs), statistics.median(a / b for a, b in zip(ours, theirs))
