#!/usr/bin/env python3
"""The binary interface of the shared libraries, as committed in this folder.

  abi.py check     compare the sources to the description; 1 if they differ
  abi.py renew     write the description anew; 1 if the change is incompatible
                   and the soname is the same

libagentwal.abi and libagentwal-convert.abi are what abidw (Debian: abigail-tools)
finds of the functions and types; constants.txt has the values of enumerators and
macros, most of which no type shows: flags are plain integers. A library is
compiled for it without optimisation from the files that define public functions,
so that the description does not depend on how a tree was configured.
"""
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.environ.get("AGENTWAL_SOURCE") or os.path.dirname(
    os.path.dirname(HERE))
# Each library with the folder of its sources.
LIBRARIES = {"libagentwal": "engine", "libagentwal-convert": "convert"}
INCLUDES = [os.path.join(folder, "include") for folder in LIBRARIES.values()]
CONSTANTS = os.path.join(ROOT, "engine", "abi", "constants.txt")
COMPATIBLE = os.path.join(ROOT, "engine", "abi", "compatible.suppr")
COMPILER = os.environ.get("CC", "gcc")

OUTDATED = """\
abi.py: the binary interface has compatible additions that engine/abi does not
describe. Run engine/abi/abi.py renew, and commit the result."""
INCOMPATIBLE = """\
abi.py: the binary interface has changed incompatibly: programs that were linked
to this soname would break. Undo that, or raise the minor version in
CMakeLists.txt, which changes the soname, and run engine/abi/abi.py renew;
docs/stability.md has the rules."""


def run(*command, **options):
    return subprocess.run(command, cwd=ROOT, check=True, text=True,
                          stdout=subprocess.PIPE, **options).stdout


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def description(library):
    return os.path.join(ROOT, "engine", "abi", library + ".abi")


def headers():
    """Their names, and where they are."""
    found = {"agentwal.h": INCLUDES[0]}
    for include in INCLUDES:
        for name in sorted(os.listdir(os.path.join(ROOT, include, "agentwal"))):
            found["agentwal/" + name] = include
    return found


def soname(library):
    major, minor = re.search(r"VERSION (\d+)\.(\d+)\.\d+",
                             read(os.path.join(ROOT, "CMakeLists.txt"))).groups()
    return library + ".so." + (major if major != "0" else "0." + minor)


def public_sources(top):
    """The files below top that define functions of the public headers."""
    declared = set(re.findall(r"\b(wal_[a-z0-9_]+)\(", "".join(
        read(os.path.join(ROOT, include, name))
        for name, include in headers().items())))
    for folder, _, names in sorted(os.walk(os.path.join(ROOT, top))):
        for name in sorted(name for name in names if name.endswith(".c")):
            path = os.path.join(folder, name)
            defined = re.findall(r"^\w[\w *]*?\b(wal_[a-z0-9]\w*)\([^;{]*\)\n\{",
                                 read(path), re.M)
            if declared.intersection(defined):
                yield os.path.relpath(path, ROOT)


def describe(library, folder):
    """Writes what abidw finds; returns the path."""
    top = LIBRARIES[library]
    shared = os.path.join(folder, library + ".so")
    path = os.path.join(folder, library + ".abi")
    run(COMPILER, "-std=c11", "-D_GNU_SOURCE", "-g", "-O0", "-fPIC", "-shared",
        "-fvisibility=hidden", "-I.", *("-I" + name for name in INCLUDES),
        "-Wl,-soname," + soname(library),
        "-Wl,--version-script=%s/%s.map" % (top, library), "-o", shared,
        *public_sources(top))
    places = [word for name in INCLUDES for word in ("--headers-dir", name)]
    run("abidw", *places, "--exported-interfaces-only",
        "--drop-private-types", "--no-comp-dir-path", "--no-corpus-path",
        "--no-show-locs", "--no-elf-needed", "--type-id-style", "hash",
        "--out-file", path, shared)
    return path


def constants(folder):
    """The lines NAME VALUE of enumerators and of macros that are values."""
    source = os.path.join(folder, "constants.c")
    program = os.path.join(folder, "constants")
    includes = "".join("#include <%s>\n" % name for name in headers())
    places = ["-I" + name for name in INCLUDES]
    preprocess = (COMPILER, "-E", "-xc", *places, "-")
    text = run(*preprocess, "-P", input=includes)
    names = set(re.findall(r"\b(WAL_[A-Z0-9_]+)\b\s*(?=[=,}])", " ".join(
        re.findall(r"\benum wal_\w+\s*\{[^}]*\}", text))))
    for name, value in re.findall(r"^#define (WAL_[A-Z0-9_]+) (.+)$",
                                  run(*preprocess, "-dM", input=includes),
                                  re.M):
        if not re.match(r"AGENTWAL_0_2_USE_|__attribute__", value):
            names.add(name)
    with open(source, "w", encoding="utf-8") as file:
        file.write(includes + """#include <stdio.h>
static void number(const char *name, long long value)
{
    printf("%s %lld\\n", name, value);
}
static void text(const char *name, const char *value)
{
    printf("%s \\"%s\\"\\n", name, value);
}
#define SHOW(value) \\
    _Generic((value), char *: text, default: number)(#value, value)
int main(void)
{
""" + "".join("    SHOW(%s);\n" % name for name in sorted(names)) +
                   "    return 0;\n}\n")
    run(COMPILER, "-std=c11", "-w", *places, source, "-o", program)
    return run(program)


def members(path):
    """(struct, member, offset, type) of each member of a public struct."""
    found = set()
    for struct in xml.etree.ElementTree.parse(path).iter("class-decl"):
        for member in struct.findall("data-member"):
            declaration = member.find("var-decl")
            found.add((struct.get("name"), declaration.get("name"),
                       member.get("layout-offset-in-bits"),
                       declaration.get("type-id")))
    return found


def diff(*arguments):
    return subprocess.run(["abidiff", *arguments], stdout=subprocess.PIPE,
                          text=True, check=False)


def is_compatible(new, new_constants):
    old_constants = set(read(CONSTANTS).splitlines())
    for library, path in new.items():
        old = description(library)
        done = diff("--no-added-syms", "--suppressions", COMPATIBLE, old, path)
        if done.returncode != 0 or not members(old) <= members(path):
            return False
    return old_constants <= set(new_constants.splitlines())


def check(new, new_constants):
    texts = [done.stdout for done in (
        diff(description(library), path) for library, path in new.items())
             if done.returncode != 0]
    changed = set(read(CONSTANTS).splitlines()).symmetric_difference(
        new_constants.splitlines())
    if not texts and not changed:
        return 0
    print(*texts, *sorted(changed), sep="\n")
    print(OUTDATED if is_compatible(new, new_constants) else INCOMPATIBLE,
          file=sys.stderr)
    return 1


def renew(new, new_constants):
    if all(map(os.path.exists, [CONSTANTS, *map(description, new)])):
        same = all(
            xml.etree.ElementTree.parse(description(library)).getroot().get(
                "soname") == soname(library) for library in new)
        if same and not is_compatible(new, new_constants):
            print(INCOMPATIBLE, file=sys.stderr)
            return 1
    texts = [(description(library), read(path)) for library, path in new.items()]
    for path, text in [*texts, (CONSTANTS, new_constants)]:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return 0


def main():
    if sys.argv[1:] not in (["check"], ["renew"]):
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        new = {library: describe(library, folder) for library in LIBRARIES}
        new_constants = constants(folder)
        return {"check": check, "renew": renew}[sys.argv[1]](new, new_constants)


sys.exit(main())
