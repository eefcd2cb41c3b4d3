#!/usr/bin/env python3
"""The page is at most 150 kB, in the order of its list every script once, and
without what its policy forbids or what makes markup of text."""
import glob
import os
import re
import sys

ROOT = os.environ.get("AGENTWAL_SOURCE") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SIZE = 150_000
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function"
    r"|setAttribute\('style'|createContextualFragment|srcdoc"
    r"|(?<!channel\.)(?<!channel\?\.)postMessage")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def main():
    faults = []
    folder = os.path.join(ROOT, "tools", "page")
    parts = [path for name in ("*.html", "*.css", "*.js")
             for path in glob.glob(os.path.join(folder, name))]
    size = sum(os.path.getsize(path) for path in parts)
    if size > SIZE:
        faults.append("the page has %d bytes, more than %d" % (size, SIZE))
    listed = re.search(r"set\(page_scripts ([^)]*)\)",
                       read(os.path.join(ROOT, "CMakeLists.txt"))).group(1).split()
    found = sorted(os.path.basename(path) for path in parts if path.endswith(".js"))
    if sorted(listed) != found:
        faults.append("CMakeLists.txt lists %r, the folder has %r" % (sorted(listed), found))
    for path in parts:
        for match in FORBIDDEN.finditer(read(path)):
            faults.append("%s: %s" % (os.path.relpath(path, ROOT), match.group()))
    print("%d bytes, %d faults" % (size, len(faults)))
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


main()
