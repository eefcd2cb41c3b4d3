#!/usr/bin/env python3
"""Each relative link of a document leads to a file and a heading that exist,
and so does each path of a test that a document names."""
import glob
import os
import re
import sys

ROOT = os.environ.get("AGENTWAL_SOURCE") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

LINK = re.compile(r"\[[^]]*\]\(([^)\s]*)\)")
TEST = re.compile(r"`(tests/[\w/.-]+)`")


def read(path):
    """The text without its fenced and indented blocks."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"^```.*?^```", "", file.read(), flags=re.M | re.S)
    return re.sub(r"^    .*", "", text, flags=re.M)


def anchors(path):
    """The anchors of the headings, as GitHub makes them."""
    for heading in re.findall(r"^#+ (.*)", read(path), re.M):
        heading = re.sub(r"[^\w\- ]", "", heading.strip().lower())
        yield heading.replace(" ", "-")


def main():
    faults, count = [], 0
    documents = [path for pattern in (
        "*.md", "docs/*.md", "docs/engine/*.md", "examples/*.md",
        "bindings/node/*.md", "bindings/node/docs/*.md", "bindings/python/*.md",
        "bindings/python/docs/*.md")
                 for path in glob.glob(os.path.join(ROOT, pattern))]
    for document in sorted(documents):
        text, here = read(document), os.path.dirname(document)
        for link in LINK.findall(text):
            count += 1
            path, _, anchor = link.partition("#")
            target = os.path.join(here, path) if path else document
            if re.match(r"[a-z]+:", link):
                continue
            if not os.path.exists(target):
                faults.append("%s: no file %s" % (document, path))
            elif anchor and anchor not in anchors(target):
                faults.append("%s: no heading %s" % (document, link))
        for path in TEST.findall(text):
            count += 1
            if not os.path.exists(os.path.join(ROOT, path)):
                faults.append("%s: no file %s" % (document, path))
    print("\n".join(faults + ["%d links, %d faults" % (count, len(faults))]))
    return 1 if faults or not count else 0


sys.exit(main())
