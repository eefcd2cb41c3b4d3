#!/usr/bin/env python3
"""The planted bugs of tests/mutants apply together to the present tree.

Each has a number, a description, a switch of its number, and names tests that
exist.
"""
import glob
import os
import re
import sys

ROOT = os.environ.get("AGENTWAL_SOURCE") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "mutants"))
sys.dont_write_bytecode = True

import apply  # noqa: E402


def known_tests():
    """The names that tests/CMakeLists.txt gives to programs and scripts."""
    found = set()
    for folder in ("unit", "sim", "crash", "golden", "model"):
        for path in glob.glob(os.path.join(ROOT, "tests", folder, "**",
                                           "test_*.c"), recursive=True):
            found.add(os.path.basename(path)[:-2])
    with open(os.path.join(ROOT, "tests", "sim", "sched", "test_sched.c"),
              encoding="utf-8") as file:
        found |= {"test_" + name
                  for name in re.findall(r"^TEST\((\w+)\)", file.read(), re.M)}
    for path in glob.glob(os.path.join(ROOT, "tests", "fuzz", "fuzz_*.c")):
        found.add(os.path.basename(path)[:-2])
    for folder in ("cli", "crash", "remote"):
        for kind in ("*.sh", "*.py"):
            for path in glob.glob(os.path.join(ROOT, "tests", folder, "**",
                                               kind), recursive=True):
                stem = os.path.splitext(os.path.basename(path))[0]
                found.add("%s_%s" % (folder, stem))
    for path in glob.glob(os.path.join(ROOT, "bindings", "node", "test",
                                       "*.test.mjs")):
        found.add("node_" + os.path.basename(path)[:-len(".test.mjs")])
    for path in glob.glob(os.path.join(ROOT, "bindings", "python", "tests",
                                       "test_*.py")):
        found.add("python_" + os.path.basename(path)[len("test_"):-len(".py")])
    return found


def faults_of(mutant, tests):
    if len(mutant.description) < 60:
        yield "no description"
    if not mutant.tests:
        yield "no line 'tests: NAME...'"
    for name in mutant.tests:
        if name not in tests:
            yield "no such test: %s" % name
    switch = "wal__mutant(%d)" % mutant.number
    if not any(switch in new for _, _, new in mutant.hunks):
        yield "no switch %s" % switch
    for _, _, new in mutant.hunks:
        for number in re.findall(r"wal__mutant\((\d+)\)", new):
            if int(number) != mutant.number and "wal__mutant(%s)" % number \
                    not in "".join(old for _, old, _ in mutant.hunks):
                yield "the switch of mutant %s" % number


def main():
    found = apply.mutants()
    _, faults = apply.patched(ROOT, found)
    tests = known_tests()
    numbers = [mutant.number for mutant in found]
    for mutant in found:
        faults += ["%s: %s" % (mutant.name, fault)
                   for fault in faults_of(mutant, tests)]
        if numbers.count(mutant.number) > 1:
            faults.append("%s: the number is used twice" % mutant.name)
    for fault in faults:
        print(fault)
    if not found:
        print("no mutants")
    sys.exit(bool(faults) or not found)


main()
