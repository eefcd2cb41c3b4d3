"""Sessions of clients as the clients leave them, and a store with one of them
and a folder of its views."""
import glob
import json
import os
import subprocess

TOOLS = os.environ["WALBIN"]
CLAUDE = "11111111-1111-4111-8111-111111111111"
TIME = "2025-09-29T10:00:0%d.000Z"


def run(*command, code=0):
    done = subprocess.run([os.path.join(TOOLS, command[0]), *command[1:]],
                          capture_output=True, check=False)
    assert done.returncode == code, (command, done.returncode, done.stderr)
    return done.stdout


def rows_of(output):
    return [json.loads(line) for line in output.splitlines()]


def write(path, *rows):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")


def uuid(number):
    return "00000000-0000-4000-8000-%012d" % number


def claude_row(number, role, text, parent=None):
    content = text if role == "user" else [{"type": "text", "text": text}]
    return {"parentUuid": uuid(parent) if parent else None,
            "isSidechain": False, "cwd": "/w", "sessionId": CLAUDE,
            "type": role, "uuid": uuid(number), "timestamp": TIME % number,
            "message": {"role": role, "content": content, "id": "m%d" % number,
                        "model": "claude-x", "type": "message"}}


def claude_session(home):
    """A transcript as today's CLI leaves it: it ends in rows of metadata."""
    write(home + "/projects/-w/" + CLAUDE + ".jsonl",
          claude_row(1, "user", "go"), claude_row(2, "assistant", "gone", 1),
          {"type": "last-prompt", "lastPrompt": "go", "leafUuid": uuid(2),
           "sessionId": CLAUDE})


def pi_entry(name, parent, text, role="user"):
    return {"type": "message", "id": name, "parentId": parent,
            "timestamp": "2026-03-01T00:00:00.000Z",
            "message": {"role": role, "timestamp": 1,
                        "content": [{"type": "text", "text": text}]}}


def read(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def one(pattern):
    found = glob.glob(pattern, recursive=True)
    assert len(found) == 1, (pattern, found)
    return found[0]


def texts(path):
    """The texts of a pi file from its root to its leaf, the last line."""
    rows = {row["id"]: row for row in read(path)}
    at, shown = read(path)[-1], []
    while at is not None:
        content = at.get("message", {}).get("content", [])
        shown += [block["text"] for block in content if "text" in block][::-1]
        at = rows.get(at.get("parentId"))
    return shown[::-1]


class Place:
    """A store with a session, and a folder of views."""

    def __init__(self, work, make):
        self.store = work + "/store"
        self.home = work + "/home"
        self.out = work + "/out"
        run("agentwal", "--store", self.store, "init")
        make(self.home)
        row = self.import_(self.home)[0]
        self.session = row["sessionId"]

    def import_(self, path=None, code=0):
        return rows_of(run("agentwal", "--store", self.store, "import", "--json",
                           path or self.out, code=code))

    def export(self, dialect, code=0):
        return rows_of(run("agentwal", "--store", self.store, "export", "--json",
                           "--dialect", dialect, "--session", self.session,
                           self.out, code=code))

    def append(self, text):
        entry = {"type": "message", "payload": {"role": "user",
                                                "content": text}}
        subprocess.run([os.path.join(TOOLS, "agentwal"), "--store", self.store,
                        "append", self.session], input=json.dumps(entry).encode(),
                       check=True, capture_output=True)

    def sessions(self):
        rows = rows_of(run("agentwal", "--store", self.store, "list", "--json"))
        return [row for row in rows if not row["sessionId"].startswith("files-")]


SES = "ses_7fffffffffffAAAAAAAAAAAAAA"


def message_id(number):
    return "msg_b7ca990%05dAAAAAAAAAAAAAA" % number


def opencode_message(storage, session, number, role, text, **more):
    name = message_id(number)
    info = {"id": name, "sessionID": session, "role": role,
            "time": {"created": 1767323046000 + number}, **more}
    if role == "user":
        info.update(agent="build", model={"providerID": "p", "modelID": "m"})
    part = {"id": name.replace("msg_", "prt_"), "sessionID": session,
            "messageID": name, "type": "text", "text": text}
    for kind, folder, value in (("message", session, info),
                                ("part", name, part)):
        path = os.path.join(storage, kind, folder, value["id"] + ".json")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(value, file, indent=2)


def opencode_session(home):
    path = home + "/storage/session/p1/" + SES + ".json"
    os.makedirs(os.path.dirname(path))
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"id": SES, "projectID": "p1", "directory": "/w",
                   "version": "1.0.0", "slug": "s", "title": "Its title",
                   "time": {"created": 1767323045000,
                            "updated": 1767323054000}}, file)
    opencode_message(home + "/storage", SES, 1, "user", "go")
    opencode_message(home + "/storage", SES, 2, "assistant", "gone",
                     finish="stop")


def opencode_texts(out):
    session = json.load(open(one(out + "/storage/session/*/*.json"),
                             encoding="utf-8"))
    shown = []
    folder = out + "/storage/message/" + session["id"] + "/*.json"
    for path in sorted(glob.glob(folder)):
        name = os.path.basename(path)[:-5]
        for part in sorted(glob.glob(out + "/storage/part/" + name + "/*")):
            shown.append(json.load(open(part, encoding="utf-8")).get("text"))
    return session, shown
