"""Workload `command`: programs of a host's commands.d, through real programs."""
import json
import os
import shutil
import signal
import subprocess
import unittest

from fleet import SOURCE, FleetTest

# Prints a rate that depends on its parameter, as a benchmark would.
BENCH = '''#!/bin/sh
echo "# bench with $1 threads"
echo "ops/s: $(( $1 * 100 ))"
printf '{"lat": {"p99": %d}}' "$1" > "$2"
'''
FILE = '''bench:
  argv: [{program}, "{{threads}}", "{{output}}"]
  parameters: {{ threads: {{ type: int, min: 1, max: 8 }} }}
  read:
    ops: {{ regex: '^ops/s: ([0-9]+)$', from: stdout, unit: k/s, better: higher }}
    p99: {{ json: .lat.p99, from: file, unit: us, better: lower }}
  repeat_safe: true
'''
SWEEP = '''sweep: bench
workload: command
command: bench
factors: { threads: [1, 2] }
compare: { factor: threads, baseline: 1 }
'''


class CommandTest(FleetTest):
    def allow(self, agent, name, text):
        folder = os.path.join(self.path(agent), 'commands.d')
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, name + '.yaml'), 'w') as f:
            f.write(text)

    def program(self, name, text):
        path = self.write(name, text)
        os.chmod(path, 0o755)
        return path

    def sleeper(self):
        """A command whose program starts another one, which leaves group and session, and sleeps. The file `pid` has its number."""
        program = self.program('sleeper', '#!/bin/sh\nsetsid sh -c "echo \\$\\$ > $1; exec sleep 1000" &\nwait\n')
        self.allow('host1', 'sleeper', f'''sleeper:
  argv: [{program}, {self.path('pid')}]
  read: {{ ops: {{ regex: '(.*)', unit: count }} }}
''')

    def sleeps(self):
        try:
            with open(self.path('pid')) as f:
                pid = int(f.read())
            with open(f'/proc/{pid}/cmdline') as f:  # empty of one that is dead and not reaped
                return 'sleep' in f.read()
        except (FileNotFoundError, ValueError, ProcessLookupError):
            return False

    def test_a_program_is_measured_by_its_own_words(self):
        program = self.program('bench.sh', BENCH)
        self.allow('host1', 'bench', FILE.format(program=program))
        self.fleet('host1')
        run = self.submit(SWEEP)
        self.finished(run)
        self.assert_each_sample_stored_once(run, 12, 'ops')
        rows = {r['metric']: r for r in self.json('diff', run)['rows']}
        self.assertEqual(set(rows), {'ops', 'p99'})
        self.assertEqual((rows['ops']['unit'], rows['ops']['a']['median'], rows['ops']['b']['median']), ('1/s', 1e5, 2e5))
        self.assertEqual((rows['p99']['unit'], rows['p99']['a']['median'], rows['p99']['b']['median']), ('ns', 1e3, 2e3))
        self.assertEqual((rows['ops']['verdict'], rows['p99']['verdict']), ('improved', 'regressed'))
        with self.database() as db:
            resolved = set(db.execute("SELECT as_written, resolved FROM resolved_values WHERE name = 'program_sha256'"))
            counters = {name for name, in db.execute('SELECT DISTINCT counters.name FROM counter_values JOIN counters USING (counter)')}
        sha256 = subprocess.run(['sha256sum', program], capture_output=True, text=True, check=True).stdout.split()[0]
        self.assertEqual(resolved, {(program, sha256)})
        self.assertLessEqual({'wall_time', 'user_time', 'system_time', 'exit_status'}, counters)
        facts = self.json('host', 'show', 'host1')['facts']['more']
        self.assertEqual(facts['command.bench'], 'threads:int:1..8')
        self.assertIn(sha256, facts['command.bench.program'])

    def test_what_a_host_cannot_run_is_said_in_the_plan_and_not_run(self):
        self.allow('host1', 'bench', FILE.format(program='/nope/bench'))
        self.allow('host2', 'bench', 'bench: { argv: [a/b] }')
        self.allow('host4', 'bench', FILE.format(program=self.program('bench.sh', BENCH)))
        self.fleet('host1', 'host2', 'host3', 'host4')
        text = SWEEP.replace('[1, 2]', '[1, 9]')
        plan = self.json('sweep', 'plan', self.write('s.yaml', text))
        reasons = {h['host']: [n['reason'] for n in h['not_applicable']] for h in plan['hosts']}
        self.assertIn('/nope/bench is not there', reasons['host1'][0])
        self.assertIn('bench.yaml:1:17', reasons['host2'][0])
        self.assertIn('has no command bench', reasons['host3'][0])
        self.assertEqual(len(reasons['host4']), 1)
        self.assertIn('9 is out of range; 1 to 8 was meant', reasons['host4'][0])
        self.assertIn("'a/b' is no program", self.log('host2'))
        run = self.submit(text)
        shown = self.finished(run)
        self.assertEqual(sorted(c['state'] for c in shown['cells']), ['complete'] + ['not_applicable'] * 7)

    def test_a_program_that_fails_or_says_nothing_is_no_sample(self):
        self.allow('host1', 'fails', '''fails:
  argv: [/bin/sh, -c, "echo ops 1; echo no luck >&2; exit {status}"]
  parameters: { status: { type: int } }
  read: { ops: { regex: '^ops=(.*)$', unit: count } }
''')
        self.fleet('host1')
        run = self.submit('''sweep: fails
workload: command
command: fails
factors: { status: [0, 3] }
repetitions: { min: 1, max: 1 }
limits: { attempts: 1 }
''')
        self.until(lambda: self.show(run).get('state') in ('finished', 'failed'), 'the run ends')
        status, out, _ = self.cli('run', 'show', run)
        self.assertEqual(status, 0)
        self.assertEqual({a['outcome'] for a in self.attempts(run)}, {'failed'})
        self.assertEqual({a['reason'].split(':')[0] for a in self.attempts(run)}, {'missing_metric', 'program_exit'})
        self.assertIn('fails ended with exit status 3: no luck', out)
        self.assertIn("ops: no line of stdout matches '^ops=(.*)$'", out)

    def test_a_timeout_kills_the_program_in_whatever_session(self):
        self.sleeper()
        self.fleet('host1')
        run = self.submit('''sweep: sleeps
workload: command
command: sleeper
repetitions: { min: 1, max: 1 }
limits: { attempts: 1, trial_timeout: 2s }
''')
        self.until(self.sleeps, 'the program sleeps')
        self.until(lambda: self.show(run).get('state') in ('finished', 'failed'), 'the run ends')
        self.assertEqual([(a['outcome'], a['reason'].split(':')[0]) for a in self.attempts(run)], [('timeout', 'hung')])
        self.assertFalse(self.sleeps())

    def test_cancel_and_a_killed_agent_leave_no_program(self):
        self.sleeper()
        _, agent = self.fleet('host1')
        text = 'sweep: sleeps\nworkload: command\ncommand: sleeper\n'
        run = self.submit(text)
        self.until(self.sleeps, 'the program sleeps')
        self.assertEqual(self.cli('run', 'cancel', run)[0], 0)
        self.finished(run, 'canceled')
        self.until(lambda: not self.sleeps(), 'the program is gone')
        os.unlink(self.path('pid'))
        run = self.submit(text)
        self.until(self.sleeps, 'the program sleeps')
        agent.send_signal(signal.SIGKILL)
        agent.wait()
        self.agent('host1')
        self.until(lambda: [a for a in self.attempts(run) if (a['reason'] or '').startswith('agent_restarted')], 'the agent is back')
        self.cli('run', 'cancel', run)
        self.finished(run, 'canceled')
        self.until(lambda: not self.sleeps(), 'the program is gone')

    def test_hackbench_is_run_by_its_ready_sweep(self):
        if shutil.which('hackbench') is None:
            self.skipTest('hackbench is not installed: package rt-tests')
        self.allow('host1', 'hackbench', 'hackbench: { preset: hackbench }')
        self.fleet('host1')
        quick = os.path.join(SOURCE, 'workloads/sweeps/quick/hackbench-command.yaml')
        status, out, err = self.cli('sweep', 'submit', quick, '--watch', '-o', 'json')
        self.assertEqual(status, 0, err)
        run = json.loads(out)['run']
        self.assert_each_sample_stored_once(run, 12, 'time')
        row = self.json('diff', run)['rows'][0]
        self.assertEqual((row['metric'], row['unit'], row['better']), ('time', 'ns', 'lower'))
        self.assertGreater(row['a']['median'], 0)

    def test_other_presets_read_their_programs_where_installed(self):
        presets = {'stress-ng-pipe': ('stress-ng', 'seconds: 1', {'bogo_op_rate', 'write_rate'}),
                   'perf-bench-sched-pipe': ('perf', 'loops: 1000', {'time', 'time_per_op', 'op_rate'}),
                   'perf-bench-sched-messaging': ('perf', 'groups: 1, loops: 100, workers: threads', {'time'})}
        presets = {name: preset for name, preset in presets.items() if shutil.which(preset[0])}
        if not presets:
            self.skipTest('neither stress-ng nor perf is installed: packages stress-ng, linux-perf')
        for name in presets:
            self.allow('host1', name, f'{name}: {{ preset: {name} }}')
        self.fleet('host1')
        for name, (_, parameters, metrics) in presets.items():
            run = self.submit(f'sweep: {name}\nworkload: command\ncommand: {name}\nparameters: {{ {parameters} }}\n'
                              'repetitions: { min: 1, max: 1 }\n')
            self.finished(run)
            attempt, = self.attempts(run)
            self.assertEqual(attempt['outcome'], 'ok', attempt)
            values = {m['metric']: m['value'] for m in attempt['metrics']}
            self.assertEqual(set(values), metrics)
            for metric, value in values.items():
                self.assertGreater(value, 0, f'{name} {metric}')

    def test_command_needs_no_controller(self):
        folder = self.path('commands.d')
        os.makedirs(folder)
        with open(os.path.join(folder, 'bench.yaml'), 'w') as f:
            f.write(FILE.format(program='/bin/sh'))
        sample = self.write('out.txt', 'ops/s: 12\n')
        status, out, err = self.run_program('pipeyard', 'command', 'list', '--commands', folder, '-o', 'json')
        self.assertEqual(status, 0, err)
        listed = {c['command']: c for c in json.loads(out)['commands']}
        self.assertTrue(listed['bench']['allowed'])
        self.assertFalse(listed['hackbench']['allowed'])
        status, out, err = self.run_program('pipeyard', 'command', 'show', 'bench', '--commands', folder)
        self.assertEqual(status, 0, err)
        self.assertIn('1 to 8', out)
        status, out, err = self.run_program('pipeyard', 'command', 'test', 'bench', sample, '--from', 'stdout', '--commands', folder,
                                            '-o', 'json')
        self.assertEqual(status, 0, err)
        self.assertEqual(json.loads(out)['metrics'], [{'metric': 'ops', 'value': 12000.0, 'unit': '1/s', 'better': 'higher', 'problem': None}])
        with open(sample) as f:
            status, out, err = self.run_program('pipeyard', 'command', 'test', 'bench', '--commands', folder, stdin=f)
        self.assertEqual(status, 2)
        self.assertIn('p99: .lat.p99 of file: is no valid JSON', err)
        self.assertEqual(self.run_program('pipeyard', 'command', 'show', 'nope', '--commands', folder)[0], 5)


if __name__ == '__main__':
    unittest.main()
