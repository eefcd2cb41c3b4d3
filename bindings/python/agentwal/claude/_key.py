"""Which session of a store has the transcript of a key.

A key is {project_key, session_id, subpath}. The session's `source` identifies it: it names the file
that Claude Code keeps the transcript in, as an import of that file does, so that a mirrored and an
imported session are the same one:

    claude 0 projects/PROJECTKEY/SESSIONID.jsonl
    claude 0 projects/PROJECTKEY/SESSIONID/SUBPATH.jsonl

The id is the session id, or a name derived from it; where another key has that id, a digest of the
source follows it. Parts that cannot be part of a path are percent-encoded, long ones are a digest,
and metadata has the text. bindings/node/lib/claude/key.js makes the same names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Mapping

from .._errors import Invalid, wrong_type
from .._info import SessionInfo
from .._names import SURROGATE, digest, digest_of, size

_ID_BYTES = 160  # Of a session id that is the store's, so that a subpath has room after it.
_ID_BYTES_MAX = 255
_PART_BYTES = 1000  # Of a project key or session id within a source.
_SUBPATH_BYTES = 1500
_PROJECT_BYTES = 1024
_FOLDER_UNITS = 200  # Of a folder of Claude Code, before its hash.
_SUFFIX = ".jsonl"
_CONTROL = re.compile("[\x00-\x1f\x7f]")


def has_lone_surrogate(text: str) -> bool:
    return SURROGATE.search(text) is not None


def _percent(found: re.Match[str]) -> str:
    return "".join("%%%02X" % byte for byte in found[0].encode("utf-8", "surrogatepass"))


def _encode_part(text: str) -> str:
    """Percent-encodes what a part of a path cannot have, injectively."""
    if text == "":
        return "%"
    return re.sub("^\\.+|[\x00-\x1f\x7f%/\\\\]|[\ud800-\udfff]", _percent, text)


def decode_part(part: str) -> str:
    """The reverse of _encode_part; what it did not make is returned unchanged."""
    if part == "%":
        return ""
    if re.search("%(?![0-9A-F]{2})", part):
        return part
    return re.sub("(?:%[0-9A-F]{2})+", _decode_run, part)


def _decode_run(found: re.Match[str]) -> str:
    run = bytes.fromhex(found[0].replace("%", ""))
    if len(run) % 3 == 0 and run[0] == 0xED and run[1] >= 0xA0:
        return "".join(chr((run[i] & 15) << 12 | (run[i + 1] & 63) << 6 | run[i + 2] & 63)
                       for i in range(0, len(run), 3))
    return run.decode("utf-8", "replace")


def is_digest_part(part: str) -> bool:
    return part.startswith("%~")


def _shorten(encoded: str, text: str, limit: int) -> str:
    return "%~" + digest_of(text) if size(encoded) > limit else encoded


def _key_part(text: str) -> str:
    return _shorten(_encode_part(text), text, _PART_BYTES)


def _escape_source(path: str) -> str:
    """Escapes a path as the sources of imports are."""
    return re.sub("[%\x00-\x1f\x7f]", lambda found: "%%%02X" % ord(found[0]), path)


def _unescape_source(text: str) -> str:
    return re.sub("%([0-9A-F]{2})", lambda found: chr(int(found[1], 16)), text)


def folder_of(cwd: str) -> str:
    """The folder that Claude Code keeps the sessions of a directory in."""
    encoded = cwd.encode("utf-16-le", "surrogatepass")
    units = [encoded[i] | encoded[i + 1] << 8 for i in range(0, len(encoded), 2)]
    folder = "".join(chr(unit) if unit < 128 and chr(unit).isalnum() else "-" for unit in units)
    if len(units) <= _FOLDER_UNITS:
        return folder
    number = 0
    for unit in units:
        number = (number * 31 + unit) & 0xFFFFFFFF
    return "%s-%s" % (folder[:_FOLDER_UNITS], _base36(min(number, (1 << 32) - number)))


def _base36(number: int) -> str:
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
        if number == 0:
            return digits


def project_text(project_key: str) -> str:
    """A project key as the text of a session's `project`."""
    if has_lone_surrogate(project_key) or size(project_key) > _PROJECT_BYTES:
        return "~" + digest_of(project_key)
    return project_key


def _is_usable_id(id: str, limit: int) -> bool:
    return (id != "" and id[0] != "~" and size(id) <= limit and not _CONTROL.search(id)
            and not has_lone_surrogate(id))


def id_of(text: str, limit: int = _ID_BYTES_MAX) -> str:
    """The text as an id of the log, or a digest of it."""
    return text if _is_usable_id(text, limit) else "~" + digest_of(text)


