#!/usr/bin/env python3
"""Import of damaged files: each fault is reported with path, line and
byte offset, as text and as JSON; the other files are imported whole, a second
import adds nothing, and an export has the same bytes.
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "lib"))
sys.dont_write_bytecode = True
from tree_files import files_of  # noqa: E402

TOOLS = os.environ["WALBIN"]
DEEP = 100000
TIME = b'"timestamp":"2026-01-02T03:04:05.678Z"'


def run(tool, *arguments, code=0):
    done = subprocess.run([os.path.join(TOOLS, tool), *arguments],
                          capture_output=True, check=False)
    if done.returncode != code:
        sys.exit("%s %s: exit code %d, not %d\n%s" % (
            tool, arguments, done.returncode, code,
            done.stderr.decode(errors="replace")[-2000:]))
    return done


def row(number, parent=None, more=b""):
    """A line of Claude Code, with the id of its number."""
    above = b"null" if parent is None else b'"u%d"' % parent
    return (b'{"parentUuid":%s,"isSidechain":false,"cwd":"/p","sessionId":"S",'
            b'"type":"user","message":{"role":"user","content":"text %d"%s},'
            b'"uuid":"u%d",%s}' % (above, number, more, number, TIME))


def pi_row(name, parent, more=b""):
    return (b'{"type":"message","id":"%s","parentId":%s,%s,"message":{"role":'
            b'"user","content":"x"%s}}' % (name, parent, TIME, more))


PI = b'{"type":"session","version":%d,"id":"%s",' + TIME + b',"cwd":"/p"}'
A = row(1)
B = row(2, 1)
C = row(3, 2)
SECOND = len(A) + 1  # where the second line begins


def cases():
    """name: (lines, [(line, offset, beginning of the reason)])"""
    nul = A[:40] + b"\0" + A[40:]
    lone = row(2, 1, b',"x":"\\ud800"')
    twice = row(2, 1, b',"x":1,"x":2')
    deep = b'{"x":' + b"[" * DEEP + b"]" * DEEP + b"}"
    huge = row(2, 1, b',"x":[1e999999999,-0,%s,1.%s]' % (
        b"9" * 5000, b"0" * 5000))
    bad = row(2, 1, b',"x":"\xff\xfe"')
    overlong = row(2, 1, b',"x":"\xc0\xaf"')
    surrogate = row(2, 1, b',"x":"\xed\xa0\x80"')
    control = row(2, 1, b',"x":"\x1b[31m"')
    welded = A[:50] + A
    yield "torn", [A, B[:60]], [(2, SECOND + 60, "torn")]
    yield "torn inside", [A, B[:60] + b"\n", C], [
        (2, SECOND + 60, "cut short"), (4, None, "its parent comes later")]
    yield "welded", [A, welded, C], [
        (2, SECOND + 50, "welded"), (3, None, "its parent comes later")]
    yield "two values", [A + B, C], [
        (1, len(A), "welded"), (2, None, "its parent comes later")]
    yield "bytes after", [A + b" x", b"{}"], [(1, len(A) + 1, "bytes after")]
    yield "NUL bytes", [A, b"\0" * 4096, row(2, 1)], [
        (2, SECOND, "holds NUL")]
    yield "NUL at the end", [A, B + b"\0" * 512], [
        (2, SECOND + len(B), "holds NUL")]
    yield "NUL in a string", [nul, A], [(1, 40, "holds NUL")]
    yield "NUL escaped", [row(1, None, b',"x":"\\u0000"'), B], []
    yield "invalid UTF-8", [A, bad, C], [
        (2, SECOND + bad.index(b"\xff"), "invalid UTF-8"),
        (3, None, "its parent comes later")]
    yield "overlong UTF-8", [A, overlong], [
        (2, SECOND + overlong.index(b"\xc0"), "invalid UTF-8")]
    yield "surrogate in UTF-8", [A, surrogate], [
        (2, SECOND + surrogate.index(b"\xed"), "invalid UTF-8")]
    yield "control", [A, control], [
        (2, SECOND + control.index(b"\x1b"), "not JSON")]
    yield "lone surrogate", [A, lone, C], []
    yield "same key twice", [A, twice, C], []
    yield "uuid twice", [A, B[:-1] + b',"uuid":"u2"}', C], [
        (2, SECOND, "a key occurs twice")]
    yield "message twice", [A, row(2, 1, b',"role":"user"'), C], []
    yield "deep", [A, deep, B], [(2, None, "nested too deeply")]
    yield "deep and torn", [A, b"[" * DEEP], [(2, None, "nested too deeply")]
    yield "huge numbers", [A, huge, C], []
    yield "long line", [A, row(2, 1, b',"x":"%s"' % (b"y" * 3000000)), C], []
    yield "CRLF", [A + b"\r", B + b"\r", C + b"\r"], []
    yield "carriage returns", [A + b"\r" + B], [(1, None, "welded")]
    yield "byte order mark", [b"\xef\xbb\xbf" + A, B], []
    yield "mark inside", [A, b"\xef\xbb\xbf" + B, C], []
    yield "mark and torn", [A, b"\xef\xbb\xbf" + B[:60]], [
        (2, SECOND + 63, "torn")]
    yield "two marks", [A, b"\xef\xbb\xbf\xef\xbb\xbf" + B], [
        (2, SECOND + 3, "not JSON")]
    yield "UTF-16", [A.decode().encode("utf-16"), b""], None
    yield "blank lines", [b"", A, b" \t ", b"\r", B, b""], []
    yield "only newlines", [b""] * 50, []
    yield "one newline", [b"", b""], []
    yield "empty", [b""], []
    yield "only a mark", [b"\xef\xbb\xbf"], []
    yield "one NUL", [b"\0"], None
    yield "no object", [A, b"7", b'"x"', b"null", b"[]", B], []
    yield "no newline", [A, B, C], []
    yield "parent missing", [A, row(2, 77), C], [
        (2, SECOND, "its parent comes later")]
    yield "parent of itself", [A, row(2, 2), C], [
        (2, SECOND, "names itself")]
    yield "cycle of two", [row(1, 2), row(2, 1), C], [
        (1, 0, "its parent comes later")]
    ring = [row(n, (n + 1) % 500) for n in range(500)]
    yield "long cycle", ring, [
        (n + 1, sum(len(r) + 1 for r in ring[:n]), "its parent comes later")
        for n in range(499)]
    yield "id twice", [A, B, row(2, 1, b',"role":"user"'), C], [
        (3, SECOND + len(B) + 1, "duplicate id; renamed")]
    yield "line written again", [A, B, B, C], []
    yield "id of another kind", [A, B.replace(b'"u2"', b"2"), B], []
    header = PI % (3, b"pi-x")
    yield "header missing", [
        pi_row(b"a1", b"null"), pi_row(b"a2", b'"a1"')], [
            (1, 0, "no header")]
    yield "header newer", [PI % (4, b"pi-new"), pi_row(b"b1", b"null")], [
        (1, 0, "the version is not known")]
    yield "header far newer", [
        (PI % (3, b"pi-far")).replace(b":3,", b":1e99,"),
        pi_row(b"c1", b"null")], [(1, 0, "the version is not known")]
    yield "header twice", [header, pi_row(b"d1", b"null"), header,
                           pi_row(b"d2", b'"d1"')], [
        (3, None, "a second header"), (3, None, "duplicate id; renamed")]
    yield "header torn", [(PI % (3, b"pi-t"))[:40]], [(1, 40, "torn")]
    yield "fields of other types", [
        A, b'{"type":7,"uuid":[],"parentUuid":{},"timestamp":true,'
        b'"message":"x","sessionId":null,"isSidechain":"no"}', B], []
    yield "ids not usable", [
        A, row(2, 1).replace(b'"u2"', b'"%s"' % (b"i" * 100000)),
        row(4, 1).replace(b'"uuid":"u4"', b'"uuid":"a\\u0000b\\u001b[2J"'),
        row(5, 1).replace(b'"parentUuid":"u1"', b'"parentUuid":"\\n"'),
        row(6, 1).replace(b'"u6"', b'""')], None
    yield "session not usable", [
        A.replace(b'"S"', b'"../../\\u0000x"'), B], []
    yield "cwd not usable", [
        A.replace(b'"/p"', b'"%s"' % (b"/d" * 50000)), B], []


def expected(lines, faults):
    """Replaces offsets of None with the start of the line."""
    starts = [0]
    for piece in b"\n".join(lines).split(b"\n"):
        starts.append(starts[-1] + len(piece) + 1)
    return [(line, starts[line - 1] if offset is None else offset, reason)
            for line, offset, reason in faults]


def agrees(found, wanted):
    """The scanner chooses the offset that it reports in a deep value."""
    return len(found) == len(wanted) and all(
        f["line"] == line and f["reason"].startswith(reason) and
        (f["offset"] == offset or
         (reason in ("nested too deeply", "welded") and
          offset <= f["offset"] <= offset + 600))
        for f, (line, offset, reason) in zip(found, wanted))


def rows_of(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def check_reports(work, table):
    """Imports all damaged files at once, with sound files between them."""
    folder, store = os.path.join(work, "in"), os.path.join(work, "store")
    os.mkdir(folder)
    run("agentwal", "--store", store, "init")
    sound = row(1).replace(b'"S"', b'"N%d"') + b"\n" + row(2, 1) + b"\n"
    for number, (name, lines, _) in enumerate(table):
        end = b"" if lines[-1:] == [b""] or len(lines) == 1 or \
            "torn" in name or name == "no newline" else b"\n"
        with open(os.path.join(folder, name), "wb") as file:
            file.write(b"\n".join(lines) + end)
        with open(os.path.join(folder, name + " sound"), "wb") as file:
            file.write(sound % number)
    first = run("agentwal", "--store", store, "import", "--json",
                "--all-files", folder)
    rows = {os.path.basename(r["path"]): r for r in rows_of(first)}
    assert len(rows) == 2 * len(table), len(rows)
    wrong = []
    for number, (name, lines, faults) in enumerate(table):
        other = rows[name + " sound"]
        assert other["damaged"] == [] and other["appended"] == 2 and \
            other["sessionId"] == "N%d" % number, other
        if faults is not None and \
                not agrees(rows[name]["damaged"], expected(lines, faults)):
            wrong.append("%s: %s\n    not %s" % (
                name, rows[name]["damaged"], expected(lines, faults)))
    if wrong:
        sys.exit("\n".join(wrong))
    again = run("agentwal", "--store", store, "import", "--json",
                "--all-files", folder)
    for one, two in zip(rows_of(first), rows_of(again)):
        assert two["appended"] == 0, two
        assert one["damaged"] == two["damaged"], (one, two)
        assert one["sessionId"] == two["sessionId"], (one, two)
    return folder, store, rows


def check_text(folder, store, rows):
    """The text output contains the same faults as the JSON."""
    done = run("agentwal", "--store", store, "import", "--verbose",
               "--all-files", folder)
    for line in done.stderr.splitlines():
        assert b"\x1b" not in line and b"\0" not in line, line
    for row_ in rows.values():
        for fault in row_["damaged"]:
            line = "agentwal: %s: line %d, byte %d: %s\n" % (
                row_["path"], fault["line"], fault["offset"], fault["reason"])
            assert line.encode() in done.stderr, line


def check_out(work, folder, store):
    out = os.path.join(work, "out")
    run("agentwal", "--store", store, "export", "--dialect", "source", out)
    before, after = files_of(os.fsencode(folder)), files_of(os.fsencode(out))
    assert before.keys() == after.keys()
    for name, text in before.items():
        assert text == after[name], name
    done = run("agentwal", "dialects", "--json")
    run("walcheck", "--json", store)
    # Also the sessions that are in no view of all sessions.
    listed = rows_of(run("agentwal", "--store", store, "list", "--json"))
    named = [word for row_ in listed
             for word in ("--session", row_["sessionId"])]
    for dialect in rows_of(done):
        if not dialect["export"] or dialect["name"] == "source":
            continue
        out = os.path.join(work, dialect["name"])
        run("agentwal", "--store", store, "export", "--json", "--dialect",
            dialect["name"], *named, out)
        for name, text in files_of(os.fsencode(out)).items():
            for line in text.splitlines() if name.endswith(b"l") else [text]:
                json.loads(line)


def main():
    table = list(cases())
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(0)
    with tempfile.TemporaryDirectory() as work:
        folder, store, rows = check_reports(work, table)
        check_text(folder, store, rows)
        check_out(work, folder, store)
    print("%d damaged files" % len(table))


if __name__ == "__main__":
    main()
