"""Placement as a factor: taken on by the launched worker, proved by the kernel, stored with the attempt."""
import os
import unittest

from fleet import FleetTest


class PlacementTest(FleetTest):
    def test_cpus_and_memory_are_taken_on_by_each_target(self):
        self.fleet('host1')
        run = self.submit('''sweep: placed
workload: transfer
parameters: { duration: 20ms, warmup: 0 }
placement: { memory: "bind:all-nodes" }
factors: { target: [engine, kernel], placement.cpus: ["0", spread, one-per-core, 50%cpus, node0, dram-nodes] }
compare: { factor: placement.cpus, baseline: "0" }
repetitions: { min: 1, max: 1 }
''')
        self.finished(run)
        self.assert_each_sample_stored_once(run, 12)
        with self.database() as database:
            resolved = dict(database.execute("SELECT as_written, resolved FROM resolved_values"))
        self.assertEqual(resolved['bind:all-nodes'], 'bind:0')
        self.assertEqual(set(resolved['spread'].split(',')), {str(cpu) for cpu in os.sched_getaffinity(0)})
        self.assertIn('node0', resolved)

    def test_what_the_host_lacks_is_not_applicable_and_says_so(self):
        self.fleet('host1')
        run = self.submit('''sweep: absent
workload: transfer
target: kernel
parameters: { duration: 20ms, warmup: 0 }
placement: { cpus: "0" }
factors: { placement.memory: ["bind:0", "bind:63", "bind:nearest-cxl"] }
repetitions: { min: 1, max: 1 }
''')
        shown = self.finished(run)
        self.assertEqual(sorted(cell['state'] for cell in shown['cells']), ['complete', 'not_applicable', 'not_applicable'])
        with self.database() as database:
            reasons = [row[0] for row in database.execute("SELECT reason_text FROM attempts WHERE reason_code = 'no_such_node'")]
        self.assertEqual(len(reasons), 2)
        self.assertTrue(any('nearest-cxl' in reason for reason in reasons), reasons)


if __name__ == '__main__':
    unittest.main()
