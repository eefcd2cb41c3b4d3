#!/usr/bin/env python3
"""Runs the commands that documents show and compares what they print.

A page is one shell session in a folder that has only tools/example; that of README.md
is also a home directory of its home.sh, and CONTRIBUTING.md is one in a copy of the
sources. Of a page:
- An indented block that begins with `$ ` is a transcript: commands, each with
  its output, standard error included. A command that ends with a backslash
  continues on the next line. Of the output, blank lines at the end do not
  count, and a line `...` is any lines.
- A fenced block ```jsonl NAME is the file NAME.
- A fenced block ```c consists of consecutive lines of an example. The program
  of README.md is tested by readme_program.sh.
- A fenced block ```js is a program: bindings/node/test/docs.test.mjs runs it.
- A fenced block ```sh has commands that other tests run: ELSEWHERE names them.
- `agentwal VERB --option` in a text names a verb and options that exist.
- Another indented block is a fault: it would be a command that nothing runs.

An id that a command printed may be used in later commands, as it is shown.
Ids of version 7, their endings, times, and sizes are compared by their place
only. The folder, which is also HOME, is shown as /home/you.
Arguments: the pages to check instead of all.
"""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = os.environ.get("AGENTWAL_SOURCE") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("WALBIN") or os.path.join(ROOT, "build", "bin")

PAGES = ["README.md", "CHANGELOG.md", "SECURITY.md", "examples/README.md",
         "bindings/node/README.md", "bindings/node/docs/api.md"]
# It builds, which takes a minute: tests/packaging/contributing.sh.
IN_SOURCES = "CONTRIBUTING.md"

ID = re.compile(r"\b01[0-9a-f]{6}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-"
                r"[0-9a-f]{12}\b")
