#!/usr/bin/env python3
"""Each relative link of a document leads to a file and a heading that exist,
and so does each path of a test that a document names. Each page and each
section of SPEC.md that a source, a help text or a man page names exists."""
import glob
import os
import re
import subprocess
import sys

ROOT = os.environ.get("AGENTWAL_SOURCE") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

LINK = re.compile(r"\[[^]]*\]\(([^)\s]*)\)")
TEST = re.compile(r"`(tests/[\w/.-]+)`")
PAGE = re.compile(r"(?<!\w)((?:bindings/\w+/)?docs/[\w/-]+\.md)\b")
SECTION = re.compile(r"\bSPEC\.md,? ((?:\d+\.\d+(?:, | and | to )?)+)")


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


def sources():
    """The texts of all files but documents and planted bugs, by name."""
    names = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard"],
        check=True, capture_output=True, text=True).stdout.split("\n")
    for name in names:
        if re.search(r"\.(?:[ch]|cc|js|mjs|ts|py|sh|txt|in|1)$", name):
            path = os.path.join(ROOT, name)
            if os.path.isfile(path):
                with open(path, encoding="utf-8", errors="replace") as file:
                    yield name, file.read()


def named_by_sources():
    """Yields a fault, or None, for each page and section that they name."""
    with open(os.path.join(ROOT, "SPEC.md"), encoding="utf-8") as file:
        sections = set(re.findall(r"^#+ (\d+(?:\.\d+)?)\.? ", file.read(), re.M))
    for name, text in sources():
        package = re.match(r"(?:bindings/\w+)?", name).group()
        roots = (ROOT, os.path.join(ROOT, package),
                 os.path.join(ROOT, "bindings", "node"))
        for page in PAGE.findall(text):
            yield None if any(os.path.exists(os.path.join(root, page))
                              for root in roots) else \
                "%s: no page %s" % (name, page)
        for numbers in SECTION.findall(re.sub(r"\s+\*?\s*", " ", text)):
            for number in re.findall(r"\d+\.\d+", numbers):
                yield None if number in sections else \
                    "%s: SPEC.md has no section %s" % (name, number)


def main():
    faults, count = [], 0
    documents = [path for pattern in (
        "*.md", "docs/*.md", "examples/*.md",
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
    for fault in named_by_sources():
        count += 1
        faults += [fault] * (fault is not None)
    print("\n".join(faults + ["%d links, %d faults" % (count, len(faults))]))
    return 1 if faults or not count else 0


sys.exit(main())
