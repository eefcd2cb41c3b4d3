"""JSON, as the log has it: strict, compact, UTF-8."""

from __future__ import annotations

import json
from typing import Any, Callable, Iterable, NoReturn

from ._errors import BadJSON, InvalidType


def _refuse(constant: str) -> NoReturn:
    raise ValueError("JSON has no %s" % constant)


_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
# Half a surrogate pair is no UTF-8; as an escape it is JSON.
_ascii_encoder = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_decoder = json.JSONDecoder(parse_constant=_refuse)


def _encode_pieces() -> Callable[[Any, int], Iterable[str]]:
    """What _encoder makes anew for every value, made once: half of the time of a short one.

    json does not document c_make_encoder: without it, _encoder is used. Circular references are
    not looked for and end in a RecursionError."""
    try:
        pieces: Callable[[Any, int], Iterable[str]] = json.encoder.c_make_encoder(  # type: ignore
            None, _encoder.default, json.encoder.encode_basestring,  # type: ignore
            None, _encoder.key_separator, _encoder.item_separator, False, False, False)
    except (AttributeError, TypeError):
        return lambda value, level: (_encoder.encode(value),)
    return pieces


_pieces = _encode_pieces()


def _encode(value: Any) -> str:
    try:
        return "".join(_pieces(value, 0))
    except (TypeError, ValueError, RecursionError):
        return _encoder.encode(value)  # It says what is wrong.


def encode(value: Any, name: str = "payload") -> str | bytes:
    """The value as JSON text. Raises BadJSON or InvalidType."""
    try:
        text = _encode(value)
        if text.isascii():
            return text
        try:
            return text.encode()
        except UnicodeEncodeError:
            return _ascii_encoder.encode(value)
    except TypeError as error:
        raise InvalidType("%s: %s" % (name, error)) from error
    except ValueError as error:
        raise BadJSON("%s: %s" % (name, error)) from error
    except RecursionError as error:
        raise BadJSON("%s: nested too deeply for Python's json" % name) from error


def decode(text: str) -> Any:
    """The value of JSON text; the extension calls it. Raises BadJSON."""
    try:
        return _decoder.decode(text)
    except ValueError as error:
        raise BadJSON("not JSON that Python can represent: %s" % error) from error
    except RecursionError as error:
        raise BadJSON("nested too deeply for Python's json") from error
