"""Names that are made from those of another program, as the package for Node.js makes them."""

from __future__ import annotations

import hashlib
import json
import re

from ._errors import Invalid, TooBig, wrong_type

SURROGATE = re.compile("[\ud800-\udfff]")
_UNSAFE = re.compile("[\x00-\x1f\x7f%\ud800-\udfff]")
_ID_BYTES = 255


def escape_surrogates(text: str) -> str:
    """JSON text whose halves of surrogate pairs are escapes, as in JavaScript."""
    return SURROGATE.sub(lambda found: "\\u%04x" % ord(found[0]), text)


def size(text: str) -> int:
    """Bytes of UTF-8."""
    return len(text.encode("utf-8", "surrogatepass"))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def digest_of(text: str) -> str:
    """Distinct for any two strings, also those with half a surrogate pair."""
    return digest(escape_surrogates(json.dumps(text, ensure_ascii=False)))


def session_id(kind: str, name: str) -> str:
    """The id of the session that has a name: "KIND/NAME", or "KIND#DIGEST" when that is over 255
    bytes. The kind has neither."""
    text = "%s/%s" % (kind, _UNSAFE.sub(lambda found: "%%%02X" % ord(found[0]), name))
    return text if size(text) <= _ID_BYTES else "%s#%s" % (kind, digest_of(name))


def check_name(what: str, value: object, limit: int = 4096) -> str:
    """Returns a name after checking it."""
    if not isinstance(value, str):
        raise wrong_type(what, "a str", value)
    if value == "":
        raise Invalid("%s: a name has characters" % what)
    if size(value) > limit:
        raise TooBig("%s: a name has at most %d bytes" % (what, limit))
    return value
