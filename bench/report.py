#!/usr/bin/env python3
"""report.py RESULTS [--json FILE [--add]] [--markdown FILE] [--plots FOLDER]
[--page FILE] [--fact NAME=VALUE]...

Prints what the benchmarks found as a table, then the rows that have a target.

RESULTS     what the benchmarks wrote, an object of JSON on each line: rows of
            the table, points of the plots, and what was left out; or a file
            that --json wrote
--json      writes all of it to this file
--add       keeps what the file of --json already has and RESULTS has not
--markdown  writes the rows that have a target to this file
--plots     draws the plots, as SVG, into this folder
--page      puts those rows into this file, between its two marks
--fact      a fact about the machine or the run

Exits with 1, and writes nothing, when RESULTS is not whole.
"""
import argparse
import json
import math
import os
import re
import sys

from plots import PLOTS, draw

HEADS = ("question", "measured", "against", "ratio", "target", "turns", "")
BEGIN, END = "<!-- bench/report.py: begin -->", "<!-- bench/report.py: end -->"
MACHINE = ("processor", "filesystem", "linux", "date")
TEXT, NUMBER = (str,), (int, float)
ROW = {"question": TEXT, "measured": TEXT, "against": TEXT, "unit": TEXT,
       "sense": TEXT, "verdict": TEXT, "run": TEXT, "turns": (int,),
       "ratio": NUMBER + (type(None),), "low": NUMBER + (type(None),),
       "high": NUMBER + (type(None),), "target": NUMBER + (type(None),)}
POINT = {"plot": TEXT, "line": TEXT, "x": NUMBER,
         "y": NUMBER + (type(None),)}
OMISSION = {"left_out": TEXT, "why": TEXT}


class Broken(Exception):
    pass


# --- what was found ---------------------------------------------------------


def need(condition, where, what):
    if not condition:
        raise Broken("%s: %s" % (where, what))


def check_shape(found, shape, where):
    need(set(found) == set(shape), where,
         "members are %s" % ", ".join(sorted(found)))
    for name, kinds in shape.items():
        value = found[name]
        need(isinstance(value, kinds) and not isinstance(value, bool), where,
             "%s is %r" % (name, value))
        if isinstance(value, float):
            need(math.isfinite(value), where, "%s is %r" % (name, value))


def right_verdict(row):
    if row["target"] is None or row["ratio"] is None:
        return ""
    met = (row["ratio"] <= row["target"] if row["sense"] == "<=" else
           row["ratio"] >= row["target"])
    return "met" if met else "missed"


def check_row(row, where):
    check_shape(row, ROW, where)
    need(row["question"].strip(), where, "nothing was asked")
    need(row["turns"] > 0, where, "no turns")
    need((row["target"] is not None) == (row["sense"] in ("<=", ">=")) and
         row["sense"] in ("<=", ">=", ""), where, "a target without a sense")
    need(row["verdict"] == right_verdict(row), where,
         "%r is the wrong verdict" % row["verdict"])


def check_point(point, where):
    check_shape(point, POINT, where)
    need(point["plot"] in [plot.name for plot in PLOTS], where,
         "no plot has the name %s" % point["plot"])


def sort_out(objects):
    """Rows, points and omissions of (where, object) pairs, all of them right."""
    found = {"rows": [], "points": [], "omissions": []}
    for where, each in objects:
        need(isinstance(each, dict), where, "no object")
        if "plot" in each:
            check_point(each, where)
            found["points"].append(each)
        elif "left_out" in each:
            check_shape(each, OMISSION, where)
            if each not in found["omissions"]:
                found["omissions"].append(each)
        else:
            check_row(each, where)
            found["rows"].append(each)
    questions = [row["question"] for row in found["rows"]]
    for question in questions:
        need(questions.count(question) == 1, "results",
             "%s is asked twice" % question)
    need(questions, "results", "nothing was measured")
    return found


def parse(text, where):
    try:
        return json.loads(text)
    except ValueError as error:
        raise Broken("%s: %s" % (where, error)) from error


def of_json(path):
    """What --json wrote."""
    with open(path, encoding="utf-8") as file:
        whole = parse(file.read(), path)
    need(isinstance(whole, dict) and
         set(whole) == {"facts", "rows", "points", "omissions"} and
         isinstance(whole["facts"], dict), path, "it has other members")
    found = sort_out(("%s: %s %d" % (path, kind, number), each)
                     for kind in ("rows", "points", "omissions")
                     for number, each in enumerate(whole[kind]))
    found["facts"] = whole["facts"]
    return found


def of_lines(path):
    """What the benchmarks wrote."""
    objects = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            where = "%s:%d" % (path, number)
            need(line.endswith("\n"), where, "the line is cut short")
            objects.append((where, parse(line, where)))
    found = sort_out(objects)
    found["facts"] = {}
    return found


def join(old, new):
    """All of the new, and of the old what the new has not. The facts are
    those of the old run: rows of another kind of run say so."""
    def key(kind, each):
        return {"rows": lambda: each["question"],
                "points": lambda: (each["plot"], each["line"], each["x"]),
                "omissions": lambda: each["left_out"]}[kind]()

    for name in set(old["facts"]) & set(MACHINE[:-1]):
        need(old["facts"][name] == new["facts"].get(name), "--add",
             "the %s was another one" % name)
    joined = {"facts": {**new["facts"], **old["facts"]}}
    for kind in ("rows", "points", "omissions"):
        fresh = {key(kind, each): each for each in new[kind]}
        joined[kind] = [fresh.pop(key(kind, each), each) for each in old[kind]]
        joined[kind] += fresh.values()
    # What begins the question of a row is no longer left out.
    joined["omissions"] = [
        each for each in joined["omissions"]
        if not any(row["question"].startswith(each["left_out"])
                   for row in joined["rows"])]
    return joined


