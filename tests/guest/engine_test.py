"""The engine on machines with several real nodes: guest_test's tests, and the worker's own placement lines."""
import os
import unittest

from guest import run

GUEST_TEST = os.path.join(os.environ['PIPEYARD_TEST_DIR'], 'guest_test')
WORKER = os.path.join(os.environ['PIPEYARD_BIN_DIR'], 'pipeyard-worker')
THREE_NODES = ('--nodes', 3, '--distances', '10,31,21/31,10,41/21,41,10')
# Tests that mean one node, or a kernel before 6.9.
OTHER_MACHINES = 'RealFastpathTest.*:OldKernel.*'


class EngineTest(unittest.TestCase):
    def run_tests(self, options, tests):
        """Runs those of guest_test that `tests` names; each passes, none is skipped, and there are some."""
        result = run(*options, GUEST_TEST, f'--gtest_filter={tests}')
        output = result.stdout.decode(errors='replace')
        self.assertEqual(result.returncode, 0, output[-4000:] + result.stderr.decode(errors='replace'))
        self.assertRegex(output, r'\[  PASSED  \] [1-9]\d* test', output)
        self.assertNotIn('SKIPPED', output)

    def test_on_two_nodes(self):
        self.run_tests(('--nodes', 2), f'-{OTHER_MACHINES}')

    def test_on_three_nodes(self):
        self.run_tests(THREE_NODES, f'-{OTHER_MACHINES}')

    def test_with_a_node_of_memory_only(self):
        self.run_tests((*THREE_NODES, '--cpuless', 2), f'-{OTHER_MACHINES}')

    def test_on_a_square_of_four_nodes(self):
        self.run_tests(('--nodes', 4, '--distances', '10,20,20,30/20,10,30,20/20,30,10,20/30,20,20,10'), 'KernelFallback.*:*Arenas*')

    def test_on_a_kernel_without_weighted_interleave(self):
        self.run_tests(('--nodes', 2, '--kernel', '6.1'), 
                       'OldKernel.*:Kernel*:*Arenas*:RealPolicyTest.*:TaskPolicyTest.*:BulkTest.*:PipePlacementTest.*-*Weight*:*HostsWeights')

    def test_the_fastpath_where_only_node_1_has_memory(self):
        self.run_tests(('--nodes', 2, '--memoryless', 0), 'RealFastpathTest.UsesTheNodeThatHasTheMemory')

    def test_a_second_node_comes_online(self):
        self.run_tests(('--nodes', 2, '--hotplug', 1, '--hotplug-line', 'plug'), 'RealFastpathTest.*')

    def run_worker(self, options, *settings, program=(), workload='transfer', target='engine'):
        """Runs `workload` on `target`, by `program` if given; returns exit status and what the worker says."""
        words = [word for setting in settings for word in ('--set', setting)]
        result = run('--file', WORKER, *options, *program, WORKER, 'run', '--workload', workload, '--target', target,
                     '--set', 'warmup=0', *words)
        return result.returncode, result.stdout.decode(errors='replace') + result.stderr.decode(errors='replace')

    def test_the_worker_proves_where_its_memory_lies(self):
        status, output = self.run_worker(('--nodes', 2), 'duration=200ms', 'engine.policy=preferred:1',
                                         'engine.metadata_placement=policy-node')
        self.assertEqual(status, 0, output)
        self.assertRegex(output, r'(?m)^message-buffers \(move_pages\):( node [01]: [1-9]\d* pages)+$')
        self.assertRegex(output, r'(?m)^engine-pages \(move_pages\): node 0: [1-9]\d* pages node 1: [1-9]\d* pages$')
        self.assertRegex(output, r'(?m)^engine-metadata \(move_pages\): node 1: [1-9]\d* pages$')

    def test_the_kernel_faults_a_region_in_by_the_hosts_weights(self):
        script = 'echo 3 >/sys/kernel/mm/mempolicy/weighted_interleave/node0; exec "$0" "$@"'
        status, output = self.run_worker(('--nodes', 2), 'duration=1ms', 'region_bytes=1MiB', 'tasks=2',
                                         'placement.memory=weighted-interleave:0=3,1=1', program=('sh', '-c', script),
                                         workload='fault', target='kernel')
        self.assertEqual(status, 0, output)
        self.assertRegex(output, r'(?m)^region-pages \(move_pages\): node 0: 192 pages node 1: 64 pages$')
        self.assertRegex(output, r'(?m)^self-check minor-faults passed')

    def test_weights_that_are_not_the_hosts_are_refused(self):
        status, output = self.run_worker(('--nodes', 2), 'duration=1ms', 'placement.memory=weighted-interleave:0=3,1=1',
                                         workload='fault', target='kernel')
        self.assertEqual(status, 1, output)
        self.assertRegex(output, r'(?m)^not_applicable \(weights_not_set\): .*weight of node 0 is 1; write 3 to /sys/')

    def test_a_kernel_without_weighted_interleave_refuses_the_policy(self):
        status, output = self.run_worker(('--nodes', 2, '--kernel', '6.1'), 'duration=1ms',
                                         'placement.memory=weighted-interleave:0,1', workload='fault', target='kernel')
        self.assertEqual(status, 1, output)
        self.assertRegex(output, r'(?m)^not_applicable \(policy_not_supported\): .*EINVAL')

    def test_bandwidth_is_told_of_the_node_that_memory_is_bound_to(self):
        for target, setting in ('kernel', 'placement.memory=bind:1'), ('engine', 'engine.policy=bind:1'):
            status, output = self.run_worker(('--nodes', 2), 'duration=500ms', 'region_bytes=4MiB', 'tasks=2', 'workers=processes',
                                             setting, workload='bandwidth', target=target)
            self.assertEqual(status, 0, output)
            self.assertRegex(output, r'(?m)^region-pages \((move_pages|engine-map)\): node 1: 1024 pages$')
            self.assertRegex(output, r'(?m)^ +node1_bandwidth +[1-9]')
            self.assertNotRegex(output, r'(?m)^ +node0_bandwidth')

    def test_an_attempt_during_which_a_node_comes_online_is_void(self):
        # "plug" once writer and reader have used half a second between them.
        script = '''"$0" "$@" & worker=$!
                    until [ "$(ls /proc/$worker/task | wc -l)" -ge 3 ]; do sleep 0.05; done
                    used() { read -r line </proc/$worker/stat; set -- ${line##*)}; echo $((${12} + ${13})); }
                    before=$(used); until [ $(($(used) - before)) -ge 50 ]; do sleep 0.05; done
                    echo plug; wait $worker'''
        status, output = self.run_worker(('--nodes', 2, '--hotplug', 1, '--hotplug-line', 'plug'), 'duration=10s',
                                         'engine.fastpath=on', program=('sh', '-c', script))
        self.assertEqual(status, 1, output)
        self.assertRegex(output, r'(?m)^void \(topology_changed\): .*node1 add')
        self.assertRegex(output, r'(?m)^ +fastpath_page_pages +[1-9]')
        self.assertRegex(output, r'(?m)^ +fastpath_pages_after_online +\d')
