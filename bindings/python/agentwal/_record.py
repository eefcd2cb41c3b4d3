"""Results of calls: objects with fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterable, NoReturn

if TYPE_CHECKING:
    from typing import ClassVar, Self


class Record:
    """Read-only fields by their names. A class lists them as annotations.

    In place of dataclasses, which take 2 ms each while the package is imported.
    """

    _makers: ClassVar[dict[str, Callable[[Any], Any]]] = {}
    """What makes fields of what the extension has for them."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    @classmethod
    def of(cls, row: dict[str, Any]) -> Self:
        """The record of a dict of the extension."""
        for name, make in cls._makers.items():
            row[name] = make(row[name])
        return cls(**row)

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


def tuples(make: Callable[[Any], Any] = lambda item: item) -> Callable[[Iterable[Any]], Any]:
    """A function that makes a tuple of what `make` makes of items."""
    return lambda items: tuple(map(make, items))


def values(row: dict[str, Any]) -> tuple[Any, ...]:
    """The fields of a dict."""
    return tuple(row.values())
