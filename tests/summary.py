#!/usr/bin/env python3
"""Adds up ctest's JUnit reports: why each skipped test was skipped, each failed test, and the count as the last line.

    summary.py REPORT.xml...

Exit status 1 where a test failed or none ran.
"""
import re
import sys
import xml.etree.ElementTree as ElementTree

passed, failed, skipped = 0, [], []
for path in sys.argv[1:]:
    part = path.split('/')[-2]
    for case in ElementTree.parse(path).getroot().iter('testcase'):
        name = f"{part}: {case.get('name')}"
        status = case.get('status')
        if status == 'run':
            passed += 1
        elif status in ('notrun', 'disabled', 'skipped') or case.find('skipped') is not None:
            text = ''.join(case.itertext())
            said = re.search(r'Skipped\n(.+)', text) or re.search(r'SKIP(?:PED)?:? (.+)|skipped [\'"](.+)[\'"]', text)
            skipped.append((name, next(group for group in said.groups() if group).strip() if said else f'{status}, no reason given'))
        else:
            failed.append(name)
for name, why in skipped:
    print(f'skipped  {name}: {why}')
for name in failed:
    print(f'failed   {name}')
print(f'{passed} passed, {len(failed)} failed, {len(skipped)} skipped')
sys.exit(1 if failed or not passed else 0)
