#!/usr/bin/env python3
"""filesystems.py [--seconds N] [--seed N] [NAME...]

Keeps a store on each file system that this machine can make, and takes from its writers what a
machine takes: kill -9, the power, and the room. Afterwards every entry that was acknowledged is
there with its bytes, and `agentwal check` finds no damage.

A file system of a disk is on a loop device above lossy_disk.c, which loses at random what was not
synced. Needs root, and loop devices; without them the file systems that need them are named as left
out. Prints a line for each.

NAME...      only these
--seconds N  of each loop of kills (20)
--seed N     of all that is random
"""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
AGENTWAL = os.path.join(os.environ["WALBIN"], "agentwal")
SOURCE = os.environ["AGENTWAL_SOURCE"]
DISK_SIZE = 1 << 30
WRITERS = 3
CUTS = 6
KILLS_SECONDS = 5  # of a store: it is no larger then than a quarter of the disk
# One of the writers is in a namespace of process ids, as in a container.
CONTAINER = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
SIZES = (10, 10, 300, 300, 300, 5000, 40000)

# Name, what makes it, options of its mount.
DISKS = (
    ("ext4", "mkfs.ext4 -q -F", ""),
    ("ext4-journal", "mkfs.ext4 -q -F", "data=journal"),
    ("ext4-1k", "mkfs.ext4 -q -F -b 1024", ""),
    ("xfs", "mkfs.xfs -q -f", ""),
    ("xfs-no-reflink", "mkfs.xfs -q -f -m reflink=0", ""),
    ("btrfs", "mkfs.btrfs -q -f", ""),
    ("btrfs-compressed", "mkfs.btrfs -q -f", "compress-force=zstd"),
    ("f2fs", "mkfs.f2fs -q -f", ""),
)


def run(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, timeout=600, **options)


def need(*command):
    done = run(*command)
    if done.returncode != 0:
        raise RuntimeError("%s: %s" % (" ".join(command), done.stdout.strip()))
    return done.stdout


def agentwal(store, *arguments):
    return run(AGENTWAL, "--store", store, *arguments)


