"""Bad input and trouble: one clear line, the right exit status, nothing overwritten."""
import fcntl
import os
import signal
import socket
import sqlite3
import struct
import subprocess
import termios
import unittest

from fleet import BIN, PATIENCE, FleetTest, sweep


class Trouble(FleetTest):
    def start_controller_at(self, listen, http='127.0.0.1:0', state='other'):
        return self.run_program('pipeyard-controller', '--state', self.path(state), '--listen', listen, '--http', http)

    def assert_one_line(self, err, *words):
        lines = [line for line in err.strip().splitlines() if line]
        self.assertEqual(len(lines), 1, err)
        for word in words:
            self.assertIn(word, lines[0])

    def test_no_controller_is_one_line_with_the_address_and_what_to_start(self):
        status, out, err = self.run_program('pipeyard', '--controller', '127.0.0.1:1', 'run', 'list')
        self.assertEqual((status, out), (4, ''))
        self.assert_one_line(err, '127.0.0.1:1', 'pipeyard-controller')

    def test_port_in_use_is_refused(self):
        self.controller()
        status, _, err = self.start_controller_at(self.address)
        self.assertNotEqual(status, 0)
        self.assert_one_line(err, self.address)

    def test_http_port_in_use_is_refused(self):
        with socket.socket() as taken:
            taken.bind(('127.0.0.1', 0))
            taken.listen()
            address = f'127.0.0.1:{taken.getsockname()[1]}'
            status, _, err = self.start_controller_at('127.0.0.1:0', http=address)
        self.assertNotEqual(status, 0)
        self.assert_one_line(err, address)

    def test_other_address_than_loopback_needs_insecure(self):
        status, _, err = self.start_controller_at('0.0.0.0:0')
        self.assertNotEqual(status, 0)
        self.assert_one_line(err, '--insecure')

    def test_state_folder_that_cannot_be_made_is_one_line(self):
        self.write('file', '')
        status, _, err = self.start_controller_at('127.0.0.1:0', state='file/below')
        self.assertNotEqual(status, 0)
        self.assert_one_line(err, 'file/below')

    def test_second_controller_on_one_state_folder_is_refused(self):
        self.controller()
        status, _, err = self.start_controller_at('127.0.0.1:0', state='controller')
        self.assertNotEqual(status, 0)
        self.assert_one_line(err, self.path('controller'))

    def test_store_that_is_no_database_is_left_alone(self):
        os.mkdir(self.path('other'))
        data = b'not a database' * 1000
        with open(self.path('other/store.db'), 'wb') as f:
            f.write(data)
        status, _, err = self.start_controller_at('127.0.0.1:0')
        self.assertNotEqual(status, 0)
        self.assert_one_line(err, 'store.db')
        with open(self.path('other/store.db'), 'rb') as f:
            self.assertEqual(f.read(), data)

    def test_store_of_a_newer_schema_is_left_alone(self):
        controller = self.controller()
        controller.terminate()
        controller.wait()
        with sqlite3.connect(self.path('controller/store.db')) as db:
            db.execute('PRAGMA user_version = 999')
        db.close()
        with open(self.path('controller/store.db'), 'rb') as f:
            before = f.read()
        status, _, err = self.start_controller_at('127.0.0.1:0', state='controller')
        self.assertNotEqual(status, 0)
        self.assert_one_line(err, '999')
        with open(self.path('controller/store.db'), 'rb') as f:
            self.assertEqual(f.read(), before)

    def test_name_of_another_agent_is_refused(self):
        self.fleet('host1')
        other = self.start('other', 'pipeyard-agent', '--controller', self.address, '--state', self.path('a2'), '--name', 'host1')
        self.until(lambda: 'host1' in self.log('other') or other.poll() is not None, 'the agent is refused')
        self.assertEqual(len(self.json('host', 'list')['hosts']), 1)

    def test_broken_sweep_is_refused_with_every_place_and_nothing_submitted(self):
        self.fleet('host1')
        path = self.write('bad.yaml', 'sweep: x\nworkload: nope\ntarget: nope\nfactors: { writers: [] }\n')
        status, out, err = self.cli('sweep', 'submit', path)
        self.assertEqual((status, out), (2, ''))
        for line in (2, 3, 4):
            self.assertIn(f'bad.yaml:{line}:', err)
        self.assertEqual(self.json('run', 'list')['runs'], [])

    def test_sweep_from_a_pipe_is_read_once(self):
        self.fleet('host1')
        status, out, err = self.run_program('pipeyard', '--controller', self.address, 'sweep', 'submit', '-', input=sweep())
        self.assertEqual(status, 0, err)
        self.assertEqual([run['run'] for run in self.json('run', 'list')['runs']], [out.strip()])

    def test_interrupt_ends_a_program_that_waits_for_its_input(self):
        self.write('b', '1\n')
        with subprocess.Popen([os.path.join(BIN, 'pipeyard'), 'stat', '-', 'b'], stdin=subprocess.PIPE, cwd=self.dir) as p:
            p.stdin.write(b'1\n')
            p.stdin.flush()

            def unread():
                return struct.unpack('i', fcntl.ioctl(p.stdin, termios.FIONREAD, b'0000'))[0]

            self.until(lambda: unread() == 0, 'it reads its input')
            p.send_signal(signal.SIGINT)
            self.assertEqual(p.wait(PATIENCE), -signal.SIGINT)

    def test_controller_that_stops_answering_is_noticed_by_the_watch_and_the_run_named(self):
        controller, _ = self.fleet('host1')
        run = self.submit(sweep(duration='10s'))
        watch = self.start('watch', 'pipeyard', '--controller', self.address, 'run', 'watch', run)
        self.until(lambda: 'running' in self.log('watch'), 'the watch shows the run')
        controller.send_signal(signal.SIGSTOP)
        self.assertEqual(watch.wait(PATIENCE), 4)
        self.assertIn(f'pipeyard run watch {run}', self.log('watch'))
        controller.send_signal(signal.SIGCONT)

    def test_sweep_without_a_matching_host_is_refused(self):
        self.fleet('host1')
        status, _, err = self.cli('sweep', 'submit', self.write('s.yaml', sweep(more='hosts: { names: [absent] }\n')))
        self.assertEqual(status, 2, err)
        self.assertIn('absent', err)

    def test_unknown_run_and_host_are_exit_five(self):
        self.controller()
        for args in (('run', 'show', '00000000-0000-7000-8000-000000000000'), ('run', 'watch', 'nothing'), ('run', 'cancel', 'nothing'), ('host', 'show', 'nobody'),
                     ('diff', 'latest')):
            status, out, _ = self.cli(*args)
            self.assertEqual((status, out), (5, ''), args)


if __name__ == '__main__':
    unittest.main()
