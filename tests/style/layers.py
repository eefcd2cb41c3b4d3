#!/usr/bin/env python3
"""Checks that includes point down the layers, and that no files include each
other in a cycle.

LAYERS lists each folder with the folders that it may include; every folder may
include itself. A file belongs to the longest folder that contains it. Three more
rules are checked: only the folders of systems in engine/base/, and tools/cross/, use
what other systems lack; format/ and what a dialect is made of neither allocate nor call the
system; and engine/base/ is the only part of the library, and of conversion, that
calls the C allocator. What require() names in the Node.js package points down in
the same way.
"""
import os
import re
import sys

ROOT = os.environ.get("AGENTWAL_SOURCE") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

API = "engine/include/"
CONVERT_API = "convert/include/"
SEARCH_API = "search/include/"
REMOTE_API = "remote/include/"

# Each folder of these lists may include all folders before it.
BYTES = ["format/bytes/", "format/segment/", "format/index/"]
LINES = ["format/json/", "format/payload/"]
MODEL = ["convert/model/", "convert/dialect/"]
ENGINE = ["engine/" + room + "/" for room in (
    "base", "log", "store", "session", "files", "care")]
CONVERT = ["convert/" + room + "/" for room in (
    "copy", "source", "clients", "files", "render", "state", "import", "view")]
DIALECTS = ["convert/dialect/" + name for name in (
    "claude", "codex", "copilot", "cursor", "entries", "gemini", "lines", "opencode", "pi", "qwen",
    "rollouts", "sdk")]
TOOL = [API, CONVERT_API, "format/bytes/"] + LINES + MODEL + [
    "convert/copy/", "convert/source/", "convert/clients/", "engine/base/",
    "tools/terminal/", "tools/cli/", "tools/project/"]


def cumulative(below, folders):
    return {folder: below + folders[:i] for i, folder in enumerate(folders)}


LAYERS = {
    API: [],
    **cumulative([API], BYTES),
    **cumulative([API, "format/bytes/"], LINES + MODEL),
    **cumulative([API] + BYTES + LINES, ENGINE),
    CONVERT_API: [API],
    # A client of the interface, and a separate library.
    **cumulative([API, CONVERT_API, "format/bytes/"] + LINES + MODEL +
                 ["engine/base/"], CONVERT),
    # A dialect knows the model, not the other dialects.
    **{folder: [API, "format/bytes/"] + LINES + MODEL[:1]
       for folder in DIALECTS},
    "tools/terminal/": [],
    "tools/cli/": TOOL[:-1],
    "tools/project/": TOOL,
    "tools/secrets/": TOOL,
    # What a session shows: to the page, to programs, on a terminal.
    "tools/shown/": TOOL + BYTES + ["tools/usage/"],
    "tools/walcat/": TOOL + BYTES + ["engine/care/", "tools/shown/"],
    "tools/walcheck/": TOOL + BYTES + ["engine/care/"],
    # The verbs by topic.
    "tools/convert/": TOOL + BYTES + ["tools/secrets/"],
    "tools/care/": TOOL + ["engine/care/", "tools/secrets/"],
    "tools/files/": TOOL + ["convert/import/", "tools/shown/"],
    "tools/sessions/": TOOL + ["tools/care/", "tools/files/", "tools/shown/"],
    SEARCH_API: [API],
    # Likewise.
    **cumulative([API, SEARCH_API, "format/bytes/", "format/index/"] +
                 LINES + ["engine/base/"],
                 ["search/text/", "search/index/", "search/query/", "search/"]),
    REMOTE_API: [API],
    # Likewise; the object stores below, what is kept in them above.
    **cumulative([API, REMOTE_API, "format/bytes/", "format/segment/"] + LINES +
                 ["engine/base/"],
                 ["remote/driver/", "remote/layout/", "remote/history/",
                  "remote/ship/", "remote/base/", "remote/pull/",
                  "remote/move/", "remote/"]),
    "tools/search/": TOOL + [SEARCH_API, "tools/secrets/", "tools/shown/", "tools/walcat/"],
    "tools/remote/": TOOL + [REMOTE_API, "tools/walcat/"],
    "tools/page/": ["format/bytes/"],
    "tools/view/": TOOL + ["tools/page/", "tools/secrets/", "tools/shown/", "tools/usage/"],
    "tools/usage/": TOOL,
    "tools/watch/": TOOL + ["tools/shown/", "tools/walcat/"],
    "tools/resume/": TOOL + BYTES + [
        "tools/convert/", "tools/shown/", "tools/walcat/"],
    "tools/serve/": TOOL + [SEARCH_API, "tools/page/", "tools/search/",
                            "tools/shown/", "tools/usage/"],
    "tools/agentwal/": TOOL,
    # What the libraries of another system lack.
    "tools/cross/": [],
    "bench/": [API, SEARCH_API],
    # The Python extension.
    "bindings/python/src/": [API, CONVERT_API, SEARCH_API, "bindings/table/"],
    "bindings/table/": [API],
    # What takes the system's calls; the other system's folder is left out of the build.
    "engine/base/linux/": ["engine/base/", API, "format/bytes/"],
    "engine/base/darwin/": ["engine/base/", API, "format/bytes/"],
    # In place of a file of the engine.
    # Benchmarks that reach below the interface.
    "bench/internal/": [API, "bench/"] + BYTES + ENGINE,
    # Bare PUTs, to compare with, by the drivers.
    "bench/remote/": [API, REMOTE_API, "remote/driver/", "remote/history/"],
}
# The addon of the npm package.
NODE = "bindings/node/native/"
LAYERS.update({
    NODE + "base/": [API, "bindings/table/", "engine/base/"],
    NODE + "store/": [API, NODE, NODE + "base/", "engine/base/"],
    NODE: [API, CONVERT_API, NODE + "base/", NODE + "store/"],
    NODE + "search/": [API, SEARCH_API, NODE, NODE + "base/", NODE + "store/"],
})