class Writers:
    """Threads that append to sessions of a store by processes, and what these
    acknowledged."""

    def __init__(self, store, source):
        self.store = store
        self.random = source
        self.durable = {}
        self.written = {}
        self.failures = set()
        self.ends = threading.Event()
        self.lock = threading.Lock()
        self.processes = {}
        self.threads = [threading.Thread(target=self.work, args=(number,))
                        for number in range(WRITERS)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *ignored):
        self.ends.set()
        self.kill()
        for thread in self.threads:
            thread.join()

    def kill(self):
        with self.lock:
            for process in self.processes.values():
                process.kill()

    def work(self, number):
        while not self.ends.is_set():
            level = self.random.choice(("durable", "durable", "written"))
            process = subprocess.Popen(
                [*(CONTAINER if number == 0 else ()),
                 AGENTWAL, "--store", self.store, "append", "--create", "--each", "--json",
                 "--durability", level, "session-%d" % number],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            with self.lock:
                self.processes[number] = process
            self.append(number, level, process)
            if self.ends.is_set():
                process.kill()
            self.failures.update(process.communicate()[1].splitlines())

    def append(self, number, level, process):
        known = self.durable if level == "durable" else self.written
        try:
            while not self.ends.is_set():
                name = "%032x" % self.random.getrandbits(128)
                times = self.random.choice(SIZES) // len(name) + 1
                process.stdin.write(json.dumps({"type": "message", "id": name, "payload": {
                    "role": "user", "content": name * times}}) + "\n")
                process.stdin.flush()
                if json.loads(process.stdout.readline())["lastAppendedEntryId"] == name:
                    known[name] = (number, times)
        except (OSError, ValueError, KeyError):
            return


def look(store, entries):
    """Returns what is wrong with a store that acknowledged these entries."""
    check = agentwal(store, "check")
    wrong = [] if check.returncode == 0 else ["check: " + check.stdout.strip()]
    for number in range(WRITERS):
        found = {}
        for line in agentwal(store, "cat", "session-%d" % number).stdout.splitlines():
            try:
                entry = json.loads(line)
                found[entry["id"]] = entry["payload"]["content"]
            except (ValueError, KeyError, TypeError):
                continue
        missing = [name for name, (session, times) in entries.items()
                   if session == number and found.get(name) != name * times]
        if missing:
            wrong.append("session-%d lacks %d acknowledged entries, as %s" %
                         (number, len(missing), missing[0]))
    return wrong


def kills(store, source, seconds):
    """Kills writers at random; what was acknowledged at any durability stays. The last of several
    stores is left."""
    until = time.monotonic() + seconds
    sums = [0, 0]
    while True:
        end = min(until, time.monotonic() + KILLS_SECONDS)
        with Writers(store, source) as writers:
            while time.monotonic() < end:
                time.sleep(source.uniform(0.05, 0.6))
                writers.kill()
                sums[0] += WRITERS
        entries = {**writers.durable, **writers.written}
        sums[1] += len(entries)
        wrong = look(store, entries)
        if not entries:
            wrong.append("nothing was acknowledged: %s" % sorted(writers.failures)[:3])
        if wrong or time.monotonic() >= until:
            print("  %d kills: %d entries acknowledged" % tuple(sums), flush=True)
            return wrong
        shutil.rmtree(store)


def fill(folder, store, source):
    """Fills the file system under writers; with room again they go on."""
    ballast = os.path.join(folder, "ballast")
    with Writers(store, source) as writers:
        time.sleep(0.5)
        with open(ballast, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1 << 20))
            except OSError:
                pass
        time.sleep(1.5)
        os.unlink(ballast)
        before = len(writers.durable)
        for _ in range(200):
            time.sleep(0.1)
            if len(writers.durable) > before:
                break
    wrong = look(store, {**writers.durable, **writers.written})
    if len(writers.durable) <= before:
        wrong.append("no append after there was room: %s" % sorted(writers.failures)[:3])
    if not any("no space" in text.lower() or "full" in text.lower() for text in writers.failures):
        wrong.append("nobody said that the disk is full: %s" % sorted(writers.failures)[:3])
    return wrong


def quickstart(folder):
    done = run("bash", os.path.join(SOURCE, "tools", "quickstart.sh"), "--bin",
               os.environ["WALBIN"], "--store", os.path.join(folder, "quickstart"))
    return [] if done.returncode == 0 else ["quickstart: " + done.stdout.strip()[-500:]]


class Disk:
    """A file system on a loop device above a disk that loses its cache."""

    def __init__(self, folder, program, make, options):
        self.image = os.path.join(folder, "image")
        self.served = os.path.join(folder, "served")
        self.mount_point = os.path.join(folder, "mounted")
        self.program = program
        self.options = options
        self.server = None
        for path in (self.served, self.mount_point):
            os.mkdir(path)
        with open(self.image, "wb") as file:
            file.truncate(DISK_SIZE)
        need(*make.split(), self.image)

    def mount(self):
        self.server = subprocess.Popen([self.program, self.image, self.served])
        disk = os.path.join(self.served, "disk")
        for _ in range(100):
            if os.path.exists(disk):
                break
            time.sleep(0.05)
        need("mount", "-o", ",".join(filter(None, ["loop", self.options])), disk,
             self.mount_point)

    def cut(self, seed):
        with open(os.path.join(self.served, "cut"), "w", encoding="ascii") as file:
            file.write("%d" % seed)

    def unmount(self):
        for _ in range(100):
            if run("umount", self.mount_point).returncode == 0:
                break
            time.sleep(0.1)
        need("umount", self.served)
        self.server.wait()


def age_lock(store, source):
    """The page of LOCK that a loss of power leaves names a boot that is over."""
    path = os.path.join(store, "LOCK")
    if os.path.exists(path) and os.path.getsize(path) >= 32:
        with open(path, "r+b") as file:
            file.seek(16)
            file.write(source.randbytes(16))


