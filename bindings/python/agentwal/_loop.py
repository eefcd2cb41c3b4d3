"""The event loop of a call."""

from __future__ import annotations

import asyncio

from ._errors import Invalid


def running_loop() -> asyncio.AbstractEventLoop:
    """The running loop of asyncio. Raises Invalid without one, as under trio, before anything is
    begun."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise Invalid("no event loop of asyncio is running: the call needs one, and does not run "
                      "under trio") from None