# The Node.js package in JavaScript; adapters for SDKs use what it exports.
LIB = "bindings/node/lib/"
ROOMS = [LIB + room for room in (
    "base/", "content/", "exchange/", "session/", "admin/", "search/",
    "store/")]
ADAPTER = [LIB, LIB + "base/", LIB + "adapter/"]
LAYERS.update({
    **cumulative([], ROOMS),
    LIB: ROOMS,
    LIB + "adapter/": [LIB + "base/"],
    **{LIB + sdk: ADAPTER for sdk in ("claude/", "langgraph/",
                                      "openai-agents/")},
})

# What only some systems have: engine/base/ has a folder for each (system.h).
SYSTEMS = ("engine/base/linux/", "engine/base/darwin/", "tools/cross/")
OF_A_SYSTEM = re.compile(
    r"<(?:linux/[^>]*|sys/(?:epoll|event|eventfd|inotify|mount|prctl|proc|random|signalfd|statfs"
    r"|syscall|sysctl|sysmacros|timerfd|vfs)\.h|(?:fts|libproc|malloc|semaphore|uchar)\.h)>"
    r"|\b(?:\w+_(?:np|NP)|O_(?:PATH|TMPFILE|SEARCH|EVTONLY)|F_FULLFSYNC"
    r"|CLOCK_(?:\w+_COARSE|BOOTTIME)|MADV_\w+|MREMAP_\w+|SCHED_RESET_ON_FORK|SOCK_(?:CLOEXEC"
    r"|NONBLOCK)|SO_(?:PEERCRED|NOSIGPIPE)|SYS_\w+|FUTEX_\w+|IN_(?:CREATE|MODIFY)|st_[acm]tim"
    r"|__linux__|__APPLE__|cpu_set_t|locale_t)\b"
    r"|(?<![.>\w])(?:accept4|clock_nanosleep|copy_file_range|eventfd|explicit_bzero|f?statfs"
    r"|fallocate|fdatasync|fopencookie|fsync|funopen|fwrite_unlocked|getrandom|inotify_\w+"
    r"|kevent|kqueue|madvise|mallopt|memfd_create|memrchr|mremap|openat2|pipe2|ppoll"
    r"|pthread_condattr_setclock|qsort_r|reallocarray|scandirat|sched_[gs]etaffinity"
    r"|sched_getscheduler|sem_\w+|sigtimedwait|statx|strerrordesc_np|syncfs|syscall"
    r"|sync_file_range)\s*\(")
