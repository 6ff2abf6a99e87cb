"""One guest from QEMU's start to its end: passes the program's output on while it comes, watches the time, brings the late node.

Nothing of it is a file: the archive is a memory file, every channel a socket pair, and the kernel kills QEMU when this process
ends, however it ends. So nothing is left to clean up, not even after SIGKILL.
"""
import contextlib
import ctypes
import dataclasses
import json
import os
import re
import select
import selectors
import signal
import socket
import subprocess
import time

PR_SET_PDEATHSIG = 1
CONSOLE_KEPT_BYTES = 1 << 16
# How long a guest may take to switch itself off once the program has ended.
POWEROFF_SECONDS = 10
NEVER = float('inf')


class GuestFailure(Exception):
    """How the program ended, or whether it began, is not known; and why."""


class TimedOut(Exception):
    """The program did not end in time."""


class Interrupted(Exception):
    def __init__(self, number):
        super().__init__(number)
        self.number = number


@dataclasses.dataclass
class Plan:
    qemu: list                    # the command line but for the channels
    inherited: list               # descriptors that it names
    boot_seconds: float
    program_seconds: float        # from the program's start
    hotplug: list                 # commands for QEMU's monitor; none: no node comes later
    hotplug_line: bytes | None    # they are sent when standard output says this line,
    hotplug_seconds: float        # or, where that is None, so long after the program's start


def _end_with(parent):
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended just before
        os._exit(1)


def _write_all(descriptor, data):
    while data:
        try:
            data = data[os.write(descriptor, data):]
        except BlockingIOError:
            select.select([], [descriptor], [])


class Session:
    """Runs once; confined to the main thread, whose signals it takes."""

    def __init__(self, plan):
        self._plan = plan
        self._console = b''
        self._status_text = b''
        self._stdout_line = b''
        self._monitor_text = b''
        self._monitor = None
        self._qemu_log = None
        self._is_started = False
        self._status = None            # the program's
        self._plug_failure = None
        self._plug_time = NEVER

    @property
    def console(self):
        """The end of what the guest's kernel said."""
        return self._console.decode(errors='replace').replace('\r', '')

    def run(self):
        """Returns the program's status. Errors: GuestFailure, TimedOut, Interrupted; BrokenPipeError where nobody takes our output."""
        with contextlib.ExitStack() as stack:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, self._on_interrupt)
                stack.callback(signal.signal, number, signal.SIG_DFL)
            signal.signal(signal.SIGALRM, self._on_alarm)
            stack.callback(self._set_alarm, 0)
            selector = stack.enter_context(selectors.DefaultSelector())
            qemu = self._start(stack, selector)
            self._set_alarm(self._plan.boot_seconds)
            while selector.get_map():
                left = self._plug_time - time.monotonic()
                ready = selector.select(None if left == NEVER else max(0, left))
                if self._plug_time <= time.monotonic():
                    self._plug()
                for key, _ in ready:
                    data = key.fileobj.recv(1 << 16)
                    if data:
                        key.data(data)
                    else:
                        selector.unregister(key.fileobj)
            return self._outcome(qemu.wait())

    def _start(self, stack, selector):
        arguments, theirs = list(self._plan.qemu), []
        for name, take in (('console', self._on_console), ('stdout', self._on_stdout), ('stderr', self._on_stderr),
                           ('status', self._on_status), ('monitor', self._on_monitor)):
            ours, other = socket.socketpair()
            stack.enter_context(ours)
            theirs.append(stack.enter_context(other))
            selector.register(ours, selectors.EVENT_READ, take)
            arguments += ['-chardev', f'socket,id={name},fd={other.fileno()}']
            arguments += ['-mon', f'{name},mode=control'] if name == 'monitor' else ['-serial', f'chardev:{name}']
            self._monitor = ours
        self._qemu_log = stack.enter_context(os.fdopen(os.memfd_create('qemu.log'), 'r+b'))
        parent = os.getpid()
        qemu = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=self._qemu_log, stderr=self._qemu_log,
                                pass_fds=[*self._plan.inherited, *(s.fileno() for s in theirs)], start_new_session=True,
                                preexec_fn=lambda: _end_with(parent))
        stack.callback(qemu.wait)
        stack.callback(qemu.kill)
        for other in theirs:
            other.close()
        return qemu

    def _outcome(self, qemu_status):
        if self._plug_failure:
            raise GuestFailure(f'the node could not be added: {self._plug_failure}')
        if self._status is not None:
            return self._status
        self._qemu_log.seek(0)
        log = self._qemu_log.read().decode(errors='replace').strip()
        if qemu_status != 0:
            raise GuestFailure(f'QEMU ended with status {qemu_status}: {log}')
        when = 'while the program ran' if self._is_started else 'before the program started'
        if panic := re.search(r'Kernel panic - (.*)', self.console):
            raise GuestFailure(f"the guest's kernel panicked {when} ({panic[1]})")
        raise GuestFailure(f'the guest ended {when}')

    # --- time and signals

    @staticmethod
    def _set_alarm(seconds):
        # An alarm, not a deadline of the loop: it also comes while whoever should take our output does not.
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def _on_alarm(self, *_):
        if self._status is not None:
            raise GuestFailure(f'the program ended with status {self._status}, but the guest did not switch itself off')
        if self._is_started:
            raise TimedOut
        raise GuestFailure(f'the guest did not start the program within {self._plan.boot_seconds:g} s')

    def _on_interrupt(self, number, _):
        raise Interrupted(number)

    # --- what comes from QEMU

    def _on_console(self, data):
        self._console = (self._console + data)[-CONSOLE_KEPT_BYTES:]

    def _on_stdout(self, data):
        _write_all(1, data)
        if self._plan.hotplug and self._plan.hotplug_line is not None:
            *lines, self._stdout_line = (self._stdout_line + data).split(b'\n')
            if self._plan.hotplug_line in lines:
                self._plug()

    def _on_stderr(self, data):
        _write_all(2, data)

    def _on_status(self, data):
        *lines, self._status_text = (self._status_text + data).split(b'\n')
        for line in lines:
            if line == b'started':
                self._is_started = True
                self._set_alarm(self._plan.program_seconds)
                if self._plan.hotplug and self._plan.hotplug_line is None:
                    self._plug_time = time.monotonic() + self._plan.hotplug_seconds
            elif line.startswith(b'ended '):
                self._status = int(line.split()[1])
                self._plug_time = NEVER
                self._set_alarm(POWEROFF_SECONDS)

    def _on_monitor(self, data):
        *lines, self._monitor_text = (self._monitor_text + data).split(b'\n')
        for line in lines:
            said = json.loads(line)
            if 'error' in said:
                self._plug_failure = said['error']['desc']

    def _plug(self):
        self._plug_time = NEVER
        for command in ({'execute': 'qmp_capabilities'}, *self._plan.hotplug):
            self._monitor.sendall(json.dumps(command).encode())
        self._plan.hotplug = []
