"""What the classes that hold a handle of the library share."""

from __future__ import annotations

from types import TracebackType
from typing import NoReturn, Self

from ._errors import InvalidType


class Unpicklable:
    """Base of the classes whose objects belong to one process."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise InvalidType("a %s cannot be pickled or copied: it is a handle of this process; pass "
                          "the path of the store and ids, and open them there" %
                          type(self).__name__)


class Closing(Unpicklable):
    """Base of context managers that close the object."""

    __slots__ = ()

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()


class AsyncClosing(Unpicklable):
    """The same in asyncio."""

    __slots__ = ()

    async def close(self) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None,
                        traceback: TracebackType | None) -> None:
        await self.close()
