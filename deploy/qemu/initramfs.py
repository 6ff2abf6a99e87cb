"""A guest's root: a cpio archive in memory, of busybox, our init, and files of the host with the libraries that they need."""
import os
import shlex
import stat
import subprocess

INIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'init.sh')
BUSYBOX = '/bin/busybox'
PASSWD = b'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n'


class MissingLibrary(Exception):
    pass


def libraries(path):
    """The files that the dynamic loader would map for `path`, by ldd; none for what is no dynamic program."""
    result = subprocess.run(['ldd', path], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        return []
    found = []
    for line in result.stdout.splitlines():
        words = line.split()
        if 'not found' in line:
            raise MissingLibrary(f'{path} needs {words[0]}, which this machine does not have')
        name = words[2] if len(words) > 2 and words[1] == '=>' else words[0]
        if name.startswith('/'):
            found.append(name)
    return found


def read(path):
    with open(path, 'rb') as file:
        return file.read()


class Archive:
    """Writes the `newc` form of cpio (Linux: Documentation/driver-api/early-userspace/buffer-format.rst) to a binary file."""

    def __init__(self, file):
        self._file = file
        self._names = set()

    def _entry(self, name, mode, data):
        encoded = os.fsencode(name)
        inode = len(self._names) + 1
        fields = (inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded) + 1, 0)
        head = b'070701' + b''.join(b'%08x' % field for field in fields) + encoded + b'\0'
        for part in (head, data):
            self._file.write(part + bytes(-len(part) % 4))

    def folder(self, name):
        name = name.strip('/')
        if name and name not in self._names:
            self.folder(os.path.dirname(name))
            self._names.add(name)
            self._entry(name, stat.S_IFDIR | 0o755, b'')

    def data(self, name, data, mode=0o644):
        name = name.strip('/')
        if name not in self._names:
            self.folder(os.path.dirname(name))
            self._names.add(name)
            self._entry(name, stat.S_IFREG | mode, data)

    def host_file(self, path):
        """The file of the host, at the same absolute path in the guest, with its libraries."""
        path = os.path.abspath(path)
        data = read(path)
        self.data(path, data, stat.S_IMODE(os.stat(path).st_mode))
        if data.startswith(b'\x7fELF'):
            for library in libraries(path):
                self.data(library, read(library), 0o755)

    def host_tree(self, path):
        """A file, or a folder with all that is in it."""
        path = os.path.abspath(path)
        if not os.path.isdir(path):
            self.host_file(path)
            return
        self.folder(path)
        for folder, _, names in os.walk(path, followlinks=True):
            self.folder(folder)
            for name in names:
                self.host_file(os.path.join(folder, name))

    def close(self):
        self._entry('TRAILER!!!', 0, b'')
        self._file.flush()


def command(words, environment, folder):
    """The shell text that becomes the program: `words`, in `folder`, with `environment` and nothing else."""
    settings = {'PATH': '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'HOME': '/root', **environment}
    env = ' '.join(shlex.quote(f'{name}={value}') for name, value in settings.items())
    # env takes a path that holds a "=" for a setting, a shell would add PWD and drop names such as a.b: setpriv does neither.
    return f'cd {shlex.quote(folder)}\nexec env -i {env} {BUSYBOX} setpriv {shlex.join(words)}\n'


def build(program, arguments, files, environment):
    """Returns the descriptor of a memory file that holds the archive. Errors: OSError names the file, MissingLibrary."""
    descriptor = os.memfd_create('initramfs')
    folder = os.getcwd()
    with os.fdopen(os.dup(descriptor), 'wb') as file:
        archive = Archive(file)
        for name in ('dev', 'proc', 'sys', 'tmp', 'root', 'run', folder):
            archive.folder(name)
        archive.host_file(program)
        for path in files:
            archive.host_tree(path)
        archive.data('/init', read(INIT), 0o755)
        archive.host_file(BUSYBOX)
        archive.data('/etc/passwd', PASSWD)
        archive.data('/pipeyard/command', command([program, *arguments], environment, folder).encode('utf-8', 'surrogateescape'))
        archive.close()
    return descriptor
