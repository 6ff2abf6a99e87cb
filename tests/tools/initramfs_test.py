"""The shell text that a guest runs its program by, run by this machine's shell."""
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'deploy', 'qemu'))
import initramfs


class Command(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='a=b.')
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)

    def run_text(self, *arguments, environment):
        program = os.path.join(self.folder, 'program')
        with open(program, 'w', encoding='utf-8') as file:
            file.write('#!/bin/sh\ntr "\\0" "\\n" </proc/$$/environ\npwd\nprintf "<%s>" "$@"\nexit 7\n')
        os.chmod(program, 0o755)
        # "env setpriv" is setpriv, as "busybox setpriv" is.
        with mock.patch.object(initramfs, 'BUSYBOX', '/usr/bin/env'):
            text = initramfs.command([program, *arguments], environment, self.folder)
        return subprocess.run(['sh', '-c', text], capture_output=True, text=True, env={'LEFT': '1', **os.environ}, check=False)

    def test_a_path_with_an_equals_sign_is_no_setting(self):
        result = self.run_text('x=y', 'a b', "it's", environment={'W.D': "a 'b' $c=d"})

        self.assertEqual(result.returncode, 7, result.stderr)
        path, *lines = result.stdout.splitlines()
        self.assertTrue(path.startswith('PATH='), path)
        self.assertEqual(lines, ['HOME=/root', "W.D=a 'b' $c=d", self.folder, "<x=y><a b><it's>"])


if __name__ == '__main__':
    unittest.main()
