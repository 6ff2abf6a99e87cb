"""That the checks of the sources can fail: each plants the fault that it must find."""
import os
import subprocess
import sys
import tempfile
import unittest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def write(root, path, text):
    full = os.path.join(root, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, 'w') as f:
        f.write(text)


def run(script, *args):
    p = subprocess.run([sys.executable, os.path.join(TESTS, script), *args], capture_output=True, text=True)
    return p.returncode, p.stdout


class Layers(unittest.TestCase):
    def check(self, files):
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                write(root, path, text)
            return run('layers.py', root)

    def test_allowed_arrow_passes(self):
        status, out = self.check({'base/a.h': '', 'storage/b.cc': '#include "base/a.h"\n'})
        self.assertEqual(status, 0, out)

    def test_arrow_that_runs_back_fails(self):
        status, out = self.check({'storage/b.h': '', 'base/a.cc': '#include "storage/b.h"\n'})
        self.assertEqual(status, 1)
        self.assertIn('base/a.cc:1: base may not use storage', out)

    def test_agent_and_controller_never_include_one_another(self):
        status, out = self.check({'controller/api/x.h': '', 'agent/daemon/a.cc': '#include "controller/api/x.h"\n'})
        self.assertEqual(status, 1, out)

    def test_library_outside_its_edge_fails(self):
        status, out = self.check({'controller/scheduler/a.cc': '#include <grpcpp/grpcpp.h>\n'})
        self.assertEqual(status, 1)
        self.assertIn('stays behind', out)

    def test_unknown_folder_fails(self):
        status, _ = self.check({'controller/misc/a.cc': ''})
        self.assertEqual(status, 1)


class Summary(unittest.TestCase):
    def summarize(self, cases):
        with tempfile.TemporaryDirectory() as root:
            write(root, 'dev/junit.xml', f'<testsuite>{cases}</testsuite>')
            return run('summary.py', os.path.join(root, 'dev/junit.xml'))

    def test_counts(self):
        status, out = self.summarize('<testcase name="a" status="run"/><testcase name="b" status="run"/>')
        self.assertEqual((status, out.splitlines()[-1]), (0, '2 passed, 0 failed, 0 skipped'))

    def test_a_failure_is_named_and_fails(self):
        status, out = self.summarize('<testcase name="a" status="run"/><testcase name="b" status="fail"/>')
        self.assertEqual(status, 1)
        self.assertIn('failed   dev: b', out)

    def test_nothing_run_fails(self):
        status, _ = self.summarize('')
        self.assertEqual(status, 1)

    def test_a_skip_says_why(self):
        _, out = self.summarize('<testcase name="a" status="run"/><testcase name="b" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>'
                                '<system-out>x_test.cc:1: Skipped\nneeds root\n</system-out></testcase>')
        self.assertIn('skipped  dev: b: needs root', out)


if __name__ == '__main__':
    unittest.main()
