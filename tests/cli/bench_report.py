#!/usr/bin/env python3
"""bench/report.py reports benchmark results, and refuses invalid input.

Results that are cut short, that contradict themselves, or that name what does
not exist end it with a message and 1, and change no file.
"""
import contextlib
import io
import json
import os
import sys
import xml.etree.ElementTree

ROOT = os.environ.get("AGENTWAL_SOURCE") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench"))
sys.dont_write_bytecode = True
import report  # noqa: E402  # pylint: disable=wrong-import-position

MARKED = ("before\n<!-- bench/report.py: begin -->\nold\n"
          "<!-- bench/report.py: end -->\nafter\n")

ROW = {"question": "how fast", "measured": "1500 us", "against": "1000 us",
       "ratio": 1.5, "low": 1.25, "high": None, "unit": "x", "sense": "<=",
       "target": 2.0, "verdict": "met", "turns": 5, "run": "quick"}
MISSED = dict(ROW, question="how slow", ratio=3.0, verdict="missed")
UNKNOWN = dict(ROW, question="how free", ratio=None, verdict="")
POINTS = [{"plot": "threads", "line": line, "x": x, "y": y}
          for line, x, y in (("agentwal", 1, 7000), ("agentwal", 4, 20000),
                             ("jsonl-open", 1, 5000), ("jsonl-open", 4, None))]
OMISSION = {"left_out": "LMDB", "why": "its library was not found"}
GOOD = [ROW, MISSED, UNKNOWN, OMISSION, OMISSION] + POINTS


def without(row, name):
    return {key: value for key, value in row.items() if key != name}


BROKEN = {
    "nothing": [],
    "points alone": POINTS,
    "no object": [ROW, 5],
    "no JSON": [ROW, "{"],
    "not a number": [ROW, json.dumps(MISSED).replace("3.0", "NaN")],
    "infinite": [json.dumps(ROW).replace("1.25", "Infinity")],
    "a member is missing": [without(ROW, "turns")],
    "a member too many": [dict(ROW, more=1)],
    "a number as text": [dict(ROW, ratio="1.5")],
    "a truth as number": [dict(ROW, turns=True)],
    "no turns": [dict(ROW, turns=0)],
    "no question": [dict(ROW, question=" ")],
    "asked twice": [ROW, ROW],
    "wrong verdict": [dict(ROW, verdict="missed")],
    "verdict on nothing": [dict(UNKNOWN, verdict="met")],
    "a target without a sense": [dict(ROW, sense="")],
    "a sense without a target": [dict(ROW, target=None, verdict="")],
    "unknown sense": [dict(ROW, sense="<")],
    "unknown plot": [ROW, dict(POINTS[0], plot="other")],
    "a point without a place": [ROW, dict(POINTS[0], x=None)],
    "half an omission": [ROW, {"left_out": "LMDB"}],
}


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def lines_of(objects):
    return "".join((each if isinstance(each, str) else json.dumps(each)) + "\n"
                   for each in objects)


def run(*arguments, wanted=0):
    """What report.py prints with these arguments, which ends with that code."""
    sys.argv = ["report.py", *arguments]
    code = 0
    with contextlib.redirect_stdout(io.StringIO()) as out, \
            contextlib.redirect_stderr(io.StringIO()) as errors:
        try:
            report.main()
        except SystemExit as end:
            code = end.code
            if isinstance(code, str):  # a message, and 1
                errors.write(code)
                code = 1
    assert code == wanted, (arguments, code, errors.getvalue())
    assert (errors.getvalue() == "") == (wanted == 0), (arguments, errors.getvalue())
    return out.getvalue() if wanted == 0 else errors.getvalue()


OUT = ("--json", "out.json", "--markdown", "out.md", "--plots", "plots",
       "--page", "page")


