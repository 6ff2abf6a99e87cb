"""`deploy/qemu/run`: its options, and how each end of a guest becomes an exit status."""
import argparse
import os
import shutil
import signal
import subprocess
import sys

import initramfs
import machine
import session

# As timeout(1) and env(1) have them.
STATUS_TIMED_OUT = 124
STATUS_CANNOT = 125
STATUS_NOT_EXECUTABLE = 126
STATUS_NOT_FOUND = 127
# Of the console, where a guest failed; --console has more.
CONSOLE_LINES = 6

USAGE = 'deploy/qemu/run --nodes N [OPTION...] PROGRAM [ARGUMENT...]'
EPILOG = '''PROGRAM and what it needs (libraries, --file) appear in the guest at their absolute paths of this machine, and it runs
there in this working directory, as root, without input, and with no environment but PATH, HOME and --env.

exit status: the program's; 128 + the signal that killed it; 124 it did not end in time; 125 the guest failed (did not
start, panicked, cannot be had) and the program's end is not known; 126 PROGRAM is not executable; 127 it does not exist.
What is said of 124 to 127 begins with "run: ".'''


def complain(text):
    print(f'run: {text}', file=sys.stderr, flush=True)


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError('at least 1')
    return value


def seconds(text):
    value = float(text)
    if not 0 <= value < 1e6:
        raise argparse.ArgumentTypeError('0 to 1000000')
    return value


def setting(text):
    name, equals, value = text.partition('=')
    if not name or not equals:
        raise argparse.ArgumentTypeError('NAME=VALUE is wanted')
    return name, value


def matrix(text):
    try:
        return [[int(word) for word in row.split(',')] for row in text.split('/')]
    except ValueError:
        raise argparse.ArgumentTypeError('such as 10,21/21,10') from None


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.print_usage(sys.stderr)
        complain(message)
        sys.exit(STATUS_CANNOT)


def parse(words):
    parser = Parser(prog='run', usage=USAGE, epilog=EPILOG, allow_abbrev=False,
                    formatter_class=argparse.RawDescriptionHelpFormatter,
                    description='Runs a program in a guest (QEMU, emulated) with N real NUMA nodes.')
    node = {'type': int, 'metavar': 'NODE', 'action': 'append', 'default': []}
    parser.add_argument('--nodes', type=int, choices=range(1, 5), metavar='N', help='1 to 4 (1)', default=1)
    parser.add_argument('--kernel', choices=('6.1', '6.12'), default='6.12', help='series of the guest\'s kernel (6.12)')
    parser.add_argument('--memory', type=positive, metavar='MIB', default=512, help='of each node (512)')
    parser.add_argument('--cpus', type=positive, metavar='N', default=1, help='of each node (1)')
    parser.add_argument('--distances', type=matrix, metavar='ROWS', help='such as 10,21/21,10 (10, and 21 to others)')
    parser.add_argument('--cpuless', **node, help='this node has no CPUs')
    parser.add_argument('--memoryless', **node, help='this node has no memory')
    parser.add_argument('--hotplug', type=int, metavar='NODE', help='this node, which has no CPUs, comes online later:')
    parser.add_argument('--hotplug-line', metavar='LINE', help='when the program writes this line to standard output,')
    parser.add_argument('--hotplug-after', type=seconds, metavar='S', default=1, help='or so long after its start (1)')
    parser.add_argument('--file', metavar='PATH', action='append', default=[], help='a file or folder that it needs')
    parser.add_argument('--env', metavar='NAME=VALUE', type=setting, action='append', default=[], help='for its environment')
    parser.add_argument('--append', metavar='WORDS', default='', help='more arguments for the kernel')
    parser.add_argument('--timeout', type=seconds, metavar='S', default=60, help='for the program; 0: for ever (60)')
    parser.add_argument('--boot-timeout', type=seconds, metavar='S', default=120, help='for the guest to start it (120)')
    parser.add_argument('--console', metavar='FILE', help="where the end of the kernel's messages goes")
    parser.add_argument('--prepare', action='store_true', help='only fetch what guests need, so that later runs need no network')
    parser.add_argument('program', metavar='PROGRAM', nargs='?', help=argparse.SUPPRESS)
    parser.add_argument('arguments', metavar='ARGUMENT', nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser, parser.parse_args(words)


def kernel_folder(series):
    """Where the kernel lies, or None after a complaint of kernel.sh."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'kernel.sh')
    result = subprocess.run([script, series], stdout=subprocess.PIPE, text=True, check=False)
    return result.stdout.strip() if result.returncode == 0 else None


def qemu_command(options, guest, kernel, archive):
    # no_timer_check: the kernel's check that timer interrupts arrive panics where other programs keep an emulated machine waiting.
    appended = f'console=ttyS0 quiet panic=-1 no_timer_check memhp_default_state=online {options.append}'.strip()
    return ['qemu-system-x86_64', '-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot', *guest.arguments(),
            '-kernel', os.path.join(kernel, 'vmlinuz'), '-initrd', f'/dev/fd/{archive}', '-append', appended]


def run(options, program, guest):
    kernel = kernel_folder(options.kernel)
    if kernel is None:
        return STATUS_CANNOT
    try:
        archive = initramfs.build(program, options.arguments, options.file, dict(options.env))
    except (OSError, initramfs.MissingLibrary) as error:
        complain(error)
        return STATUS_CANNOT
    guest_session = session.Session(session.Plan(
        qemu=qemu_command(options, guest, kernel, archive), inherited=[archive], boot_seconds=options.boot_timeout,
        program_seconds=options.timeout, hotplug=guest.hotplug_commands() if guest.hotplug is not None else [],
        hotplug_line=os.fsencode(options.hotplug_line) if options.hotplug_line is not None else None,
        hotplug_seconds=options.hotplug_after))
    try:
        return guest_session.run()
    except session.TimedOut:
        complain(f'{program} did not end within {options.timeout:g} s')
        return STATUS_TIMED_OUT
    except session.GuestFailure as error:
        complain(error)
        for line in guest_session.console.splitlines()[-CONSOLE_LINES:]:
            complain(f'console: {line}')
        return STATUS_CANNOT
    except (session.Interrupted, BrokenPipeError) as error:
        # Ends as one that had not caught it, for the sake of the shell above.
        number = getattr(error, 'number', signal.SIGPIPE)
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
        return 128 + number
    finally:
        if options.console:
            with open(options.console, 'w', encoding='utf-8') as file:
                file.write(guest_session.console)


def main(words):
    parser, options = parse(words)
    if options.prepare:
        return 0 if kernel_folder(options.kernel) else STATUS_CANNOT
    guest = machine.Machine(nodes=options.nodes, memory_mib=options.memory, cpus=options.cpus, distances=options.distances,
                            cpuless=set(options.cpuless), memoryless=set(options.memoryless), hotplug=options.hotplug)
    if not options.program:
        parser.error('PROGRAM is missing')
    if fault := guest.fault():
        parser.error(fault)
    # A name without a slash is a program of this machine's PATH.
    program = options.program if '/' in options.program else shutil.which(options.program) or options.program
    if not os.path.isfile(program):
        complain(f'{options.program}: there is no such program')
        return STATUS_NOT_FOUND
    if not os.access(program, os.X_OK):
        complain(f'{options.program} is not executable')
        return STATUS_NOT_EXECUTABLE
    return run(options, os.path.abspath(program), guest)


if __name__ == '__main__':
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(main(sys.argv[1:]))
