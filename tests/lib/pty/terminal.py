"""A program on a pseudo-terminal: what it draws, keys for it, and whether it
leaves the terminal as it was. For tests of the tools."""
import errno
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

LEAVE = "\x1b[?1049l"
BIN = os.path.join(os.environ["WALBIN"], "agentwal")
HOSTILE = "evil \x1b[31m \x07 \x9b31m \u202etxt\u2069"


def environment():
    return {k: v for k, v in os.environ.items()
            if k not in ("COLUMNS", "NO_COLOR")} | {"TERM": "xterm"}


def run(*arguments, stdin="", code=0):
    done = subprocess.run([BIN, *arguments], input=stdin, text=True,
                          capture_output=True, env=environment(), check=False)
    assert done.returncode == code, (arguments, done)
    return done.stdout


class Terminal:
    """Runs a command with its standard input and error, and by default its
    output, on a terminal that it controls."""

    def __init__(self, command, env, output=None, rows=30, columns=100):
        self.text = ""
        self.pending = b""
        self.master, slave = pty.openpty()
        fcntl.ioctl(self.master, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, columns, 0, 0))
        self.slave = slave
        self.before = termios.tcgetattr(slave)
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            os.dup2(slave, 0)
            os.dup2(output if output is not None else slave, 1)
            os.dup2(slave, 2)
            os.closerange(3, 256)
            os.execve(command[0], command, env)

    def read(self, seconds):
        """Reads what is drawn in that time, at most; False for nothing."""
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            part = os.read(self.master, 65536)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return False
        self.pending += part
        self.text = self.pending.decode("utf-8", "replace")
        return bool(part)

    def wait_for(self, text, seconds=20):
        """Reads until the text is drawn; then forgets what was drawn up to
        it. Returns that."""
        end = time.monotonic() + seconds
        while text not in self.text:
            assert time.monotonic() < end, (text, self.text)
            self.read(0.2)
        drawn, _, rest = self.text.partition(text)
        self.pending = rest.encode()
        self.text = rest
        return drawn + text

    def type(self, keys):
        os.write(self.master, keys.encode())

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, columns, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)

    def finish(self, seconds=20):
        """Waits for the end. The exit code, or minus the signal. The mode of
        the terminal must be that of before, and its screen the usual one."""
        end = time.monotonic() + seconds
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid != 0:
                break
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise AssertionError("does not end: %r" % self.text)
            self.read(0.05)
        while self.read(0.05):
            pass
        after = termios.tcgetattr(self.slave)
        assert after == self.before, (self.before, after)
        os.close(self.slave)
        os.close(self.master)
        return (-os.WTERMSIG(status) if os.WIFSIGNALED(status)
                else os.WEXITSTATUS(status))
