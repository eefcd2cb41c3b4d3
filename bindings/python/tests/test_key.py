"""Keys of encrypted stores."""

from __future__ import annotations

import asyncio
import traceback

import pytest

import agentwal
from agentwal import Passphrase, Secret

SECRET = b"a secret of the tests, which nobody guesses"
TEXT = "what the session says"


def encrypt(path, key):
    """Makes an encrypted store with one session."""
    with agentwal.open(path, key=key) as store:
        store.create(id="s").append(TEXT)
        assert SECRET.decode() not in repr(store)
    return path


def payloads(path, **options):
    with agentwal.open(path, **options) as store:
        return [entry.payload for entry in store.session("s")]


def shown(error):
    """What a report of an exception shows, with the variables of the package's functions."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)
              if frame.f_code.co_filename != __file__]
    assert frames
    return "".join(map(repr, (error, error.__dict__, error.__context__,
                              *(frame.f_locals for frame in frames))))


def test_key__opens_the_store_that_was_created_with_it(tmp_path):
    path = encrypt(tmp_path / "store", Secret(SECRET))
    assert not any(TEXT.encode() in file.read_bytes() for file in path.rglob("*")
                   if file.is_file())
    for key in (Secret(SECRET), Secret(SECRET.decode())):
        assert payloads(path, key=key) == payloads(path, key=key, read_only=True) == [TEXT]
    assert agentwal.migrate(path, key=Secret(SECRET)).sessions == 0
    for wrong in (None, Secret(SECRET + b"."), Secret(b"short"), Secret(""), Passphrase("")):
        for call in (agentwal.open, agentwal.migrate):
            with pytest.raises(agentwal.KeyRefused) as caught:
                call(path, key=wrong)
            assert caught.value.code == "WAL_EKEY" and SECRET.decode() not in shown(caught.value)
    assert SECRET.decode() not in repr(Secret(SECRET)) + repr(Passphrase(SECRET.decode()))


def test_passphrase__opens_the_store_that_was_created_with_it(tmp_path):
    path = encrypt(tmp_path / "store", Passphrase("größe"))
    assert payloads(path, key=Passphrase("größe")) == [TEXT]
    with pytest.raises(agentwal.KeyRefused):
        agentwal.open(path, key=Secret(SECRET))


def test_key__of_a_plain_store_is_refused(tmp_path):
    path = encrypt(tmp_path / "store", None)
    with pytest.raises(agentwal.KeyRefused):
        agentwal.open(path, key=Secret(SECRET))
    assert payloads(path, key=Secret(SECRET), key_if_needed=True) == [TEXT]


def test_key__what_is_none(tmp_path):
    path = tmp_path / "store"
    for wrong in (SECRET, SECRET.decode(), {"secret": SECRET}, Secret(None), Secret(7),
                  Secret(bytearray(SECRET)), Passphrase("\ud800"), Passphrase([SECRET])):
        with pytest.raises((agentwal.Invalid, agentwal.KeyRefused)) as caught:
            agentwal.open(path, key=wrong)
        assert str(caught.value).startswith(("key: ", "the key has 0 bytes"))
        assert SECRET.decode() not in repr(caught.value) + repr(caught.value.__context__)
    assert not path.exists()


def test_key__in_asyncio(tmp_path):
    async def run():
        async with agentwal.aio.open(tmp_path / "store", key=Secret(SECRET)) as store:
            await (await store.create(id="s")).append(TEXT)
        with pytest.raises(agentwal.KeyRefused):
            await agentwal.aio.open(tmp_path / "store")

    asyncio.run(run())
    assert payloads(tmp_path / "store", key=Secret(SECRET)) == [TEXT]