def report_shows_results():
    write("good", lines_of(GOOD))
    write("page", MARKED)
    shown = run("good", *OUT, "--fact", "linux=Linux 6", "--fact",
                "sync_us=95", "--fact", "run=quick")
    assert "1 met, 1 missed, 1 not measured" in shown, shown
    assert shown.count("Left out: LMDB: its library") == 1, shown
    table = read("out.md")
    assert "| how fast | 1,500 µs | 1,000 µs | 1.50 | ≤ 2.00 | 5 |" in table
    assert "**≤ 2.00, missed**" in table, table
    assert "**≤ 2.00, not measured**" in table, table
    page = read("page")
    assert page.startswith("before\n<!--") and page.endswith(
        "-->\nafter\n") and "old" not in page and table in page, page
    assert "Linux 6; a small write and its sync took 95 µs" in page, page
    assert os.listdir("plots") == ["threads.svg"]
    xml.etree.ElementTree.parse("plots/threads.svg")


def report_from_json_is_identical():
    first = [read(path) for path in ("out.json", "out.md", "page",
                                     "plots/threads.svg")]
    run("out.json", *OUT)
    assert first == [read(path) for path in ("out.json", "out.md", "page",
                                             "plots/threads.svg")]


def add_keeps_existing_rows():
    again = dict(MISSED, ratio=1.0, verdict="met", run="long")
    fresh = dict(ROW, question="how new", run="long")
    write("more", lines_of([again, fresh, dict(POINTS[0], y=9000)]))
    run("more", "--json", "out.json", "--add", "--markdown", "out.md",
        "--fact", "linux=Linux 6", "--fact", "run=long")
    joined = json.loads(read("out.json"))
    assert [row["question"] for row in joined["rows"]] == [
        "how fast", "how slow", "how free", "how new"], joined
    assert joined["rows"][1] == again and joined["rows"][0] == ROW, joined
    assert joined["points"][0]["y"] == 9000 and len(joined["points"]) == 4
    assert joined["facts"]["run"] == "quick", joined
    table = read("out.md")
    assert "how new (--long)" in table and "how slow (--long)" in table
    assert "how fast |" in table, table
    run("more", "--json", "out.json", "--add", "--fact", "linux=Linux 7",
        wanted=1)
    assert json.loads(read("out.json")) == joined
    run("more", "--add", wanted=2)
    write("late", lines_of([dict(ROW, question="LMDB, after all")]))
    assert joined["omissions"] == [OMISSION], joined
    run("late", "--json", "out.json", "--add", "--fact", "linux=Linux 6")
    assert json.loads(read("out.json"))["omissions"] == []


def invalid_input_is_refused():
    before = [read(path) for path in ("out.json", "out.md", "page")]
    for name, objects in BROKEN.items():
        write("broken", lines_of(objects))
        run("broken", *OUT, wanted=1)
        write("broken.json", json.dumps({"facts": {}, "rows": objects,
                                         "points": [], "omissions": []}))
        run("broken.json", *OUT, wanted=1)
        assert before == [read(path) for path in
                          ("out.json", "out.md", "page")], name
    write("cut", lines_of(GOOD)[:-1])
    assert "cut short" in run("cut", *OUT, wanted=1)
    write("cut.json", read("out.json")[:-20])
    run("cut.json", *OUT, wanted=1)
    run("none", *OUT, wanted=1)
    run("none.json", *OUT, wanted=1)


def page_without_marks_is_refused():
    for text in ("", MARKED + MARKED, MARKED.replace("end", "und")):
        write("unmarked", text)
        run("good", "--page", "unmarked", wanted=1)
        assert read("unmarked") == text
    run("good", "--page", "nowhere", wanted=1)
    run("good", "--json", "nowhere/out.json", wanted=1)
    run("good", "--fact", "nothing", wanted=2)


def plot_of_one_point():
    write("one", lines_of([ROW, POINTS[0]]))
    run("one", "--plots", "one-point")
    xml.etree.ElementTree.parse("one-point/threads.svg")
    write("none-drawn", lines_of([ROW, POINTS[3]]))
    run("none-drawn", "--plots", "no-point")
    assert os.listdir("no-point") == []


if __name__ == "__main__":
    report_shows_results()
    report_from_json_is_identical()
    add_keeps_existing_rows()
    invalid_input_is_refused()
    page_without_marks_is_refused()
    plot_of_one_point()