# The ending by which the tools abbreviate an id.
ENDING = re.compile(r"(?<![\w-])[0-9a-f-]{7,35}(?![\w-])")
RULES = [
    (re.compile(r"/tmp/agentwal-docs\.[^/\s]+"), "/home/you"),
    (re.compile(r"\b(now|\d+ (min|d) ago)(?= )"), "AGE"),
    (re.compile(r"\b\d+\.\d s\b"), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d[:-]\d\d([:-]\d\d([.-]\d+)?)?Z?"), "TIME"),
    (re.compile(r"\b\d+\.\d kB\b"), "SIZE"),
    (re.compile(r'("newBytes":)\d+'), r"\1SIZE"),
    (re.compile(r"(new contents?, )\d+ bytes"), r"\1SIZE"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "DIGEST"),
    (re.compile(r"(?<=\S) {2,}"), "  "),
    (re.compile(r" +$"), ""),
]


# Commands of fenced blocks, with the test that runs them.
ELSEWHERE = {
    "tools/quickstart.sh": "tests/packaging/release.sh",
    "tests/run.sh": ".ci/run",
    "tools/package.sh": "tests/packaging/release.sh",
    "sudo apt install ./build/packages/agentwal_*.deb": "tests/packaging/release.sh",
    "sudo cmake --install build && sudo ldconfig": "tests/packaging/release.sh",
    "bench/run.sh --quick --json docs/bench/results.json "
    "--plots docs/bench --page docs/benchmarks.md": "tests/cli/bench_run.sh",
    "bench/run.sh --long --filter list/1000000 --json docs/bench/results.json "
    "--add --plots docs/bench --page docs/benchmarks.md":
        "tests/cli/bench_run.sh",
    "apt-get install cmake ninja-build gcc pkg-config liblz4-dev zlib1g-dev "
    "libzstd-dev libssl-dev libdeflate-dev libsqlite3-dev libmicrohttpd-dev "
    "libcurl4-openssl-dev libexpat1-dev libcmocka-dev libjansson-dev python3":
        "tests/packaging/configure.sh",
    "bindings/node/pack.sh": "tests/node/package.sh",
    "npm install ./agentwal-0.2.0.tgz": "tests/node/package.sh",
    "cmake -S examples -B build && cmake --build build": "tests/packaging/release.sh",
}


class Ids:
    """The ids of a page, as they are shown and as they were printed."""

    def __init__(self):
        self.shown, self.printed = [], []

    @staticmethod
    def find(known, text):
        """The rank of the id that the text is or ends, or None."""
        ranks = [at for at, each in enumerate(known) if each.endswith(text)]
        return ranks[0] if len(ranks) == 1 else None

    def normal(self, lines, known):
        """The lines with each id replaced by the rank of its appearance."""
        def rank(match):
            if match.group() not in known:
                known.append(match.group())
            return "ID%d" % known.index(match.group())

        def ending(match):
            at = self.find(known, match.group())
            return match.group() if at is None else "ID%d" % at

        for line in lines:
            line = ENDING.sub(ending, ID.sub(rank, line))
            for pattern, instead in RULES:
                line = pattern.sub(instead, line)
            yield line

    def command(self, text):
        """A shown command with the ids that were printed here."""
        def replace(match):
            at = self.find(self.shown, match.group())
            return match.group() if at is None or at >= len(self.printed) \
                else self.printed[at][-len(match.group()):]

        return ENDING.sub(replace, ID.sub(replace, text))


def matches(shown, printed):
    """Whether the printed lines are the shown ones; `...` is any lines."""
    if not shown:
        return not printed
    if shown[0].strip() == "...":
        return any(matches(shown[1:], printed[at:])
                   for at in range(len(printed) + 1))
    return bool(printed) and shown[0] == printed[0] and \
        matches(shown[1:], printed[1:])


def blocks(text):
    """Yields (line number, kind, name, lines) of the blocks of a page."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        fence = re.match(r"```(\w*) ?(\S*)$", lines[at])
        if fence:
            end = lines.index("```", at + 1)
            yield at + 1, fence.group(1), fence.group(2), lines[at + 1:end]
            at = end + 1
        elif lines[at].startswith("    ") and at and not lines[at - 1]:
            end = at
            while end < len(lines) and re.match(r"    |$", lines[end]):
                end += 1
            while not lines[end - 1]:
                end -= 1
            kind = "transcript" if lines[at].startswith("    $ ") else \
                "output" if lines[at - 2].endswith("It prints:") else "other"
            yield at + 1, kind, "", [l[4:] for l in lines[at:end]]
            at = end
        else:
            at += 1


def steps(number, lines):
    """Yields (line number, command, shown output) of a transcript."""
    at = 0
    while at < len(lines):
        first, command = at, lines[at][2:]
        while command.endswith("\\") and at + 1 < len(lines):
            at += 1
            command += "\n" + lines[at]
        at += 1
        begin = at
        while at < len(lines) and not lines[at].startswith("$ "):
            at += 1
        shown = "\n".join(lines[begin:at]).rstrip("\n")
        yield number + first, command, shown.splitlines()


def copy_sources(folder):
    names = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "-z"],
        check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if os.path.isfile(os.path.join(ROOT, name)):
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            shutil.copy2(os.path.join(ROOT, name), path)


def prepare(folder, path):
    """What a page needs in its folder."""
    if os.path.basename(path) == IN_SOURCES:
        copy_sources(folder)
        return
    if path == os.path.join(ROOT, "README.md"):
        subprocess.run([os.path.join(ROOT, "tools", "example", "home.sh"), folder],
                       check=True)
    shutil.copytree(os.path.join(ROOT, "tools", "example"),
                    os.path.join(folder, "tools", "example"))
    if path.endswith(os.path.join("examples", "README.md")):
        os.mkdir(os.path.join(folder, "build"))
        os.symlink(os.path.join(os.path.dirname(BIN), "tests", "agent"),
                   os.path.join(folder, "build", "agent"))


class Shell:
    """A shell in the folder; a command is read from a file, so that commands
    that read their input do not read the next command."""
    MARK = "\x1e\n"

    def __init__(self, folder):
        environment = {
            **os.environ, "PATH": BIN + ":" + os.environ["PATH"],
            "HOME": folder, "TZ": "UTC", "LC_ALL": "C.UTF-8", "COLUMNS": "80"}
        for name in ("AGENTWAL_STORE", "XDG_DATA_HOME", "CODEX_HOME",
                     "CLAUDE_CONFIG_DIR", "PI_CODING_AGENT_DIR"):
            environment.pop(name, None)
        self.script = tempfile.NamedTemporaryFile("w", suffix=".sh")
        self.process = subprocess.Popen(
            ["bash"], cwd=folder, env=environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True)

    def run(self, command):
        """The lines that the command prints, or None if the shell ended."""
        self.script.seek(0)
        self.script.truncate()
        self.script.write(command + "\n")
        self.script.flush()
        self.process.stdin.write(". %s </dev/null; printf '\\036\\n'\n"
                                 % self.script.name)
        self.process.stdin.flush()
        output = ""
        while not output.endswith(self.MARK):
            line = self.process.stdout.readline()
            if not line:
                return None
            output += line
        return output[:-len(self.MARK)].rstrip("\n").splitlines()

    def close(self):
        self.process.stdin.close()
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
        self.script.close()


def run_page(path, page_steps, folder):
    """Yields the faults of the commands, run one after the other."""
    shell, ids = Shell(folder), Ids()
    for number, command, shown in page_steps:
        printed = shell.run(ids.command(command))
        if printed is None:
            yield "%s:%d: the shell ended: $ %s" % (path, number, command)
            break
        shown = list(ids.normal(shown, ids.shown))
        printed = list(ids.normal(printed, ids.printed))
        if not matches(shown, printed):
            yield "%s:%d: $ %s\nshown:\n  %s\nprinted:\n  %s" % (
                path, number, command, "\n  ".join(shown),
                "\n  ".join(printed))
    shell.close()


class Usage:
    """The verbs and options of agentwal, from its help."""

    def __init__(self):
        self.texts = {}
        self.common = self.help()  # with the options of every verb

    def help(self, *arguments):
        """What `agentwal help` prints, or None for an unknown verb."""
        if arguments not in self.texts:
            done = subprocess.run([os.path.join(BIN, "agentwal"), "help",
                                   *arguments], text=True,
                                  capture_output=True, check=False)
            self.texts[arguments] = None if done.returncode else done.stdout
        return self.texts[arguments]

    def faults(self, text):
        """Yields (line number, fault) of the verbs named in a text."""
        for match in re.finditer(r"`(?:\w+ \| )?agentwal ([^`]*)`", text):
            words = match.group(1).replace("--store=", "--store ").split()
            while words and words[0].startswith("--"):
                words = words[2 if words[0] == "--store" else 1:]
            page = self.help(words[0]) if words else ""
            if words and words[0] == "VERB":
                continue
            missing = [words[0]] if page is None else [
                word for word in words if word.startswith("--")
                and word.strip("[]") not in page + self.common]
            for word in missing:
                yield (text.count("\n", 0, match.start()) + 1,
                       "%r does not exist: %s" % (word, match.group()))


def check_page(path, examples, usage):
    """Returns the faults of a page and the number of things checked."""
    faults, page_steps, count = [], [], 0
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for number, fault in usage.faults(text):
        faults.append("%s:%d: %s" % (path, number, fault))
    with tempfile.TemporaryDirectory(prefix="agentwal-docs.",
                                     dir="/tmp") as folder:
        prepare(folder, path)
        for number, kind, name, lines in blocks(text):
            if kind == "transcript":
                page_steps += steps(number, lines)
            elif kind == "other":
                faults.append("%s:%d: nothing runs this" % (path, number))
            elif kind == "jsonl" and name:
                with open(os.path.join(folder, name), "w",
                          encoding="utf-8") as file:
                    file.write("".join(line + "\n" for line in lines))
            elif kind == "sh":
                faults += ["%s:%d: nothing runs %r" % (path, number, line)
                           for line in lines if line not in ELSEWHERE]
            elif kind == "c" and not path.endswith("README.md"):
                count += 1
                part = " ".join(" ".join(lines).split())
                if not any(part in example for example in examples):
                    faults.append("%s:%d: not in an example" % (path, number))
        if page_steps:
            faults += run_page(path, page_steps, folder)
    return faults, count + len(page_steps)


def main():
    examples, usage = [], Usage()
    for path in glob.glob(os.path.join(ROOT, "examples", "*.c")):
        with open(path, encoding="utf-8") as file:
            examples.append(" ".join(file.read().split()))
    pages = sys.argv[1:] or sorted(
        glob.glob(os.path.join(ROOT, "docs", "*.md"))) + [
            os.path.join(ROOT, name) for name in PAGES]
    faults, count = [], 0
    for line, test in ELSEWHERE.items():
        if not os.path.exists(os.path.join(ROOT, test)):
            faults.append("%s: no test %s" % (line, test))
    for path in pages:
        found, checked = check_page(path, examples, usage)
        faults += found
        count += checked
    print("\n".join(faults + ["%d checked, %d faults" % (count, len(faults))]))
    return 1 if faults or not count else 0


if __name__ == "__main__":
    sys.exit(main())
