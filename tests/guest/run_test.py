"""deploy/qemu/run itself: what it hands back, and what it leaves behind."""
import os
import select
import signal
import subprocess
import tempfile
import unittest

from guest import command, run

PATIENCE = 300


def write_program(folder, text):
    path = os.path.join(folder, 'program')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    os.chmod(path, 0o755)
    return path


def children(pid):
    with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as file:
        return [int(word) for word in file.read().split()]


class HandBackTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='pipeyard-guest.')
        self.addCleanup(subprocess.run, ['rm', '-rf', self.folder], check=True)

    def test_outputs_are_the_bytes_that_the_program_wrote(self):
        data = os.path.join(self.folder, 'data')
        with open(data, 'wb') as file:
            file.write(bytes(range(256)) * 800 + b'no newline at the end\r')
        program = write_program(self.folder, '#!/bin/sh\ncat data & cat data >&2\nwait\nexit 7\n')

        result = subprocess.run(command('--file', data, program), cwd=self.folder, capture_output=True, check=False)

        with open(data, 'rb') as file:
            expected = file.read()
        self.assertEqual(result.returncode, 7, result.stderr[-500:])
        self.assertTrue(result.stdout == expected)
        self.assertTrue(result.stderr == expected)

    def test_arguments_and_environment_arrive_unchanged(self):
        words = ['', ' ', 'a b', "it's", '"', '$HOME', '*', '-n', '--nodes', 'ä\n;|&']
        program = write_program(self.folder, '#!/bin/sh\nprintf "<%s>" "$@"; cat /proc/$$/environ\n')

        result = run('--env', "WORD=a 'b' $c=d", program, *words)

        self.assertEqual(result.stderr, b'')
        arguments, *environment = result.stdout.decode().removesuffix('\0').split('\0')
        arguments, equals, first = arguments.rpartition('>')
        self.assertEqual(arguments + equals, ''.join(f'<{word}>' for word in words))
        self.assertEqual([setting.split('=')[0] for setting in [first, *environment]], ['PATH', 'HOME', 'WORD'])
        self.assertEqual(environment[-1], "WORD=a 'b' $c=d")

    def test_standard_output_is_no_terminal_and_input_is_empty(self):
        result = run('sh', '-c', 'test -t 1 || echo no terminal; read line || echo no input')
        self.assertEqual(result.stdout, b'no terminal\nno input\n')

    def test_status_of_a_killed_program_is_128_and_the_signal(self):
        result = run('sh', '-c', 'echo before; kill -9 $$')
        self.assertEqual((result.returncode, result.stdout, result.stderr), (128 + signal.SIGKILL, b'before\n', b''))

    def test_what_the_program_leaves_running_does_not_hold_the_guest(self):
        result = run('sh', '-c', 'sleep 1000 & exit 3')
        self.assertEqual((result.returncode, result.stderr), (3, b''))


class FailureTest(unittest.TestCase):
    def said(self, result):
        return result.stderr.decode()

    def test_a_program_that_does_not_end_is_timed_out_with_its_output(self):
        result = run('--timeout', 1, 'sh', '-c', 'echo before; sleep 1000')
        self.assertEqual((result.returncode, result.stdout), (124, b'before\n'))
        self.assertRegex(self.said(result), r'^run: \S+ did not end within 1 s\n$')

    def test_a_program_of_status_124_is_not_said_to_be_timed_out(self):
        result = run('sh', '-c', 'exit 124')
        self.assertEqual((result.returncode, result.stderr), (124, b''))

    def test_a_guest_that_does_not_boot_is_told_apart(self):
        result = run('--boot-timeout', 0.1, 'true')
        self.assertEqual(result.returncode, 125)
        self.assertIn('run: the guest did not start the program within 0.1 s', self.said(result))

    def test_a_panic_is_told_apart(self):
        result = run('sh', '-c', 'echo c >/proc/sysrq-trigger')
        self.assertEqual(result.returncode, 125)
        self.assertIn("run: the guest's kernel panicked while the program ran (not syncing: sysrq triggered crash)",
                      self.said(result))

    def test_a_missing_program_is_127(self):
        result = run('./nonesuch')
        self.assertEqual((result.returncode, self.said(result)), (127, 'run: ./nonesuch: there is no such program\n'))

    def test_a_program_that_is_not_executable_is_126(self):
        result = run('/etc/passwd')
        self.assertEqual((result.returncode, self.said(result)), (126, 'run: /etc/passwd is not executable\n'))

    def test_a_missing_file_is_named(self):
        result = run('--file', './nonesuch', 'true')
        self.assertEqual(result.returncode, 125)
        self.assertIn('nonesuch', self.said(result))

    def test_machines_that_cannot_be_are_refused(self):
        for wrong, said in ((['--nodes', 5], 'choose from 1, 2, 3, 4'), (['--hotplug', 1], 'there are nodes 0 to 0'),
                            (['--memoryless', 0], 'no node is left with memory'), (['--cpuless', 0], 'no node is left with a CPU'),
                            (['--nodes', 2, '--cpuless', 0], 'nodes without CPUs come after those with'),
                            (['--nodes', 3, '--hotplug', 1], 'the node that comes later is the last'),
                            (['--nodes', 2, '--distances', '10,21'], '2 rows of 2 are wanted'),
                            (['--nodes', 2, '--distances', '10,9/21,10'], '9 from 0 to 1'),
                            (['--kernel', '5.10'], "choose from '6.1', '6.12'"), (['--nodes', 2], 'PROGRAM is missing')):
            result = run(*wrong, *([] if 'PROGRAM' in said else ['true']))
            self.assertEqual(result.returncode, 125, wrong)
            self.assertIn(said, self.said(result))