def cuts(disk, store, source):
    """Takes the power; what was acknowledged as durable stays."""
    durable = {}
    for _ in range(CUTS):
        with Writers(store, source) as writers:
            time.sleep(source.uniform(0.3, 2.0))
            disk.cut(source.getrandbits(63))
        durable.update(writers.durable)
        disk.unmount()
        disk.mount()
        age_lock(store, source)
        wrong = look(store, durable)
        if wrong:
            return ["after a loss of power: " + text for text in wrong]
    print("  losses of power: %d durable entries" % len(durable), flush=True)
    return [] if durable else ["nothing was durable before the power went"]


def on_disk(folder, program, make, options, source, seconds):
    disk = Disk(folder, program, make, options)
    store = os.path.join(disk.mount_point, "store")
    disk.mount()
    refused = agentwal(os.path.join(disk.served, "store"), "init")
    try:
        wrong = kills(store, source, seconds)
        shutil.rmtree(store)
        wrong += cuts(disk, store, source)
        shutil.rmtree(store)
        wrong += quickstart(disk.mount_point)
        wrong += fill(disk.mount_point, store, source)
        if refused.returncode == 0 or "is on fuse.lossy_disk" not in refused.stdout:
            wrong.append("a store on FUSE: " + refused.stdout)
    finally:
        disk.unmount()
    return wrong


def in_memory(folder, source, seconds):
    need("mount", "-t", "tmpfs", "-o", "size=%d" % DISK_SIZE, "tmpfs", folder)
    try:
        store = os.path.join(folder, "store")
        wrong = kills(store, source, seconds)
        shutil.rmtree(store)
        return wrong + quickstart(folder) + fill(folder, store, source)
    finally:
        need("umount", folder)


def overlay(folder, source, seconds):
    """A store that is made in a lower layer, as that of an image, and goes on in the upper one."""
    for name in ("lower", "upper", "work", "mounted"):
        os.mkdir(os.path.join(folder, name))
    mount_point = os.path.join(folder, "mounted")
    lower = os.path.join(folder, "lower", "store")
    wrong = kills(lower, source, 1)
    need("mount", "-t", "overlay", "overlay", "-o", "lowerdir=%s,upperdir=%s,workdir=%s" % tuple(
        os.path.join(folder, name) for name in ("lower", "upper", "work")), mount_point)
    try:
        return (wrong + kills(os.path.join(mount_point, "store"), source, seconds) +
                quickstart(mount_point))
    finally:
        need("umount", mount_point)


def known_systems():
    """The file systems of the kernel; none when it has no loop devices."""
    with open("/proc/filesystems", encoding="ascii") as file:
        systems = file.read().split()
    return systems if os.path.exists("/dev/loop-control") and os.path.exists("/dev/fuse") else []


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    print("filesystems.py --seed %d" % options.seed, flush=True)
    program = os.path.abspath("lossy_disk")
    flags = need("pkg-config", "--cflags", "--libs", "fuse3").split()
    need("cc", "-O2", "-o", program, os.path.join(HERE, "lossy_disk.c"), *flags)
    systems = known_systems()
    failed = 0
    for name in options.names or ["tmpfs", "overlay"] + [disk[0] for disk in DISKS]:
        folder = os.path.abspath(name)
        os.mkdir(folder)
        source = random.Random("%d %s" % (options.seed, name))
        disk = next((disk for disk in DISKS if disk[0] == name), None)
        if disk is not None and name.split("-")[0] not in systems:
            print("%s: left out: this kernel has none, or no loop devices" % name, flush=True)
            continue
        print(name, flush=True)
        if disk is not None:
            wrong = on_disk(folder, program, disk[1], disk[2], source, options.seconds)
        else:
            wrong = (in_memory if name == "tmpfs" else overlay)(folder, source, options.seconds)
        for text in wrong:
            print("%s: %s" % (name, text))
        failed += bool(wrong)
        shutil.rmtree(folder)
    sys.exit(failed != 0)


if __name__ == "__main__":
    if os.environ.get("AGENTWAL_MOUNTS") is None:
        os.environ["AGENTWAL_MOUNTS"] = "own"
        os.execvp("unshare", ["unshare", "-m", sys.executable, *sys.argv])
    main()
