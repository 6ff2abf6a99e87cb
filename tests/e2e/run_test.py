"""A run from the sweep file to the table, through real programs."""
import json
import os
import signal
import subprocess
import unittest

from fleet import BIN, FleetTest, sweep


class Run(FleetTest):
    def test_submit_watch_prints_one_object_and_the_run_is_stored(self):
        self.fleet('host1')
        status, out, err = self.cli('sweep', 'submit', self.write('s.yaml', sweep()), '--watch', '-o', 'json')
        self.assertEqual(status, 0, err)
        run = json.loads(out)['run']
        self.assertIn(run, err)
        self.assertEqual(self.show(run)['state'], 'finished')
        self.assert_each_sample_stored_once(run, 12)

    def test_engine_run_shows_counters_that_prove_the_switch(self):
        self.fleet('host1')
        text = sweep(target='engine').replace('factors: { writers: [1, 2] }', 'factors: { engine.page_cache: [two-page, prealloc] }')
        text = text.replace('compare: { factor: writers, baseline: 1 }', 'compare: { factor: engine.page_cache, baseline: two-page }')
        run = self.submit(text)
        self.finished(run)
        rows = self.json('diff', run)['rows']
        row = next(r for r in rows if r['metric'] == 'throughput')
        self.assertEqual((row['a']['n'], row['b']['n']), (6, 6))
        counters = {c['name']: c for c in row['counters']}
        preallocated = [c for name, c in counters.items() if 'outside' in name]
        self.assertTrue(preallocated, counters)
        for counter in preallocated:
            self.assertEqual(counter['a'], 0, counter)
            self.assertGreater(counter['b'], 0, counter)

    def test_reference_target_stands_beside_the_arms(self):
        self.fleet('host1')
        text = '''sweep: reference
workload: transfer
parameters: { message_bytes: 64KiB, pipe_bytes: 1MiB, duration: 50ms, warmup: 0 }
factors: { target: [engine, kernel], engine.page_cache: [two-page, prealloc] }
compare: { factor: engine.page_cache, baseline: two-page }
'''
        run = self.submit(text)
        shown = self.finished(run)
        self.assertEqual(len(shown['cells']), 3)
        self.assert_each_sample_stored_once(run, 18)
        diff = self.json('diff', run)
        self.assertTrue(diff['references'])

    def test_messaging_runs_in_threads_and_processes_on_both_targets(self):
        self.fleet('host1')
        text = '''sweep: messaging
workload: messaging
parameters: { groups: 2, fds: 2, loops: 20 }
factors: { target: [engine, kernel], workers: [threads, processes] }
compare: { factor: workers, baseline: threads }
'''
        run = self.submit(text)
        shown = self.finished(run)
        self.assertEqual(len(shown['cells']), 4)
        self.assert_each_sample_stored_once(run, 24, 'message_rate')
        self.assertEqual({r['metric'] for r in self.json('diff', run)['rows']}, {'message_rate', 'time'})

    def test_bulk_runs_on_the_engine_and_its_calls_are_those_of_the_algorithm(self):
        self.fleet('host1')
        text = '''sweep: bulk
workload: bulk
parameters: { pages: 8, duration: 50ms, warmup: 0 }
engine:
  topology: { nodes: [{ cpus: 2, memory: 64MiB }, { cpus: 2, memory: 64MiB }] }
  policy: "weighted-interleave:0=3,1=1"
factors: { engine.interleave_bulk: [folded-carry, single-step] }
compare: { factor: engine.interleave_bulk, baseline: folded-carry }
'''
        run = self.submit(text)
        shown = self.finished(run)
        self.assertEqual(len(shown['cells']), 2)
        self.assert_each_sample_stored_once(run, 12, 'page_rate')
        rows = self.json('diff', run)['rows']
        self.assertEqual({(r['metric'], r['unit'], r['better']) for r in rows},
                         {('page_rate', '1/s', 'higher'), ('time_per_page', 'ns', 'lower'), ('request_p50', 'ns', 'lower'),
                          ('request_p99', 'ns', 'lower')})
        self.assertNotIn('inert', {r['verdict'] for r in rows})
        # Of 8 pages under 3:1, six come from node 0 and two from node 1, in one call each or one by one.
        counters = {c['name']: c for c in rows[0]['counters']}
        for arm, calls in ('a', {'node0': 1, 'node1': 1}), ('b', {'node0': 6, 'node1': 2}):
            operations = counters['operations'][arm]
            self.assertGreater(operations, 0)
            for node, number in calls.items():
                self.assertEqual(counters[f'{node}_bulk_calls'][arm], number * operations, counters)
            self.assertEqual(counters['node0_pages'][arm], 6 * operations, counters)

    def test_churn_runs_both_operations_in_threads_and_processes_on_both_targets(self):
        self.fleet('host1')
        text = '''sweep: churn
workload: churn
parameters: { tasks: 2, window: 4, duration: 20ms, warmup: 0 }
factors: { target: [engine, kernel], workers: [threads, processes], operation: [create, resize] }
compare: { factor: workers, baseline: threads }
'''
        run = self.submit(text)
        shown = self.finished(run)
        self.assertEqual(len(shown['cells']), 8)
        self.assert_each_sample_stored_once(run, 48, 'operation_rate')
        self.assertEqual({(r['metric'], r['unit'], r['better']) for r in self.json('diff', run)['rows']},
                         {('operation_rate', '1/s', 'higher'), ('time_per_operation', 'ns', 'lower'),
                          ('operation_p50', 'ns', 'lower'), ('operation_p99', 'ns', 'lower')})

    def test_an_aged_node_gives_remote_metadata_unless_the_policy_is_asked(self):
        self.fleet('host1')
        text = '''sweep: aged
workload: churn
target: engine
parameters: { duration: 50ms, warmup: 0 }
engine: { topology: { nodes: [{ cpus: 2, memory: 64MiB }, { cpus: 2, memory: 64MiB }] } }
factors: { allocator: [fresh, aged:1], engine.metadata_placement: [any-node, policy-node] }
compare: { factor: engine.metadata_placement, baseline: any-node }
'''
        run = self.submit(text)
        self.finished(run)
        self.assert_each_sample_stored_once(run, 24, 'operation_rate')
        remote = {}
        for row in self.json('diff', run)['rows']:
            if row['metric'] == 'operation_rate':
                counter = next(c for c in row['counters'] if c['name'] == 'metadata_remote')
                remote['aged' if 'aged' in json.dumps(row['variant']) else 'fresh'] = (counter['a'], counter['b'])
        self.assertEqual(remote['fresh'], (0, 0))
        self.assertGreater(remote['aged'][0], 0)
        self.assertEqual(remote['aged'][1], 0)

    def test_fault_runs_in_threads_and_processes_on_both_targets(self):
        self.fleet('host1')
        text = '''sweep: fault
workload: fault
parameters: { tasks: 2, region_bytes: 1MiB, duration: 20ms, warmup: 1ms }
factors: { target: [engine, kernel], workers: [threads, processes] }
compare: { factor: workers, baseline: threads }
'''
        run = self.submit(text)
        shown = self.finished(run)
        self.assertEqual(len(shown['cells']), 4)
        self.assert_each_sample_stored_once(run, 24, 'fault_rate')
        rows = self.json('diff', run)['rows']
        self.assertEqual({(r['metric'], r['unit'], r['better']) for r in rows},
                         {('fault_rate', '1/s', 'higher'), ('cpu_fault_rate', '1/s', 'higher'), ('time_per_fault', 'ns', 'lower')})
        attempts = [a for c in shown['cells'] for t in c['trials'] for a in t['attempts']]
        faults = [c for a in attempts for c in a['self_checks'] if c['name'] == 'minor-faults']
        self.assertEqual(len(faults), 12, 'of target kernel')
        self.assertTrue(all(c['passed'] for c in faults), faults)

    def test_the_fault_paths_fastpath_takes_every_page_and_is_inert_on_several_nodes(self):
        self.fleet('host1')
        text = '''sweep: fastpath
workload: fault
target: engine
parameters: { region_bytes: 1MiB, duration: 20ms, warmup: 1ms }
engine: { policy: "weighted-interleave:0=3" }
factors: { engine.fastpath: ["off", "on"] }
compare: { factor: engine.fastpath, baseline: "off" }
'''
        run = self.submit(text)
        self.finished(run)
        row = self.json('diff', run)['rows'][0]
        if row['verdict'] == 'inert':
            return  # this machine has several nodes
        counters = {c['name']: c for c in row['counters']}
        for arm in 'a', 'b':
            self.assertGreater(counters['pages_touched'][arm], 0)
            self.assertEqual(counters['fault_pages'][arm], counters['pages_touched'][arm])
        self.assertEqual(counters['fastpath_fault_pages']['a'], 0)
        self.assertEqual(counters['fastpath_fault_pages']['b'], counters['pages_touched']['b'])

    def test_bandwidth_goes_through_nodes_by_their_weights_on_the_engine(self):
        self.fleet('host1')
        text = '''sweep: bandwidth
workload: bandwidth
target: engine
parameters: { operation: triad, region_bytes: 3MiB, duration: 50ms, warmup: 1ms }
engine:
  topology: { nodes: [{ cpus: 2, memory: 64MiB }, { cpus: 2, memory: 64MiB }] }
factors: { engine.policy: ["interleave:0,1", "weighted-interleave:0=3,1=1"] }
compare: { factor: engine.policy, baseline: "interleave:0,1" }
'''
        run = self.submit(text)
        shown = self.finished(run)
        self.assert_each_sample_stored_once(run, 12, 'bandwidth')
        rows = self.json('diff', run)['rows']
        self.assertEqual({(r['metric'], r['unit'], r['better']) for r in rows}, {('bandwidth', 'B/s', 'higher')})
        counters = {c['name']: c for c in rows[0]['counters']}
        self.assertEqual(counters['node0_bytes']['a'], counters['node1_bytes']['a'])
        self.assertEqual(counters['node0_bytes']['b'], 3 * counters['node1_bytes']['b'])
        attempts = [a for c in shown['cells'] for t in c['trials'] for a in t['attempts']]
        self.assertTrue(all(a['emulated'] for a in attempts))

    def test_bandwidth_runs_every_operation_on_placed_memory_of_the_kernel(self):
        self.fleet('host1')
        text = '''sweep: bandwidth
workload: bandwidth
target: kernel
parameters: { region_bytes: 3MiB, tasks: 2, workers: processes, duration: 50ms, warmup: 1ms }
placement: { memory: "bind:0" }
factors: { operation: [read, write, copy, triad] }
'''
        run = self.submit(text)
        shown = self.finished(run)
        self.assertEqual(len(shown['cells']), 4)
        self.assert_each_sample_stored_once(run, 24, 'bandwidth')
        for cell in shown['cells']:
            for trial in cell['trials']:
                region = [p for p in trial['attempts'][-1]['placements'] if p['memory'] == 'region-pages']
                self.assertEqual([set(p['pages_per_node']) for p in region], [{'0'}], region)

    def test_a_region_bound_to_a_node_that_is_not_there_is_not_applicable(self):
        self.fleet('host1')
        run = self.submit('''sweep: elsewhere
workload: fault
target: kernel
placement: { memory: "bind:63" }
''')
        shown = self.finished(run, 'failed')
        self.assertEqual([c['state'] for c in shown['cells']], ['not_applicable'])
        self.assertIn('bind:63: node 63 is not online', shown['cells'][0]['reason'])

    def test_two_agents_run_the_same_cells_and_never_at_once(self):
        self.fleet('host1', 'host2')
        run = self.submit(sweep())
        shown = self.finished(run)
        self.assertEqual({c['host'] for c in shown['cells']}, {'host1', 'host2'})
        self.assert_each_sample_stored_once(run, 24)

    def test_cancel_keeps_what_was_measured_and_leaves_no_worker(self):
        _, agent = self.fleet('host1')
        run = self.submit(sweep(duration='2s'))
        self.until(lambda: self.done(run) >= 1, 'a trial is done')
        self.a_worker_runs(agent)
        self.assertEqual(self.cli('run', 'cancel', run)[0], 0)
        self.finished(run, 'canceled')
        self.until(lambda: not self.workers(agent), 'the worker is gone')
        self.assertGreaterEqual(self.done(run), 1)
        status, _, _ = self.cli('run', 'watch', run)
        self.assertEqual(status, 6)

    def test_interrupt_of_watch_leaves_the_run_and_says_how_to_go_on(self):
        self.fleet('host1')
        watch = subprocess.Popen([os.path.join(BIN, 'pipeyard'), '--controller', self.address, 'sweep', 'submit', self.write('s.yaml', sweep(duration='500ms')),
                                  '--watch'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        run = self.until(lambda: [r['run'] for r in self.json('run', 'list')['runs'] if r['state'] == 'running'], 'the run runs')[0]
        self.until(lambda: self.done(run) >= 1, 'a trial is done')
        watch.send_signal(signal.SIGINT)
        _, err = watch.communicate(timeout=60)
        self.assertEqual(watch.returncode, 130, err)
        self.assertIn('run watch', err)
        self.finished(run)

    def test_daemons_end_with_zero_on_sigterm(self):
        controller, agent = self.fleet('host1')
        for process in (agent, controller):
            process.terminate()
            self.assertEqual(process.wait(60), 0)

    def test_runs_survive_a_restart_of_the_controller(self):
        controller, _ = self.fleet('host1')
        run = self.submit(sweep())
        self.finished(run)
        before = self.show(run)
        controller.terminate()
        controller.wait(60)
        self.controller()
        self.assertEqual(self.show(run), before)


if __name__ == '__main__':
    unittest.main()
