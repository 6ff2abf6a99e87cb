#!/usr/bin/env python3
"""Reads every #include "..." of the project and fails on an arrow that runs against the allowed order (docs/ARCHITECTURE.md).

    layers.py SOURCE_DIR [--list]

Also checks that the libraries behind an edge are included by the files of that edge only. Exit status 1 with one line a fault.
"""
import os
import re
import sys

# room -> rooms it may include (itself always). A room is the longest prefix named here.
ALLOWED = {
    'base': [],
    'proto/pipeyard': ['base'],
    'proto/settings': ['base'],
    'proto/yaml': ['base', 'proto/settings'],
    'proto/options': ['base', 'proto/settings'],
    'proto/session': ['base', 'proto/settings'],
    'proto/grpc': ['base', 'proto/settings', 'proto/session'],
    'workloads/numa': ['base'],
    'workloads/memory': ['base', 'workloads/numa'],
    'workloads/pipe': ['base', 'workloads/numa', 'workloads/memory'],
    'workloads/load': ['base', 'proto/settings', 'workloads/numa', 'workloads/memory', 'workloads/pipe'],
    'workloads/commands': ['base', 'proto/settings', 'proto/yaml'],
    'workloads/worker': ['base', 'proto/settings', 'proto/options', 'workloads/numa', 'workloads/memory', 'workloads/pipe',
                         'workloads/load', 'workloads/commands'],
    'storage': ['base', 'proto/settings'],
    'agent/host': ['base', 'proto/settings', 'workloads/numa'],
    'agent': ['base', 'proto/settings', 'proto/options', 'proto/session', 'proto/grpc', 'workloads/numa', 'workloads/commands', 'agent/host'],
    'controller/spec': ['base', 'proto/settings', 'proto/yaml'],
    'controller/analysis': ['base', 'proto/settings', 'storage'],
    'controller/report': ['base', 'proto/settings', 'storage', 'controller/spec', 'controller/analysis'],
    'controller/scheduler': ['base', 'proto/settings', 'proto/session', 'storage', 'controller/spec'],
    'controller/ingest': ['base', 'storage'],
    'controller/core': ['base', 'proto/settings', 'proto/session', 'storage', 'controller/spec', 'controller/analysis',
                        'controller/scheduler', 'controller/ingest'],
    'controller/api': ['base', 'proto/grpc', 'controller/core'],
    'controller/daemon': ['base', 'proto/settings', 'proto/options', 'proto/session', 'proto/grpc', 'storage', 'controller/spec',
                          'controller/analysis', 'controller/scheduler', 'controller/ingest', 'controller/core', 'controller/api'],
    'controller/cli': ['base', 'proto/settings', 'proto/options', 'proto/session', 'proto/grpc', 'controller/spec', 'controller/analysis',
                       'controller/report', 'agent/host', 'workloads/commands', 'workloads/memory', 'workloads/numa'],
}
# Library header -> path prefixes that may include it.
EDGES = {
    r'grpc(pp|\+\+)?/.*|.*\.grpc\.pb\.h': ['proto/grpc/', 'controller/api/', 'controller/daemon/', 'controller/cli/', 'agent/daemon/', 'tests/'],
    r'sqlite3\.h': ['storage/'],
    r'yaml-cpp/.*': ['proto/yaml/', 'proto/options/'],
    r'CLI/.*': ['proto/options/'],
    r'spdlog/.*': ['base/log.cc'],
    r'httplib\.h': ['controller/daemon/'],
    r'nlohmann/.*': ['proto/settings/', 'workloads/commands/', 'workloads/load/histogram_test.cc', 'workloads/memory/interleave_vectors_test.cc', 'workloads/memory/page_bulk_test.cc', 'controller/analysis/vectors_test.cc', 'controller/report/', 'controller/spec/', 'controller/cli/', 'controller/daemon/', 'storage/', 'tests/'],
    r'openssl/.*': ['proto/settings/', 'storage/'],
    r'numa(if)?\.h': ['workloads/numa/'],
    r'boost/.*': ['controller/analysis/'],
}
# Tests beside the code may use what stands above only through fakes of their own room, so they follow the same order, but for these.
TEST_ONLY = {'gtest', 'gmock', 'rapidcheck', 'rapidcheck.h'}


def room_of(path):
    names = [r for r in ALLOWED if path == r or path.startswith(r + '/')]
    return max(names, key=len) if names else None


def main():
    root = sys.argv[1]
    faults, arrows = [], set()
    for top in ('base', 'proto', 'workloads', 'storage', 'agent', 'controller'):
        for folder, _, files in os.walk(os.path.join(root, top)):
            for name in sorted(files):
                if not name.endswith(('.h', '.cc')):
                    continue
                path = os.path.relpath(os.path.join(folder, name), root)
                room = room_of(path)
                if room is None:
                    faults.append(f'{path}: its folder is in no room of tests/layers.py')
                    continue
                for number, line in enumerate(open(os.path.join(root, path), encoding='utf-8'), 1):
                    found = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
                    if not found:
                        continue
                    header = found.group(2)
                    for pattern, prefixes in EDGES.items():
                        if re.fullmatch(pattern, header) and not path.startswith(tuple(prefixes)):
                            faults.append(f'{path}:{number}: <{header}> stays behind {", ".join(prefixes)}')
                    if found.group(1) == '<' or header.startswith('pipeyard/v1/') or header.split('/')[0] in TEST_ONLY:
                        continue
                    if not os.path.exists(os.path.join(root, header)):
                        faults.append(f'{path}:{number}: "{header}" is no file of the project; includes are written from its root')
                        continue
                    target = room_of(header)
                    arrows.add((room, target))
                    if target != room and target not in ALLOWED[room]:
                        faults.append(f'{path}:{number}: {room} may not use {target}')
    if '--list' in sys.argv:
        for a, b in sorted(x for x in arrows if x[0] != x[1]):
            print(f'{a} -> {b}')
    for fault in faults:
        print(fault)
    print(f'layers: {len(arrows)} arrows, {len(faults)} faults')
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
