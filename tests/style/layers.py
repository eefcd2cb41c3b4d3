#!/usr/bin/env python3
"""Checks that includes point down the layers, and never round in a circle.

LAYERS lists each layer with the layers it may include; every layer may include
itself. A file belongs to the layer with the longest matching prefix. Two rules
of the layers that an include does not show are checked beside it: format/
neither allocates nor reaches the system, and engine/base/ is the only part of
the library that calls the C library's allocator.
"""
import os
import re
import sys

ROOT = os.environ.get("AGENTWAL_SOURCE") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

API = "engine/include/"
FORMAT = [API, "format/"]
BASE = FORMAT + ["format/jsonl/", "engine/base/"]
IO = BASE + ["engine/io/"]
LOG = IO + ["engine/log/"]
INDEX = LOG + ["engine/index/"]
BLOB = INDEX + ["engine/blob/"]
SESSION = BLOB + ["engine/session/"]
CHECKPOINT = SESSION + ["engine/checkpoint/"]

LAYERS = {
    API: [],
    "format/": [API],
    "format/jsonl/": FORMAT,
    "engine/base/": BASE,
    "engine/io/": IO,
    "engine/log/": LOG,
    "engine/index/": INDEX,
    "engine/blob/": BLOB,
    "engine/session/": SESSION,
    "engine/checkpoint/": CHECKPOINT,
    "engine/": CHECKPOINT,
    # A user of the interface, like the tools, but for the heap.
    "view/": [API, "format/jsonl/", "engine/base/", "view/copy"],
    # The lines of copies, which the tools read as well.
    "view/copy": [API, "format/jsonl/", "engine/base/"],
    "tools/": [API, "format/jsonl/", "view/copy"],
    "tools/walcat": [API, "format/jsonl/", "tools/"],
    "tools/walctl": [API, "format/jsonl/", "tools/"],
    # Reads a store's files as they are, for the two below.
    "tools/check_": FORMAT + ["tools/"],
    # --frames shows segments as they are, also where no store opens.
    "tools/walcat_frames": FORMAT + ["tools/walcat", "tools/check_", "tools/"],
    "tools/walcheck": FORMAT + ["format/jsonl/", "view/copy", "tools/check_",
                                "tools/"],
    "tools/walconv": FORMAT + ["format/jsonl/", "view/copy", "tools/"],
    "bench/": [API],
    # Holds the library's checksum against others.
    "bench/harness_crc": FORMAT + ["bench/"],
    # Puts a slow disk in the system's place.
    "bench/bench_queue": CHECKPOINT + ["engine/", "bench/"],
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
ALLOCATION = re.compile(
    r"(?<![\w.>])(?:malloc|calloc|realloc|reallocarray|free|strdup|strndup"
    r"|aligned_alloc|posix_memalign)\s*\(")
SYSTEM_HEADERS = re.compile(
    r"stdio\.h|unistd\.h|fcntl\.h|time\.h|pthread\.h|threads\.h"
    r"|stdatomic\.h|sys/.*")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
LITERAL = re.compile(r'"(?:\\.|[^"\\\n])*"' r"|'(?:\\.|[^'\\\n])*'")


def sources():
    for top in ("format", "engine", "view", "tools", "bench"):
        for folder, _, names in os.walk(os.path.join(ROOT, top)):
            for name in sorted(names):
                if name.endswith((".c", ".h", ".cc")):
                    yield os.path.relpath(os.path.join(folder, name), ROOT)


def layer_of(path):
    return max((p for p in LAYERS if path.startswith(p)), key=len, default=None)


def resolve(path, name, quoted):
    """The file of the project that an include names, or None."""
    places = [API]
    if quoted:
        places = [os.path.dirname(path) + "/", "", API]
    for place in places:
        candidate = os.path.normpath(place + name)
        if os.path.isfile(os.path.join(ROOT, candidate)):
            return candidate
    return None


def find_circle(graph):
    """A list of files that include each other in a circle, or None."""
    done = set()
    for start in graph:
        chain, todo = [], [(start, iter(graph[start]))]
        while todo:
            node, rest = todo[-1]
            if len(chain) < len(todo):
                chain.append(node)
            following = next((n for n in rest if n not in done), None)
            if following is None:
                done.add(node)
                chain.pop()
                todo.pop()
            elif following in chain:
                return chain[chain.index(following):] + [following]
            else:
                todo.append((following, iter(graph.get(following, []))))
    return None


def check_file(path, graph, faults):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        text = COMMENT.sub(lambda m: "\n" * m.group().count("\n"), file.read())
    own = layer_of(path)
    graph[path] = []
    for match in INCLUDE.finditer(text):
        where = "%s:%d" % (path, text.count("\n", 0, match.start(1)) + 1)
        quoted, name = match.group(1) == '"', match.group(2)
        target = resolve(path, name, quoted)
        if target is None:
            if quoted:
                faults.append("%s: no such file: %s" % (where, name))
            elif own.startswith("format/") and SYSTEM_HEADERS.fullmatch(name):
                faults.append("%s: <%s> has no place in format/" %
                              (where, name))
            continue
        graph[path].append(target)
        if layer_of(target) not in LAYERS[own] + [own]:
            faults.append("%s: %s may not include %s" % (where, own, target))
    code = LITERAL.sub('""', text)
    if path.startswith(("format/", "engine/", "view/")) and own != "engine/base/":
        for match in ALLOCATION.finditer(code):
            line = code.count("\n", 0, match.start()) + 1
            faults.append("%s:%d: only engine/base/ may allocate: %s" %
                          (path, line, match.group()))


def main():
    graph, faults = {}, []
    for path in sources():
        check_file(path, graph, faults)
    circle = find_circle(graph)
    if circle:
        faults.append("circle: " + " -> ".join(circle))
    for fault in faults:
        print(fault)
    print("%d files, %d faults" % (len(graph), len(faults)))
    return 1 if faults or not graph else 0


sys.exit(main())