class MachineTest(unittest.TestCase):
    def test_nodes_are_as_described(self):
        result = run('--nodes', 3, '--cpus', 2, '--memory', 256, '--distances', '10,21,31/21,10,41/31,41,10', '--cpuless', 2,
                     'sh', '-c', 'cd /sys/devices/system/node; cat online has_memory node*/distance node*/cpulist; uname -r')
        self.assertEqual(result.returncode, 0, result.stderr)
        *nodes, kernel = result.stdout.decode().splitlines()
        self.assertEqual(nodes, ['0-2', '0-2', '10 21 31', '21 10 41', '31 41 10', '0-1', '2-3', ''])
        self.assertTrue(kernel.startswith('6.12.'), kernel)

    def test_the_older_kernel_and_a_node_without_memory(self):
        result = run('--nodes', 2, '--kernel', '6.1', '--memoryless', 0,
                     'sh', '-c', 'cd /sys/devices/system/node; cat online has_memory node0/cpulist; uname -r')
        self.assertEqual(result.returncode, 0, result.stderr)
        *nodes, kernel = result.stdout.decode().splitlines()
        self.assertEqual(nodes, ['0-1', '1', '0'])
        self.assertTrue(kernel.startswith('6.1.'), kernel)

    def test_a_node_comes_online_at_the_line(self):
        script = '''cd /sys/devices/system/node; cat has_memory; echo now
                    for i in $(seq 300); do [ $(cat has_memory) = 0-1 ] && break; sleep 0.1; done; cat has_memory'''
        result = run('--nodes', 2, '--hotplug', 1, '--hotplug-line', 'now', 'sh', '-c', script)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, b'0\nnow\n0-1\n', b''))


class EndTest(unittest.TestCase):
    """However the script ends, QEMU ends with it, and no file is left."""

    def end_with(self, number):
        with tempfile.TemporaryDirectory() as folder:
            script = subprocess.Popen(command('sh', '-c', 'echo started; sleep 1000'), stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, env={**os.environ, 'TMPDIR': folder})
            self.assertEqual(script.stdout.readline(), b'started\n')
            qemu, = children(script.pid)
            gone = os.pidfd_open(qemu)
            try:
                script.send_signal(number)
                self.assertEqual(script.wait(PATIENCE), -number)
                self.assertEqual(script.stderr.read(), b'')
                self.assertTrue(self.has_ended(gone))
                self.assertEqual(os.listdir(folder), [])
            finally:
                os.close(gone)
                script.stdout.close()
                script.stderr.close()

    @staticmethod
    def has_ended(pidfd):
        poller = select.poll()
        poller.register(pidfd, select.POLLIN)
        return bool(poller.poll(PATIENCE * 1000))

    def test_interrupted(self):
        self.end_with(signal.SIGINT)

    def test_terminated(self):
        self.end_with(signal.SIGTERM)

    def test_killed(self):
        self.end_with(signal.SIGKILL)
