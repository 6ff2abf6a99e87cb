"""The figures that tests/bench.sh makes of what it measured."""
import os
import sys
import unittest
from unittest import mock

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'bench'))
import bench
import measures


class Fake:
    """A program that prints the values, one after the other."""

    def __init__(self, name, values):
        self.name, self._values = name, iter(values)

    def measure(self):
        return next(self._values)


class Rounds(unittest.TestCase):
    def setUp(self):
        silence = mock.patch.object(bench, 'say')
        silence.start()
        self.addCleanup(silence.stop)

    def test_blocks_of_a_round_are_one_value(self):
        # Each round has a state of its own, which three blocks share; in each the second block is disturbed.
        states = [1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.07]
        ours = [value for state in states for value in (state, state, 9, 9, state, state)]
        row = measures.Paired('row', Fake('peer', [1] * 42), Fake('ours', ours), 'B/s', blocks=3)

        figures = bench.row_of(row, bench.rounds([row], 7, seed=1)[row])

        self.assertEqual(figures['n'], 7)
        self.assertEqual(figures['ratio'], 1.04)
        self.assertEqual(figures['ci95'], [1.01, 1.07])

    def test_single_programs_are_compared_within_their_round(self):
        row = measures.Comparison('row', Fake('peer', [1, 2, 4]), Fake('ours', [2, 2, 2]), 'B/s')

        figures = bench.row_of(row, bench.rounds([row], 3, seed=1)[row])

        self.assertEqual((figures['ratio'], figures['n'], figures['ci95']), (1, 3, None))


if __name__ == '__main__':
    unittest.main()