# --- tables -----------------------------------------------------------------


def with_unit(value, unit):
    if value is None:
        return "-"
    text = "%.2f" % value if abs(value) < 100 else "%.0f" % value
    return text + ("" if unit == "x" else " ") + unit


def cells(row):
    target = "-"
    if row["target"] is not None:
        target = row["sense"] + " " + with_unit(row["target"], row["unit"])
    return (row["question"], row["measured"] or "-", row["against"] or "-",
            with_unit(row["ratio"], row["unit"]), target, str(row["turns"]),
            row["verdict"])


def print_table(rows):
    lines = [HEADS] + [cells(row) for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADS))]
    for line in lines:
        print("  ".join(cell.ljust(width)
                        for cell, width in zip(line, widths)).rstrip())


def pretty(text):
    text = re.sub(r"(?<=\d)x\b", "", text)
    text = re.sub(r"(?<=\d) us\b", " µs", text)
    text = re.sub(r"\d{4,}(?![\d.])",
                  lambda found: "{:,}".format(int(found[0])), text)
    return (text.replace("<=", "≤").replace(">=", "≥").replace("|", "\\|"))


def markdown(found):
    lines = ["| question | agentwal | against | ratio | wanted | turns |",
             "|---|---|---|---|---|---|"]
    for row in found["rows"]:
        if row["target"] is None:
            continue
        question, measured, against, ratio, target, turns, verdict = cells(row)
        if row["run"] != found["facts"].get("run", row["run"]):
            question += " (--%s)" % row["run"]
        if verdict != "met":
            target = "**%s, %s**" % (target, verdict or "not measured")
        lines.append("| %s |" % " | ".join(
            pretty(cell) for cell in
            (question, measured, against, ratio, target, turns)))
    return "\n".join(lines) + "\n"


def machine(facts):
    return ", ".join(facts[name] for name in MACHINE if name in facts)


def page_part(found):
    facts = found["facts"]
    made = machine(facts)
    if "sync_us" in facts:
        made += "; a small write and its sync took %s µs" % facts["sync_us"]
    if "run" in facts:
        made += "; `bench/run.sh%s`" % (
            "" if facts["run"] == "normal" else " --" + facts["run"])
    return "%s.\n\n%s" % (made, markdown(found))


def fill(text, part):
    begin, end = text.find(BEGIN), text.find(END)
    need(text.count(BEGIN) == 1 and text.count(END) == 1 and begin < end,
         "page", "it has not one pair of marks")
    return text[:begin + len(BEGIN)] + "\n" + part + text[end:]


# --- writing ----------------------------------------------------------------


def show(found):
    aims = [row for row in found["rows"] if row["target"] is not None]
    print_table(found["rows"])
    if aims:
        print("\nThe rows that have a target:\n")
        print_table(aims)
        print("\n%d met, %d missed, %d not measured" %
              tuple(sum(row["verdict"] == word for row in aims)
                    for word in ("met", "missed", "")))
    for each in found["omissions"]:
        print("Left out: %s: %s" % (each["left_out"], each["why"]))


def drawings(found):
    """Text of each plot that has points, by file name."""
    made = {}
    for plot in PLOTS:
        own = [point for point in found["points"]
               if point["plot"] == plot.name and point["y"]]
        if own:
            made[plot.name + ".svg"] = draw(plot, own, machine(found["facts"]))
    return made


def as_json(found):
    """A line for each object, so that two runs can be compared by lines."""
    made = ['{"facts": ' + json.dumps(found["facts"], ensure_ascii=False)]
    for kind in ("rows", "points", "omissions"):
        lines = [json.dumps(each, ensure_ascii=False) for each in found[kind]]
        made.append('"%s": [\n%s\n]' % (kind, ",\n".join(lines)))
    return ",\n".join(made) + "}\n"


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def write_all(given, found):
    if given.page:
        with open(given.page, encoding="utf-8") as file:
            page = fill(file.read(), page_part(found))
        write(given.page, page)
    if given.json:
        write(given.json, as_json(found))
    if given.markdown:
        write(given.markdown, markdown(found))
    if given.plots:
        os.makedirs(given.plots, exist_ok=True)
        for name, text in drawings(found).items():
            write(os.path.join(given.plots, name), text)


def read_arguments():
    parser = argparse.ArgumentParser(
        description="Shows what the benchmarks found.")
    parser.add_argument("results")
    for name in ("--json", "--markdown", "--plots", "--page"):
        parser.add_argument(name)
    parser.add_argument("--add", action="store_true")
    parser.add_argument("--fact", action="append", default=[])
    given = parser.parse_args()
    if given.add and not given.json:
        parser.error("--add needs --json")
    if not all("=" in fact for fact in given.fact):
        parser.error("a fact is NAME=VALUE")
    return given


def main():
    given = read_arguments()
    try:
        found = (of_json if given.results.endswith(".json") else of_lines)(
            given.results)
        found["facts"].update(fact.split("=", 1) for fact in given.fact)
        if given.add and os.path.exists(given.json):
            found = join(of_json(given.json), found)
        show(found)
        write_all(given, found)
    except (Broken, OSError) as error:
        sys.exit("report.py: %s" % error)


if __name__ == "__main__":
    main()