PROC = re.compile(r'"/(?:proc|sys)\b')

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
REQUIRE = re.compile(r"""(?:\brequire\(|\bfrom |\bimport\()'(\.[^']*)'""")
ALLOCATION = re.compile(
    r"(?<![\w.>])(?:malloc|calloc|realloc|reallocarray|free|strdup|strndup"
    r"|aligned_alloc|posix_memalign)\s*\(")
SYSTEM_HEADERS = re.compile(
    r"stdio\.h|unistd\.h|fcntl\.h|time\.h|pthread\.h|threads\.h"
    r"|stdatomic\.h|sys/.*")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
LITERAL = re.compile(r'"(?:\\.|[^"\\\n])*"' r"|'(?:\\.|[^'\\\n])*'")


def sources():
    for top in ("format", "engine", "convert", "search", "remote", "tools", "bench",
                "bindings/table", "bindings/node/native", "bindings/python"):
        for folder, _, names in os.walk(os.path.join(ROOT, top)):
            for name in sorted(names):
                if name.endswith((".c", ".h", ".cc")):
                    yield os.path.relpath(os.path.join(folder, name), ROOT)


def scripts():
    for folder, _, names in os.walk(os.path.join(ROOT, LIB)):
        for name in sorted(names):
            if name.endswith((".js", ".mjs")):
                yield os.path.relpath(os.path.join(folder, name), ROOT)


def layer_of(path):
    return max((p for p in LAYERS if path.startswith(p)), key=len, default=None)


def resolve(path, name, quoted):
    """The file of the project that an include names, or None."""
    places = [API, CONVERT_API, SEARCH_API, REMOTE_API]
    if quoted:
        places = [os.path.dirname(path) + "/", ""] + places
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
            elif own.startswith(("format/", *MODEL)) and \
                    SYSTEM_HEADERS.fullmatch(name):
                faults.append("%s: <%s> has no place in %s" %
                              (where, name, own))
            continue
        graph[path].append(target)
        if layer_of(target) not in LAYERS[own] + [own]:
            faults.append("%s: %s may not include %s" % (where, own, target))
    code = LITERAL.sub('""', text)
    if not path.startswith(SYSTEMS + ("bench/",)):
        check_system(path, text, code, faults)
    if path.startswith(("format/", "engine/", "convert/")) and own != "engine/base/":
        for match in ALLOCATION.finditer(code):
            line = code.count("\n", 0, match.start()) + 1
            faults.append("%s:%d: only engine/base/ may allocate: %s" %
                          (path, line, match.group()))


def check_system(path, text, code, faults):
    """Adds what a file uses that other systems lack."""
    for source, pattern in ((code, OF_A_SYSTEM), (text, PROC)):
        for match in pattern.finditer(source):
            faults.append("%s:%d: of one system; see engine/base/system.h: %s" % (
                path, source.count("\n", 0, match.start()) + 1, match.group()))


def check_script(path, graph, faults):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        text = file.read()
    own = layer_of(path)
    graph[path] = []
    for match in REQUIRE.finditer(text):
        target = os.path.normpath(os.path.join(os.path.dirname(path),
                                               match.group(1)))
        where = "%s:%d" % (path, text.count("\n", 0, match.start()) + 1)
        if not os.path.isfile(os.path.join(ROOT, target)):
            faults.append("%s: no such file: %s" % (where, match.group(1)))
        elif target.startswith(LIB):
            graph[path].append(target)
            if layer_of(target) not in LAYERS[own] + [own]:
                faults.append("%s: %s may not require %s" %
                              (where, own, target))


def main():
    graph, required, faults = {}, {}, []
    for path in sources():
        check_file(path, graph, faults)
    for path in scripts():
        check_script(path, required, faults)
    for circle in filter(None, map(find_circle, (graph, required))):
        faults.append("circle: " + " -> ".join(circle))
    graph.update(required)
    for fault in faults:
        print(fault)
    print("%d files, %d faults" % (len(graph), len(faults)))
    return 1 if faults or not graph else 0


sys.exit(main())
