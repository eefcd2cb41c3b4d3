"""Blobs."""

from __future__ import annotations

import hashlib
import io
import os
import shutil

import pytest

import agentwal


def test_put__and_get(store):
    digest = store.blobs.put(b"content")
    assert digest == hashlib.sha256(b"content").hexdigest() == store.blobs.put("content")
    assert store.blobs.get(digest) == b"content" == store.blobs.get(digest.upper())
    assert store.blobs.get("0" * 64) is None
    for content in (bytearray(b"content"), memoryview(b"content")):
        assert store.blobs.put(content) == digest
    assert store.blobs.get(store.blobs.put(b"")) == b""


def test_create__in_pieces(store):
    content = os.urandom(3000000)
    with store.blobs.create() as writer:
        for start in range(0, len(content), 100000):
            writer.write(memoryview(content)[start:start + 100000])
        assert writer.finish() == (hashlib.sha256(content).hexdigest(), len(content))
        with pytest.raises(agentwal.Invalid):
            writer.write(b"more")
    with store.blobs.open(hashlib.sha256(content).hexdigest()) as blob:
        assert blob.size == len(content) and blob.read() == content
        assert blob.read_at(10, 5) == content[10:15] and blob.read_at(2999999, 100) == content[-1:]
        assert blob.read_at(3000000) == b"" and blob.read_at(9000000, 5) == b""
        assert blob.tell() == len(content) and blob.read(4) == b""
        assert b"".join(blob) == content and [len(piece) for piece in blob] == [
            1048576, 1048576, 902848]
    with pytest.raises(agentwal.Closed):
        blob.read()


def test_read__as_a_file(store, tmp_path):
    content = bytes(range(256)) * 20
    with store.blobs.open(store.blobs.put(content)) as blob:
        assert blob.read(4) == content[:4] and blob.tell() == 4
        assert blob.seek(-2, io.SEEK_END) == len(content) - 2 and blob.read() == content[-2:]
        assert blob.seek(10) == 10 and blob.seek(5, io.SEEK_CUR) == 15
        buffer = bytearray(7)
        assert blob.readinto(buffer) == 7 and buffer == content[15:22]
        assert blob.seek(10 ** 9) == 10 ** 9 and blob.read(1) == b"" and blob.readinto(buffer) == 0
        for offset, whence in ((-1, 0), (0, 9)):
            with pytest.raises(agentwal.Invalid):
                blob.seek(offset, whence)
        assert blob.readable() and blob.seekable() and not blob.writable()
        blob.seek(0)
        with (tmp_path / "copy").open("wb") as file:
            shutil.copyfileobj(blob, file, 100)
        assert (tmp_path / "copy").read_bytes() == content
        blob.seek(0)
        reader = io.BufferedReader(blob)
        assert reader.read(3) == content[:3] and reader.detach() is blob
    assert blob.closed


def test_create__dropped_when_it_is_not_finished(store):
    writer = store.blobs.create()
    writer.write(b"never")
    writer.close()
    writer.close()
    assert store.blobs.get(hashlib.sha256(b"never").hexdigest()) is None
    with pytest.raises(agentwal.Closed):
        writer.write(b"x")


@pytest.mark.parametrize("digest", ["", "x" * 64, "0" * 63, 5, None, b"0" * 64])
def test_open__wrong_digest(store, digest):
    with pytest.raises(agentwal.Invalid):
        store.blobs.open(digest)


@pytest.mark.parametrize("content", [5, None, ["a"], object()])
def test_put__wrong_content(store, content):
    with pytest.raises(agentwal.InvalidType):
        store.blobs.put(content)
    with store.blobs.create() as writer, pytest.raises(agentwal.InvalidType):
        writer.write(content)


def test_put__discontiguous_memory(store):
    with pytest.raises(agentwal.InvalidType, match="contiguous"):
        store.blobs.put(memoryview(b"abcdef")[::2])


@pytest.mark.parametrize("offset, size", [(-1, 5), ("0", 5), (0, "x"), (2 ** 64, 1)])
def test_read__wrong_arguments(store, offset, size):
    blob = store.blobs.open(store.blobs.put(b"abc"))
    with pytest.raises((agentwal.Invalid, TypeError)):
        blob.read_at(offset, size)


def test_read__size_beyond_memory(store):
    blob = store.blobs.open(store.blobs.put(b"abc"))
    assert blob.read_at(0, 2 ** 63) == b"abc"
    assert blob.read(2 ** 63) == b"abc"
