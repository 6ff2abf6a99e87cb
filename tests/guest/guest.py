"""Guests for tests: `python3 guest.py MODULE` runs the unittests of MODULE, which start guests with run().

Exit status 77, with the reason, where no guest can be had on this machine; 1 where a test failed.
"""
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
RUN = os.path.join(HERE, '..', '..', 'deploy', 'qemu', 'run')
SKIPPED = 77
CANNOT = 125  # of `run`: the guest cannot be had
# Generous: a loaded machine of two cores. Passing tests never wait for it.
PATIENCE = ('--boot-timeout', '300', '--timeout', '300')


def command(*arguments):
    return [RUN, *PATIENCE, *map(str, arguments)]


def run(*arguments):
    """Runs `deploy/qemu/run` with `arguments` to its end."""
    return subprocess.run(command(*arguments), stdin=subprocess.DEVNULL, capture_output=True, check=False)


def main(module):
    for kernel in ('6.12', '6.1'):
        prepared = run('--prepare', '--kernel', kernel)
        if prepared.returncode != 0:
            said = prepared.stderr.decode(errors='replace').strip().splitlines() or ['no reason given']
            # Any other end is a fault of `run` itself, which no skipped test may hide.
            word, status = ('SKIP', SKIPPED) if prepared.returncode == CANNOT else ('FAIL', 1)
            print(f'{word}: no guest with kernel {kernel} can be had: {said[-1]}')
            return status
    result = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromName(module))
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == '__main__':
    sys.path.insert(0, HERE)
    sys.exit(main(sys.argv[1]))
