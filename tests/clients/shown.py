"""What the readers of this folder have in common.

A reader is a page for each client. Its sessions(root) yields what a person saw of each session
below a folder, read from the client's own files by the client's rules alone. An item is (kind,
value, shown): a text of the `user` or the `assistant`, a `call` (name, arguments), the text of a
`result`, an `image`; of the others, `thinking`, `command` and `note`, and of items that are not
shown, a program may show what it likes, but no `note` and no text that no person saw as a person's
words.
"""
import hashlib
import json
import os
from collections import namedtuple

# all: of all branches; live: of the branch that the client goes on with.
Session = namedtuple("Session", "id path all live")


def objects(path):
    """The JSON objects of the lines of a file."""
    with open(path, "rb") as file:
        for line in file.read().removeprefix(b"\xef\xbb\xbf").split(b"\n"):
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict):
                yield row


def jsonl(root):
    """(path, objects) of each *.jsonl below a folder, or of one file."""
    if os.path.isfile(root):
        yield root, list(objects(root))
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            if name.endswith(".jsonl"):
                path = os.path.join(folder, name)
                yield path, list(objects(path))


def image(source, shown=True):
    """An image by its bytes, or its address."""
    data = source.get("data") or source.get("url") or source.get("image_url") or ""
    if isinstance(data, dict):
        data = data.get("url", "")
    data = data.split("base64,")[-1]
    return "image", hashlib.sha256(data.encode()).hexdigest()[:16], shown


def result(content):
    """The items of a result: a text, or blocks."""
    if isinstance(content, str):
        yield "result", content, True
        return
    blocks = content if isinstance(content, list) else [content]
    blocks = [block for block in blocks if isinstance(block, dict)]
    yield "result", "".join(block.get("text") or "" for block in blocks), True
    for block in blocks:
        if block.get("type") in ("image", "input_image", "image_url"):
            yield image(block.get("source") or block)


def arguments(value):
    """Arguments, of which some clients write a text of JSON."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            pass
    if isinstance(value, dict) and set(value) == {"walconvArguments"}:
        return arguments(value["walconvArguments"])
    return {} if value in (None, "") else value
