#!/usr/bin/env python3
"""What links for macOS, on both processors, the programs of the tests too, needs the libraries
of agentwal and libSystem alone; the modules get the rest from the program that loads them. All
needs macOS 11, as the names of the packages say.

Nothing is run: no test of this machine shows how macOS behaves (tools/macos-check.sh).
"""
import glob
import os
import struct
import subprocess
import sys

SOURCE, BUILD = os.environ["AGENTWAL_SOURCE"], os.environ["AGENTWAL_BUILD"]
PROCESSORS = {"aarch64": 0x0100000C, "x86_64": 0x01000007}
# What npm and pip call the processor, and pip the other one.
NAMES = {"aarch64-macos": ("arm64", "arm64", "x86_64"), "x86_64-macos": ("x64", "x86_64", "arm64")}
PYTHON = "/usr/bin/python3"  # which has pip, of Debian's package
# What is linked, and how the names begin that a program defines.
LINKED = {
    "bin/agentwal": (),
    "lib/libagentwal.dylib": (),
    "lib/libagentwal-convert.dylib": (),
    "lib/libagentwal-search.dylib": (),
    "lib/libagentwal-remote.dylib": (),
    "node/agentwal.node": ("_napi_", "_node_api_"),
    "python/agentwal/_wal.abi3.so": ("_Py", "__Py"),
}
MAGIC, LOAD_DYLIB, SYMTAB, BUILD_VERSION = 0xFEEDFACF, 0x0C, 0x02, 0x32
MACOS, MACOS_11 = 1, 11 << 16
UNDEFINED_EXTERNAL = 0x01
NO_LIBRARY = (0x00, 0xFE)  # zig writes 0 for what dyld is to look up


def read(path):
    """The processor, the libraries, and the undefined symbols that any may define."""
    with open(path, "rb") as file:
        data = file.read()
    magic, processor, _, _, count = struct.unpack_from("<5I", data)
    assert magic == MAGIC, "%s: no Mach-O file" % path
    libraries, names, at = [], [], 32
    for _ in range(count):
        command, size = struct.unpack_from("<2I", data, at)
        if command == LOAD_DYLIB:
            name = data[at + struct.unpack_from("<I", data, at + 8)[0]:at + size]
            libraries.append(name.split(b"\0")[0].decode())
        elif command == BUILD_VERSION:
            system, least = struct.unpack_from("<2I", data, at + 8)
            assert (system, least) == (MACOS, MACOS_11), "%s: macOS %x" % (path, least)
        elif command == SYMTAB:
            symbols, total, strings = struct.unpack_from("<3I", data, at + 8)
            for i in range(total):
                name, kind, _, flags, _ = struct.unpack_from("<IBBHQ", data, symbols + 16 * i)
                if kind == UNDEFINED_EXTERNAL and flags >> 8 in NO_LIBRARY:
                    end = data.index(b"\0", strings + name)
                    names.append(data[strings + name:end].decode())
        at += size
    return processor, libraries, names


def check(target, folder):
    tests = [os.path.relpath(path, folder)
             for path in glob.glob(os.path.join(folder, "tests", "*"))
             if os.path.isfile(path) and os.access(path, os.X_OK)]
    assert len(tests) > 40, tests
    for name, begins in {**LINKED, **dict.fromkeys(tests, ())}.items():
        processor, libraries, looked_up = read(os.path.join(folder, name))
        assert processor == PROCESSORS[target.split("-")[0]], (name, processor)
        strange = [path for path in libraries if path != "/usr/lib/libSystem.B.dylib"
                   and not os.path.basename(path).startswith("libagentwal")]
        assert not strange, "%s needs %s" % (name, strange)
        strange = [symbol for symbol in looked_up if not symbol.startswith(begins)]
        assert not strange, "%s: nothing defines %s" % (name, strange)
        assert not begins or looked_up, "%s is no module" % name
    print("%s: %d programs of tests link" % (target, len(tests)))


def check_packages(target, folder):
    """By their names the package of Node.js finds the addon, and pip takes the wheel for macOS
    since 11 with this processor, and for no other."""
    node, python, other = NAMES[target]
    made = os.path.join(folder, "release")
    processor, _, _ = read(os.path.join(made, "darwin-%s.node" % node))
    assert processor == PROCESSORS[target.split("-")[0]], processor
    wheel, = glob.glob(os.path.join(made, "*.whl"))
    for platform, is_taken in ((("macosx_11_0_" + python), True), ("macosx_14_0_" + python, True),
                               ("macosx_10_15_" + python, False), ("macosx_14_0_" + other, False)):
        into = os.path.join(target, platform)
        done = subprocess.run(
            [PYTHON, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
             "--only-binary=:all:", "--implementation", "cp", "--platform", platform,
             "--target", into, wheel], stderr=subprocess.PIPE, text=True, check=False)
        assert (done.returncode == 0) == is_taken, (platform, done.stderr)
        if is_taken:
            read(os.path.join(into, "agentwal", "_wal.abi3.so"))


def main():
    subprocess.run(["bash", "-c", '. "$0/tools/deps.sh" && deps_install "$1"', SOURCE,
                    "python3-pip deps_python pip"], check=True)
    for target in ("aarch64-macos", "x86_64-macos"):
        folder = os.path.join(BUILD, "cross", target)
        subprocess.run([os.path.join(SOURCE, "tools", "cross.sh"), "--tests", "--packages", target,
                        folder], check=True)
        check(target, folder)
        check_packages(target, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
