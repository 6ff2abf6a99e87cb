"""Memory pressure by the real stress-ng."""
import os
import subprocess
import unittest

from fleet import BIN, FleetTest

SWEEP = '''sweep: pressed
workload: transfer
target: kernel
parameters: { duration: %s, warmup: 0, message_bytes: 64KiB }
factors: { pressure: [none, stress-vm-50] }
compare: { factor: pressure, baseline: none }
repetitions: { min: 1, max: 1 }
limits: { attempts: 1 }
'''


def pressing(folder):
    """Processes of stress-ng that work below the folder: those of this test, and no zombies."""
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/cmdline', 'rb') as file:
                command = file.read()
            if b'stress-ng' in command and os.readlink(f'/proc/{pid}/cwd').startswith(folder):
                found.append(int(pid))
        except OSError:
            continue
    return found


class PressureTest(FleetTest):
    def test_stress_ng_presses_while_the_load_runs_and_ends_with_it(self):
        self.fleet('host1')
        run = self.submit(SWEEP % '200ms')
        self.finished(run)
        self.assert_each_sample_stored_once(run, 2)
        with self.database() as database:
            resolved = dict(database.execute('SELECT as_written, resolved FROM resolved_values'))
        self.assertRegex(resolved['stress-vm-50'], r'stress-ng --vm 2 --vm-bytes 50% --vm-keep$')
        self.assertEqual(pressing(self.dir), [])

    def test_a_canceled_run_leaves_no_stress_ng_behind(self):
        self.fleet('host1')
        run = self.submit((SWEEP % '60s').replace('[none, stress-vm-50]', '[stress-vm-50]').replace(
            'compare: { factor: pressure, baseline: none }\n', ''))
        self.until(lambda: pressing(self.dir), 'stress-ng runs')
        self.assertEqual(self.cli('run', 'cancel', run)[0], 0)
        self.finished(run, 'canceled')
        self.until(lambda: not pressing(self.dir), 'stress-ng is gone')

    def test_a_worker_that_is_killed_alone_takes_stress_ng_along(self):
        worker = subprocess.Popen([os.path.join(BIN, 'pipeyard-worker'), 'run', '--workload', 'transfer', '--set', 'duration=60s',
                                   '--set', 'pressure=stress-vm-50'], stdout=subprocess.DEVNULL, cwd=self.dir)
        self.until(lambda: pressing(self.dir), 'stress-ng runs')
        worker.kill()
        worker.wait()
        self.until(lambda: not pressing(self.dir), 'stress-ng is gone')

    def test_where_it_is_missing_the_cell_is_not_applicable(self):
        # The agent gives its workers the system's folders; a mount namespace of their own would be needed to hide it from them.
        worker = os.path.join(os.environ['PIPEYARD_BIN_DIR'], 'pipeyard-worker')
        ran = subprocess.run([worker, 'run', '--workload', 'transfer', '--set', 'pressure=stress-vm-80', '--set', 'duration=20ms'],
                             env={'PATH': '/nowhere'}, capture_output=True, text=True)
        self.assertEqual(ran.returncode, 1)
        self.assertIn('not_applicable', ran.stdout)
        self.assertIn('install the package stress-ng', ran.stdout)


if __name__ == '__main__':
    unittest.main()
