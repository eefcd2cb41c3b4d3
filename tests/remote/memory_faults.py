#!/usr/bin/env python3
"""memory_faults.py [--long | RUNS]: writers, take-overs and followers under faults.

Each run has an object store in memory that fails in a share of its requests:
before and after it has done what was asked, late, twice. A writer appends with
WAL_CLUSTER, is killed or taken over by another machine, and goes on; a follower
pulls meanwhile. Afterwards, without faults,

- each entry that was acknowledged is in a pull from the remote alone, once,
- the follower has the beginning of that, and its store is sound,
- no object but the list of sessions was replaced, and check --remote finds nothing.

5 runs; with --long, or AGENTWAL_LONG, 500. The seed is printed with each run:
AGENTWAL_SEED=N 1 repeats one.
"""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import s3_memory  # noqa: E402

BUILD = os.environ["AGENTWAL_BUILD"]
AGENTWAL = BUILD + "/bin/agentwal"
WRITER = BUILD + "/tests/remote_chaos_writer"
ATTEMPTS = 20
os.environ.update(AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret",
                  NO_PROXY="*")
os.environ.pop("AGENTWAL_STORE", None)


class Run:
    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.server = s3_memory.Server()
        self.share = self.chance.uniform(0.02, 0.35)
        self.faults = s3_memory.shuffled_faults(seed, self.share)
        self.url = self.server.url("bucket")
        self.acknowledged = set()
        self.first = 0
        self.take_overs = 0

    def agentwal(self, *words, attempts=1):
        """The output; what fails because of a fault is repeated."""
        for _ in range(attempts):
            done = subprocess.run([AGENTWAL, *words], capture_output=True, text=True,
                                  timeout=300, check=False)
            if done.returncode == 0:
                return done.stdout
        raise AssertionError("%s: %d %s" % (words, done.returncode, done.stderr))

    def write(self, store, may_kill=True):
        """A writer appends for a second, and is killed or ends."""
        self.first += 1000000
        writer = subprocess.Popen(
            [WRITER, store, self.url, str(self.first), "1",
             store.partition(".")[2]],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if may_kill and self.chance.random() < 0.5:
            time.sleep(self.chance.uniform(0.1, 1))
            writer.send_signal(signal.SIGKILL)
        output, text = writer.communicate(timeout=300)
        assert writer.returncode in (0, -signal.SIGKILL), text
        # A line that a kill cut off was not read by anybody.
        self.acknowledged.update(
            int(line) for line in output[:output.rfind("\n") + 1].split())

    def numbers(self, store):
        """The numbers of the entries, in the order of the log."""
        lines = self.agentwal("--store", store, "cat", "--json", "chaos").splitlines()
        return [entry["payload"]["chaos"] for entry in map(json.loads, lines)
                if "chaos" in (entry.get("payload") or {})]

    def take_over(self):
        self.take_overs += 1
        store = "machine.%d" % self.take_overs
        self.agentwal("remote", "pull", "--take-over", self.url, store,
                      attempts=ATTEMPTS)
        return store

    def go(self):
        store = "machine.0"
        # What has no part yet cannot be taken over.
        self.write(store, may_kill=False)
        self.server.fault = self.faults
        follower = None
        for _ in range(self.chance.randint(2, 4)):
            if follower is None and self.chance.random() < 0.7:
                follower = subprocess.Popen(
                    [AGENTWAL, "remote", "pull", "--follow", self.url, "follower"],
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if self.chance.random() < 0.4:
                store = self.take_over()
            self.write(store)
        if follower is not None:
            follower.send_signal(self.chance.choice([signal.SIGKILL, signal.SIGINT]))
            follower.wait(60)
        self.server.fault = None
        self.verify(follower is not None)

    def verify(self, has_follower):
        self.agentwal("remote", "pull", self.url, "pulled")
        pulled = self.numbers("pulled")
        assert len(set(pulled)) == len(pulled), "an entry is there twice"
        lost = self.acknowledged - set(pulled)
        assert not lost, "acknowledged and lost: %s" % sorted(lost)[:10]
        bucket = self.server.buckets["bucket"]
        replaced = [name for name in bucket.replaced if not name.endswith("/sessions")]
        assert not replaced, "replaced: %s" % replaced
        self.agentwal("check", "--remote", self.url)
        if has_follower and os.path.exists("follower/MANIFEST"):
            self.agentwal("--store", "follower", "check")
            done = subprocess.run([AGENTWAL, "--store", "follower", "cat", "--json",
                                   "chaos"], capture_output=True, check=False)
            followed = self.numbers("follower") if done.returncode == 0 else []
            assert followed == pulled[:len(followed)], "the follower has another log"


def main():
    is_long = "--long" in sys.argv or os.environ.get("AGENTWAL_LONG")
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    runs = numbers[0] if numbers else 500 if is_long else 5
    first = int(os.environ.get("AGENTWAL_SEED") or random.randrange(1 << 30))
    acknowledged = requests = 0
    for seed in range(first, first + runs):
        place = "run.%d" % seed
        os.mkdir(place)
        os.chdir(place)
        run = Run(seed)
        try:
            run.go()
        except (AssertionError, subprocess.SubprocessError):
            print("seed %d failed, with faults in %.2f of all requests" % (seed,
                                                                       run.share))
            raise
        finally:
            run.server.shutdown()
            run.server.server_close()
            os.chdir("..")
        acknowledged += len(run.acknowledged)
        requests += len(run.server.requests)
        print("seed %d: faults %.2f, %d take-overs, %d acknowledged, %d requests" % (
            seed, run.share, run.take_overs, len(run.acknowledged),
            len(run.server.requests)), flush=True)
        shutil.rmtree(place)
    print("%d runs: %d acknowledged, none lost; %d requests" % (runs, acknowledged,
                                                               requests))


main()
