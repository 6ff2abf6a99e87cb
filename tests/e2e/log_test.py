"""What one attempt printed, and its script by hand."""
import os
import subprocess
import unittest

from fleet import BIN, FleetTest


class LogTest(FleetTest):
    def run_of(self, workload, target, more=''):
        self.fleet('host1')
        run = self.submit(f'''sweep: one
workload: {workload}
target: {target}
parameters: {{ duration: 50ms{more} }}
placement: {{ cpus: "50%cpus" }}
repetitions: {{ min: 1, max: 1 }}
''')
        shown = self.finished(run)
        cell = shown['cells'][0]
        return run, f"host1/{cell['variant'][:6]}/1"

    def by_hand(self, run, trial):
        status, script, err = self.cli('run', 'reproduce', run, trial)
        self.assertEqual(status, 0, err)
        environment = {**os.environ, 'PATH': BIN + ':' + os.environ['PATH']}
        return subprocess.run(['bash', '-c', script], env=environment, capture_output=True, text=True)

    def test_the_log_has_what_the_worker_printed_and_what_words_became(self):
        run, trial = self.run_of('transfer', 'kernel')
        log = self.json('run', 'log', run, trial)
        self.assertEqual(log['attempt']['outcome'], 'ok')
        self.assertIn('throughput', next(o['text'] for o in log['outputs'] if o['stream'] == 'stdout'))
        self.assertEqual([(v['name'], v['as_written']) for v in log['resolved']], [('placement.cpus', '50%cpus')])
        status, out, _ = self.cli('run', 'log', run, trial, '1')
        self.assertEqual(status, 0)
        self.assertIn('--- stdout', out)

    def test_the_log_has_what_the_kernel_said_meanwhile(self):
        if not os.access('/dev/kmsg', os.R_OK | os.W_OK):
            self.skipTest('/dev/kmsg cannot be written here')
        _, agent = self.fleet('host1')
        run = self.submit('''sweep: long
workload: transfer
target: kernel
parameters: { duration: 2s }
repetitions: { min: 1, max: 1 }
''')
        # Not before it has the machine's lock: what the kernel says of another's trial is none of its own.
        self.a_worker_runs(agent)
        with open('/dev/kmsg', 'w') as kmsg:
            kmsg.write(f'<6>pipeyard log_test {run}\n')
        cell = self.finished(run)['cells'][0]
        log = self.json('run', 'log', run, f"host1/{cell['variant']}/1")
        self.assertIn(f'pipeyard log_test {run}', next(o['text'] for o in log['outputs'] if o['stream'] == 'kmsg'))

    def test_a_trial_that_is_not_there_is_exit_five(self):
        run, trial = self.run_of('transfer', 'kernel')
        self.assertEqual(self.cli('run', 'log', run, 'host1/ffffff/1')[0], 5)
        self.assertEqual(self.cli('run', 'log', run, trial, '9')[0], 5)
        self.assertEqual(self.cli('run', 'log', run, 'nonsense')[0], 2)

    def test_the_script_repeats_an_engine_trial(self):
        run, trial = self.run_of('bulk', 'engine', ', pages: 8')
        repeated = self.by_hand(run, trial)
        self.assertEqual(repeated.returncode, 0, repeated.stderr)
        self.assertIn('page_rate', repeated.stdout)

    def test_the_script_repeats_messaging_by_hackbench_and_by_the_worker(self):
        run, trial = self.run_of('messaging', 'kernel', ', groups: 1, fds: 2')
        repeated = self.by_hand(run, trial)
        self.assertEqual(repeated.returncode, 0, repeated.stderr)
        self.assertIn('Running in threaded mode with 1 groups using 4 file descriptors each', repeated.stdout)
        self.assertIn('message_rate', repeated.stdout)


if __name__ == '__main__':
    unittest.main()