def _sub_ids(main_id: str, subpath: str) -> list[str]:
    agent = re.fullmatch("subagents/(?:.*/)?(agent-[^/]+)", subpath, re.S)
    ids = ["%s~%s" % (main_id, agent[1])] if agent else []
    ids.append("%s/%s" % (main_id, subpath))
    usable = [id for id in ids if _is_usable_id(id, _ID_BYTES_MAX - 17)]
    return usable + ["%s/~%s" % (main_id, digest_of(subpath))]


@dataclass(frozen=True)
class Place:
    """The encoded parts of a session's key. `project` is None where the source does not name one:
    in a fork, and for an import of one file."""

    project: str | None
    session: str
    rest: str


class Key:
    """Where a transcript is in a store."""

    def __init__(self, key: Mapping[str, Any]) -> None:
        _check(key)
        self.project_key: str = key["project_key"]
        self.session_id: str = key["session_id"]
        self.subpath: str | None = key.get("subpath")
        self.is_main = self.subpath is None
        self.project = _key_part(self.project_key)
        self.session = _key_part(self.session_id)
        self.rest = ""
        if self.subpath is not None:
            encoded = "/".join(map(_encode_part, self.subpath.split("/")))
            self.rest = _shorten(encoded, self.subpath, _SUBPATH_BYTES)
        path = ["projects", self.project, self.session] + ([] if self.is_main else [self.rest])
        self.source = "claude 0 " + _escape_source("/".join(path) + _SUFFIX)
        self.main_id = id_of(self.session_id, _ID_BYTES)
        ids = [self.main_id] if self.subpath is None else _sub_ids(self.main_id, self.subpath)
        self.ids = ids + ["%s@%s" % (ids[0], digest(self.source)[:16])]
        """Ids that its session may have, the first one that is free."""
        self.group = "%s/%s" % (self.project, self.session)
        """The session of the main transcript."""

    def to_sdk(self) -> dict[str, str]:
        """The key as the SDK has it."""
        key = {"project_key": self.project_key, "session_id": self.session_id}
        if self.subpath is not None:
            key["subpath"] = self.subpath
        return key

    def metadata(self) -> dict[str, Any] | None:
        """Texts of which the source has a digest, for the session's metadata."""
        names: dict[str, Any] = {}
        if is_digest_part(self.session):
            names["sessionId"] = self.session_id
        if is_digest_part(self.rest):
            names["subpath"] = self.subpath
        return {"claude": names} if names else None

    def matches(self, info: SessionInfo) -> bool:
        """Whether the session of this info is the one of the key."""
        place = place_of(info)
        return (place is not None and place.session == self.session and place.rest == self.rest
                and is_project(info, place, self.project_key))

    def contains(self, info: SessionInfo) -> bool:
        """Whether it is the session of the key, or of a subpath of the main key."""
        place = place_of(info)
        return (place is not None and place.session == self.session
                and (self.is_main or place.rest == self.rest)
                and is_project(info, place, self.project_key))


def is_project(info: SessionInfo, place: Place, project_key: str) -> bool:
    """Whether a project key is that of a session at a place."""
    if place.project is not None:
        return place.project == _key_part(project_key)
    return (info.project == project_text(project_key)
            or (info.project == "" and info.cwd != "" and folder_of(info.cwd) == project_key))


def names_other_project(source: str, project_key: str) -> bool:
    """Whether a look at the source is enough to say that it is not of the project: most sessions of
    a large store are not, and place_of() takes much longer."""
    return "/" in source and "%" not in source and project_key + "/" not in source


def place_of(info: SessionInfo) -> Place | None:
    """Where Claude Code has a session, or None when it did not write it."""
    if info.source == "":
        return Place(None, _key_part(info.id), "") if info.is_fork else None
    found = re.fullmatch("claude [0-9]+ (.+)", info.source)
    path = _unescape_source(found[1]) if found else ""
    if not path.endswith(_SUFFIX):
        return None
    parts = _below_projects(path[:-len(_SUFFIX)].split("/"))
    if len(parts) == 1:
        return Place(None, parts[0], "")
    return Place(parts[0], parts[1], "/".join(parts[2:]))


def _below_projects(parts: list[str]) -> list[str]:
    if parts[0] == "projects" and len(parts) > 2:
        return parts[1:]
    at = parts.index("subagents") if "subagents" in parts else -1
    return parts[at - 2:] if at >= 2 else parts[-2:]


def _check(key: Mapping[str, Any]) -> None:
    if not isinstance(key, Mapping):
        raise wrong_type("key", "a mapping", key)
    project_key, session_id, subpath = map(key.get, ("project_key", "session_id", "subpath"))
    for name, value in (("project_key", project_key), ("session_id", session_id)):
        if not isinstance(value, str):
            raise wrong_type(name, "a str", value)
    if subpath is not None and not isinstance(subpath, str):
        raise wrong_type("subpath", "a str", subpath)
    if session_id == "" or subpath == "":
        raise Invalid("session_id and subpath of a key have characters")
