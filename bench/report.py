#!/usr/bin/env python3
"""report.py RESULTS [--json FILE] [--markdown FILE] [--plots FOLDER]
[--fact NAME=VALUE]...

Prints what the benchmarks found as a table, then the rows that have a target;
writes all of it as JSON, those rows as Markdown, and the plots as SVG. RESULTS holds an object of
JSON on each line: rows of the table and points of the plots.
"""
import argparse
import json
import os

from plots import PLOTS, draw

HEADS = ("question", "measured", "against", "ratio", "target", "")


def read_results(path):
    rows, points = [], []
    with open(path, encoding="utf-8") as file:
        for line in file:
            found = json.loads(line)
            (points if "plot" in found else rows).append(found)
    return rows, points


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
            with_unit(row["ratio"], row["unit"]), target, row["verdict"])


def print_table(rows):
    lines = [HEADS] + [cells(row) for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADS))]
    for line in lines:
        print("  ".join(cell.ljust(width)
                        for cell, width in zip(line, widths)).rstrip())


def write_markdown(path, rows):
    with open(path, "w", encoding="utf-8") as file:
        file.write("| question | agentwal | against | ratio | wanted |\n"
                   "|---|---|---|---|---|\n")
        for row in rows:
            question, measured, against, ratio, target, verdict = cells(row)
            if verdict == "missed":
                target = "**%s, missed**" % target
            line = " | ".join((question, measured, against, ratio, target))
            file.write("| %s |\n" % line.replace("<=", "≤").replace(">=", "≥"))


def main():
    parser = argparse.ArgumentParser(description="Shows what was measured.")
    parser.add_argument("results")
    parser.add_argument("--json")
    parser.add_argument("--markdown")
    parser.add_argument("--plots")
    parser.add_argument("--fact", action="append", default=[])
    given = parser.parse_args()
    rows, points = read_results(given.results)
    facts = dict(fact.split("=", 1) for fact in given.fact)
    aims = [row for row in rows if row["target"] is not None]

    print_table(rows)
    print("\nThe rows that have a target:\n")
    print_table(aims)
    print("\n%d met, %d missed" %
          tuple(sum(row["verdict"] == word for row in aims)
                for word in ("met", "missed")))
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump({"facts": facts, "rows": rows, "points": points}, file,
                      indent=1)
            file.write("\n")
    if given.markdown:
        write_markdown(given.markdown, aims)
    if given.plots:
        os.makedirs(given.plots, exist_ok=True)
        note = ", ".join(facts[name] for name in
                         ("processor", "filesystem", "linux", "date")
                         if name in facts)
        for plot in PLOTS:
            own = [point for point in points if point["plot"] == plot.name]
            if own:
                path = os.path.join(given.plots, plot.name + ".svg")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(draw(plot, own, note))


if __name__ == "__main__":
    main()
