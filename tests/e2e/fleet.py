"""Real controllers and agents on loopback, for tests that meet the programs from outside."""
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest

BIN = os.environ['PIPEYARD_BIN_DIR']
SOURCE = os.environ['PIPEYARD_SOURCE_DIR']
# Generous: a sanitizer build on a loaded machine of two cores. Passing tests never wait for it.
PATIENCE = 120

SWEEP = '''sweep: {name}
workload: transfer
target: {target}
parameters: {{ message_bytes: 64KiB, pipe_bytes: 1MiB, duration: {duration}, warmup: 0 }}
factors: {{ writers: [1, 2] }}
compare: {{ factor: writers, baseline: 1 }}
repetitions: {{ min: 6, max: 6 }}
order: {{ kind: blocked, seed: 7 }}
{more}'''


def sweep(name='e2e', target='kernel', duration='100ms', more=''):
    return SWEEP.format(name=name, target=target, duration=duration, more=more)


class FleetTest(unittest.TestCase):
    """A folder of its own, programs that end with the test, and the questions that tests ask."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='pipeyard-e2e.')
        self.processes = []
        self.address = None

    def tearDown(self):
        failed = any(error for _, error in getattr(self._outcome, 'errors', [])) or bool(
            self._outcome.result.failures or self._outcome.result.errors)
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in reversed(self.processes):
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if failed:
            for name in sorted(os.listdir(self.dir)):
                if name.endswith('.log'):
                    with open(os.path.join(self.dir, name), errors='replace') as f:
                        print(f'--- {name}\n' + ''.join(f.readlines()[-30:]))
        shutil.rmtree(self.dir, ignore_errors=True)

    # --- programs

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        with open(self.path(name), 'w') as f:
            f.write(text)
        return self.path(name)

    def start(self, log, program, *args, **options):
        with open(self.path(log + '.log'), 'a') as out:
            process = subprocess.Popen([os.path.join(BIN, program), *args], stdout=out, stderr=subprocess.STDOUT, cwd=self.dir,
                                       start_new_session=True, **options)
        self.processes.append(process)
        return process

    def log(self, name):
        with open(self.path(name + '.log'), errors='replace') as f:
            return f.read()

    def controller(self):
        """Starts the controller; again on the same port after it was killed."""
        listen = self.address or '127.0.0.1:0'
        address_file = self.path('controller/controller.addr')
        if os.path.exists(address_file):
            os.unlink(address_file)
        process = self.start('controller', 'pipeyard-controller', '--state', self.path('controller'), '--listen', listen, '--http',
                             '127.0.0.1:0')
        self.until(lambda: os.path.exists(address_file) or process.poll() is not None, 'the controller comes up')
        self.assertIsNone(process.poll(), self.log('controller'))
        with open(address_file) as f:
            self.address = json.load(f)['grpc']
        return process

    def agent(self, name):
        return self.start(name, 'pipeyard-agent', '--controller', self.address, '--state', self.path(name), '--name', name)

    def fleet(self, *names):
        """A controller and connected agents; returns the processes."""
        controller = self.controller()
        agents = [self.agent(name) for name in names]
        self.until(lambda: self.connected() >= set(names), 'the agents attach')
        return controller, *agents

    def run_program(self, *args, **options):
        p = subprocess.run([os.path.join(BIN, args[0]), *args[1:]], capture_output=True, text=True, timeout=PATIENCE, cwd=self.dir,
                           env=dict(os.environ, NO_COLOR='1'), **options)
        return p.returncode, p.stdout, p.stderr

    def cli(self, *args):
        return self.run_program('pipeyard', '--controller', self.address, *args)

    # --- questions

    def until(self, what, why, seconds=PATIENCE):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = what()
            if value:
                return value
            time.sleep(0.05)
        self.fail(f'waited {seconds} s until {why}')

    def json(self, *args):
        status, out, err = self.cli(*args, '-o', 'json')
        self.assertEqual(status, 0, err)
        return json.loads(out)

    def connected(self):
        status, out, _ = self.cli('host', 'list', '-o', 'json')
        return {h['host'] for h in json.loads(out)['hosts'] if h['state'] == 'connected'} if status == 0 else set()

    def submit(self, text):
        status, out, err = self.cli('sweep', 'submit', self.write('sweep.yaml', text))
        self.assertEqual(status, 0, err)
        return out.strip().splitlines()[-1].split()[-1]

    def show(self, run):
        status, out, _ = self.cli('run', 'show', run, '-o', 'json')
        return json.loads(out) if status == 0 else {}

    def trials(self, run):
        return [t for c in self.show(run).get('cells', []) for t in c['trials']]

    def attempts(self, run):
        return [a for t in self.trials(run) for a in t['attempts']]

    def done(self, run):
        return sum(t['state'] == 'done' for t in self.trials(run))

    def finished(self, run, state='finished'):
        self.until(lambda: self.show(run).get('state') == state, f'run {run} is {state}')
        return self.show(run)

    def workers(self, agent):
        found = subprocess.run(['pgrep', '-P', str(agent.pid)], capture_output=True, text=True).stdout.split()
        return [int(pid) for pid in found]

    def a_worker_runs(self, agent):
        return self.until(lambda: self.workers(agent), 'a worker runs')

    def kill_a_worker(self, agent, number):
        for pid in self.a_worker_runs(agent):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def assert_each_sample_stored_once(self, run, trials, metric='throughput'):
        """What `run show` says and what lies in the database agree: one ok attempt a trial, one sample of `metric` a trial."""
        shown = self.trials(run)
        self.assertEqual(len(shown), trials)
        for trial in shown:
            self.assertEqual([a['outcome'] for a in trial['attempts']].count('ok'), 1, trial)
            self.assertEqual(trial['state'], 'done')
        with self.database() as db:
            ids = [a['id'] for t in shown for a in t['attempts'] if a['outcome'] == 'ok']
            for attempt in ids:
                count = db.execute(self.samples_of_attempt(), (attempt, metric)).fetchone()[0]
                self.assertEqual(count, 1, attempt)

    def database(self):
        return sqlite3.connect(f"file:{self.path('controller/store.db')}?mode=ro", uri=True)

    @staticmethod
    def samples_of_attempt():
        return '''SELECT count(*) FROM samples JOIN attempts USING (attempt) JOIN metrics USING (metric)
                  WHERE attempts.attempt_id = ? AND metrics.name = ?'''
