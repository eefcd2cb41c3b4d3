"""What the classes that hold a handle of the library share."""

from __future__ import annotations

from typing import NoReturn

from ._errors import InvalidType


class Unpicklable:
    """Base of the classes whose objects belong to one process."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise InvalidType("a %s cannot be pickled or copied: it is a handle of this process; pass "
                          "the path of the store and ids, and open them there" %
                          type(self).__name__)
