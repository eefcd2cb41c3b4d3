"""Writes session files, and the copies that clients make of them.

    make claude|codex|pi SIZE SEED OUT [WORDS] a session of at least SIZE bytes,
                                               in texts of 1 to WORDS words
    copy claude|codex|pi SEED IN OUT [LINES]   a client's copy of it
    time claude|codex|pi SEED FILE             other times, as if written again
    more claude|codex|pi SEED FILE ROWS        goes on in a file
"""
import json
import random
import sys
import uuid

WORDS = [format(i * 2654435761 % 2**32, "x") for i in range(3000)]


def dump(row):
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False) + "\n"


class Maker:
    def __init__(self, style, seed):
        self.style = style
        self.pick = random.Random(seed)
        self.count = 0
        self.words = 120
        self.session = self.new()
        self.last = None

    def new(self):
        return str(uuid.UUID(int=self.pick.getrandbits(128), version=4))

    def text(self):
        count = self.pick.randint(1, self.words)
        return " ".join(self.pick.choices(WORDS, k=count))

    def time(self):
        self.count += 1
        return "2026-01-01T%02d:%02d:%02d.%03dZ" % (
            self.count // 3600000 % 24, self.count // 60000 % 60,
            self.count // 1000 % 60, self.count % 1000)

    def header(self, origin=None):
        if self.style == "codex":
            payload = {"id": self.session, "timestamp": self.time(),
                       "cwd": "/x", "originator": "codex",
                       "cli_version": "1", "instructions": self.text()}
            if origin:
                payload["forked_from_id"] = origin
            return dump({"timestamp": self.time(), "type": "session_meta",
                         "payload": payload})
        if self.style == "pi":
            row = {"type": "session", "version": 3, "id": self.session,
                   "timestamp": self.time(), "cwd": "/x"}
            if origin:
                row["parentSession"] = "/y/2026-01-01_%s.jsonl" % origin
            return dump(row)
        return ""

    def row(self):
        if self.style == "codex":
            return dump({"timestamp": self.time(), "type": "response_item",
                         "payload": {"type": "message", "role": "user",
                                     "content": [{"type": "input_text",
                                                  "text": self.text()}]}})
        if self.style == "pi":
            name = "%08x" % self.pick.getrandbits(32)
            row = {"type": "message", "id": name, "parentId": self.last,
                   "timestamp": self.time(),
                   "message": {"role": "user", "content": self.text()}}
            self.last = name
            return dump(row)
        if self.pick.random() < 0.1:
            return dump({"type": "last-prompt", "lastPrompt": self.text(),
                         "sessionId": self.session})
        name = self.new()
        row = {"parentUuid": self.last, "isSidechain": False, "cwd": "/x",
               "sessionId": self.session, "version": "2", "type": "user",
               "message": {"role": "user", "content": self.text()},
               "uuid": name, "timestamp": self.time()}
        # Some tools are called at once: their results share a parent.
        if self.pick.random() < 0.8:
            self.last = name
        return dump(row)


def copy(maker, lines):
    names = {}
    if maker.style != "claude":
        origin = json.loads(lines[0])
        origin = origin["payload"] if maker.style == "codex" else origin
        yield maker.header(origin["id"])
        for line in lines if maker.style == "codex" else lines[1:]:
            yield line
        return
    for line in lines:
        row = json.loads(line)
        origin = row["sessionId"]
        row["sessionId"] = maker.session
        if row.get("parentUuid"):
            row["parentUuid"] = names[row["parentUuid"]]
        if "uuid" in row:
            names[row["uuid"]] = maker.new()
            row["forkedFrom"] = {"sessionId": origin,
                                 "messageUuid": row["uuid"]}
            row["uuid"] = names[row["uuid"]]
        yield dump(row)


def main(command, style, *rest):
    if command == "make":
        size, seed, out = int(rest[0]), int(rest[1]), rest[2]
        maker = Maker(style, seed)
        if len(rest) > 3:
            maker.words = int(rest[3])
        with open(out, "w", encoding="utf-8") as file:
            file.write(maker.header())
            while file.tell() < size:
                file.write(maker.row())
    elif command == "copy":
        maker = Maker(style, int(rest[0]))
        with open(rest[1], encoding="utf-8", newline="\n") as file:
            lines = file.readlines()
        if len(rest) > 3:
            lines = lines[:int(rest[3])]
        with open(rest[2], "w", encoding="utf-8", newline="\n") as file:
            file.writelines(copy(maker, lines))
    elif command == "time":
        maker = Maker(style, int(rest[0]))
        with open(rest[1], encoding="utf-8", newline="\n") as file:
            rows = [json.loads(line) for line in file]
        with open(rest[1], "w", encoding="utf-8", newline="\n") as file:
            for row in rows:
                maker.count += maker.pick.randint(1, 3)
                row["timestamp"] = maker.time()
                file.write(dump(row))
    else:
        maker = Maker(style, int(rest[0]))
        with open(rest[1], encoding="utf-8", newline="\n") as file:
            rows = [json.loads(line) for line in file]
        for row in rows:
            maker.session = row.get("sessionId", maker.session)
            maker.last = row.get("uuid", row.get("id", maker.last))
        with open(rest[1], "a", encoding="utf-8", newline="\n") as file:
            for _ in range(int(rest[2])):
                file.write(maker.row())


main(*sys.argv[1:])
