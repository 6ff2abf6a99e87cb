#!/usr/bin/env python3
"""Compiles each header of the project alone: a header that needs another one included before it fails.

    headers.py SOURCE_DIR BUILD_DIR [--gcc COMPILER]

Flags are those of one source file of the same room in BUILD_DIR/compile_commands.json. Two at a time. Exit status 1 with the
compiler's words for each header that fails.
"""
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys

ROOMS = ('base', 'proto', 'workloads', 'storage', 'agent', 'controller')


def flags_by_folder(root, build):
    flags = {}
    for entry in json.load(open(os.path.join(build, 'compile_commands.json'))):
        folder = os.path.relpath(os.path.dirname(entry['file']), root)
        words = shlex.split(entry['command'])
        kept = []
        for i, word in enumerate(words):
            if word == '-isystem':
                kept += [word, words[i + 1]]
            elif word.startswith(('-I', '-std=', '-D')):
                kept.append(word)
        flags.setdefault(folder, kept)
    return flags


def compile_alone(compiler, root, header, flags):
    text = f'#include "{header}"\n'
    p = subprocess.run([compiler, '-x', 'c++', '-fsyntax-only', '-Wall', '-Wextra', '-Werror', '-Wno-unused-function', *flags, '-'],
                       input=text, capture_output=True, text=True, cwd=root)
    return header, p.returncode, p.stderr


def main():
    root, build = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    compiler = sys.argv[sys.argv.index('--gcc') + 1] if '--gcc' in sys.argv else 'g++'
    flags = flags_by_folder(root, build)
    all_flags = sorted({f for fs in flags.values() for f in fs if f.startswith('-I')})
    jobs = []
    for top in ROOMS:
        for folder, _, files in os.walk(os.path.join(root, top)):
            for name in files:
                if name.endswith('.h'):
                    header = os.path.relpath(os.path.join(folder, name), root)
                    own = flags.get(os.path.dirname(header)) or [*all_flags, '-std=c++20', f'-I{root}']
                    jobs.append((header, own))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for header, status, err in pool.map(lambda j: compile_alone(compiler, root, *j), sorted(jobs)):
            if status:
                failed += 1
                print(f'{header} does not compile alone:\n{err}')
    print(f'headers: {len(jobs)} compiled alone, {failed} failed')
    return 1 if failed or not jobs else 0


if __name__ == '__main__':
    sys.exit(main())
