#!/usr/bin/env python3
"""No files of the library and of conversion call each other in a circle.

An object file points to those that define the symbols which it needs.
"""
import collections
import os
import subprocess
import sys

LIBRARIES = [os.path.join(os.environ["AGENTWAL_BUILD"], "lib", name)
             for name in ("libagentwal.a", "libagentwal-convert.a")]


def symbols():
    """Yields (object, symbol, whether it is defined there)."""
    text = subprocess.run(["nm", "--print-file-name", "--extern-only",
                           *LIBRARIES], check=True, capture_output=True,
                          text=True).stdout
    for line in text.splitlines():
        if " " not in line:  # the name of a library
            continue
        place, rest = line.rsplit(":", 1)
        kind, symbol = rest.split()[-2:]
        yield os.path.basename(place), symbol, kind != "U"


def arrows():
    """The objects that each object needs."""
    owner, needed = {}, collections.defaultdict(set)
    for place, symbol, is_defined in symbols():
        if is_defined:
            owner[symbol] = place
        else:
            needed[place].add(symbol)
    return {place: {owner[symbol] for symbol in wanted if symbol in owner}
            - {place} for place, wanted in needed.items()}


def reachable(graph, start):
    """What the file needs, directly or through others."""
    found, left = set(), [start]
    while left:
        for place in graph.get(left.pop(), ()):
            if place not in found:
                found.add(place)
                left.append(place)
    return found


def circles(graph):
    """The sets of files that all need each other."""
    below = {place: reachable(graph, place) for place in graph}
    sets = {frozenset([place, *(other for other in below[place]
                                if place in below.get(other, ()))])
            for place in graph if place in below[place]}
    return sorted(sorted(files) for files in sets)


def main():
    graph = arrows()
    found = circles(graph)
    for files in found:
        for place in files:
            print("%s -> %s" % (place, ", ".join(
                sorted(graph[place].intersection(files)))))
    print("%d files, %d circles" % (len(graph), len(found)))
    if len(graph) < 100:
        print("the library was not read")
        return 1
    return 1 if found else 0


sys.exit(main())
