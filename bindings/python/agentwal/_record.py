"""Results of calls: objects with fields."""

from __future__ import annotations

from typing import Any, NoReturn


class Record:
    """Read-only fields by their names. A class lists them as annotations.

    In place of dataclasses, which take 2 ms each while the package is imported.
    """

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("%s.%s is read-only" % (type(self).__name__, name))

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("%s.%s is read-only" % (type(self).__name__, name))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.__dict__ == other.__dict__

    def __repr__(self) -> str:
        return "%s(%s)" % (type(self).__name__, ", ".join(
            "%s=%r" % field for field in self.__dict__.items()))
