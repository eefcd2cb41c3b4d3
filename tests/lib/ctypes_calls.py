#!/usr/bin/env python3
"""ctypes_calls.py SOURCE LIBRARY: every public function of it, and of
libagentwal-convert next to it, from Python.

The structures are read out of the public headers, as a binding would define them by
hand; a function that is declared there and not called here is a failure.
"""
import ctypes
import glob
import hashlib
import os
import re
import select
import socket
import subprocess
import sys
import tempfile

SCALARS = {
    "uint8_t": ctypes.c_uint8, "uint32_t": ctypes.c_uint32,
    "int32_t": ctypes.c_int32, "uint64_t": ctypes.c_uint64,
    "int64_t": ctypes.c_int64, "char": ctypes.c_char,
    "const void *": ctypes.c_void_p,
}


def read_headers(source):
    """The core header and the side headers, without comments."""
    include = os.path.join(source, "engine", "include")
    convert = os.path.join(source, "convert", "include")
    texts = []
    for path in [os.path.join(include, "agentwal.h"),
                 *sorted(glob.glob(os.path.join(include, "agentwal", "*.h"))),
                 *sorted(glob.glob(os.path.join(convert, "agentwal", "*.h")))]:
        with open(path, encoding="utf-8") as file:
            texts.append(file.read())
    return re.sub(r"/\*.*?\*/", "", "".join(texts), flags=re.S)


def constants(text):
    """The members of all enums."""
    found = {}
    for body in re.findall(r"enum (?:\w+ )?\{(.*?)\}", text, flags=re.S):
        for name, value in re.findall(r"(WAL_\w+) = ([^,\n]+)", body):
            found[name] = eval(value.replace("u", ""))
    return found


def structures(text):
    """A ctypes.Structure for each struct that the header lays open."""
    found = {}
    const = constants(text)
    for name, body in re.findall(r"struct (wal_\w+) \{(.*?)\n\};", text, flags=re.S):
        fields = []
        for kind, field, count in re.findall(
                r"(const (?:void|struct \w+) \*|\w+ \*|struct wal_\w+ |\w+ )(\w+)"
                r"(?:\[(\w+)\])?;", body):
            kind = kind.strip()
            of = (ctypes.c_void_p if kind.endswith("*") else
                  found[kind[7:]] if kind.startswith("struct ") else
                  SCALARS[kind])
            fields.append(
                (field, of * int(const.get(count, count)) if count else of))
        found[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
    return found


class Library:
    """Calls by name, counted; the status must be the one expected."""

    def __init__(self, path, source):
        self.text = read_headers(source)
        functions = re.sub(r"typedef [^;]*;", "", self.text)
        self.names = set(re.findall(r"\b(wal_\w+)\(", functions))
        self.const = constants(self.text)
        self.structs = structures(self.text)
        self.library = ctypes.CDLL(path)
        self.convert = ctypes.CDLL(os.path.join(os.path.dirname(path),
                                                "libagentwal-convert.so"))
        self.called = set()
        self.error = self.new("wal_error")

    def new(self, name, /, **fields):
        """A structure with its size set; text becomes a slice."""
        made = self.structs[name]()
        made.struct_size = ctypes.sizeof(made)
        for field, value in fields.items():
            if isinstance(value, str):
                value = self.slice(value)
            elif isinstance(value, (ctypes.Structure, ctypes.Array)) and \
                    not isinstance(value, self.structs["wal_slice"]):
                kept.append(value)
                value = ctypes.addressof(value)
            setattr(made, field, value)
        return made

    def slice(self, text):
        data = text.encode()
        made = self.structs["wal_slice"]()
        made.keep = ctypes.create_string_buffer(data, len(data) + 1)
        made.data = ctypes.addressof(made.keep)
        made.size = len(data)
        kept.append(made)
        return made

    def function(self, name, result=ctypes.c_int):
        self.called.add(name)
        is_convert = name.startswith(("wal_import_", "wal_view_"))
        function = getattr(self.convert if is_convert else self.library, name)
        function.restype = result
        return function

    def call(self, name, *arguments, status="WAL_OK"):
        got = self.function(name)(*arguments, ctypes.byref(self.error))
        if got != self.const[status]:
            sys.exit("%s: %d, not %s: %s" % (name, got, status,
                                             self.error.text.decode()))

    def free(self, name, handle):
        self.function(name, None)(handle)


kept = []  # what slices point to


def text_of(part):
    return ctypes.string_at(part.data, part.size).decode()


def same(got, expected, what):
    if got != expected:
        sys.exit("%s: %r, not %r" % (what, got, expected))


def by_ref(value):
    return ctypes.byref(value)


def check_constants(wal):
    status_text = wal.function("wal_status_text", ctypes.c_char_p)
    for name, value in wal.const.items():
        if name.startswith("WAL_E"):
            same(len(status_text(ctypes.c_int32(value))) > 0, True, name)
    version = wal.function("wal_version", ctypes.c_char_p)().decode()
    same(re.fullmatch(r"\d+\.\d+\.\d+", version) is not None, True, "version")


def check_store(wal, path):
    options = wal.new("wal_open_options", flags=wal.const["WAL_OPEN_CREATE"])
    store = ctypes.c_void_p()
    wal.call("wal_open", path, None, by_ref(store), status="WAL_ENOTSTORE")
    same(store.value, None, "a handle of a call that failed")
    same(wal.error.status, wal.const["WAL_ENOTSTORE"], "status of an error")
    wal.call("wal_open", path, by_ref(options), by_ref(store))
    info = wal.new("wal_store_info")
    wal.call("wal_store_get_info", store, by_ref(info))
    same((info.status, info.format_version, info.sessions), (0, 1, 0), "store")
    return store


def check_async(wal, store, session):
    """An event loop: the event is readable once a ticket is answered."""
    event = ctypes.c_int32(-1)
    wal.call("wal_store_completion_fd", store,
             ctypes.c_uint32(wal.const["WAL_COMPLETION_SOCKET"]), by_ref(event))
    wal.call("wal_store_completion_fd", store,
             ctypes.c_uint32(wal.const["WAL_COMPLETION_PIPE"]), by_ref(event),
             status="WAL_EINVAL")
    entry = wal.new("wal_entry", type="message", payload="1")
    ticket = ctypes.c_void_p()
    options = wal.new("wal_append_options", durability=wal.const["WAL_QUEUED"])
    wal.call("wal_submit", session, by_ref(entry), ctypes.c_uint32(1),
             by_ref(options), by_ref(ticket))
    # It may tell of earlier answers first.
    pending = wal.const["WAL_EBUSY"]
    with socket.socket(fileno=os.dup(event.value)) as loop:
        while wal.function("wal_ticket_wait")(ticket, ctypes.c_int64(0), None,
                                              None) == pending:
            same(len(select.select([loop], [], [], 60)[0]), 1, "the event")
            same(len(loop.recv(4096)) > 0, True, "the event's bytes")
    wal.free("wal_ticket_destroy", ticket)
    wal.call("wal_flush", store)
    info = wal.new("wal_store_info")
    wal.call("wal_store_get_info", store, by_ref(info))
    same((info.queued, info.queue_status), (0, 0), "the queue")


def check_session(wal, store):
    options = wal.new("wal_session_options", id="s", title="Tïtle",
                      metadata='{"a":1}')
    session = ctypes.c_void_p()
    wal.call("wal_session_create", store, by_ref(options), by_ref(session))
    wal.call("wal_session_create", store, by_ref(options),
             by_ref(ctypes.c_void_p()), status="WAL_EEXISTS")
    info = wal.new("wal_session_info")
    wal.call("wal_session_get_info", session, by_ref(info))
    same((text_of(info.id), text_of(info.title), text_of(info.metadata)),
         ("s", "Tïtle", '{"a":1}'), "session")
    other = ctypes.c_void_p()
    wal.call("wal_session_open", store, wal.slice("s"), by_ref(other))
    wal.free("wal_session_close", other)
    wal.call("wal_session_open", store, wal.slice("t"), by_ref(other),
             status="WAL_ENOTFOUND")
    wal.call("wal_session_accept_damage", session)
    return session


def entries_of(wal, *ids):
    made = (wal.structs["wal_entry"] * len(ids))()
    for at, name in enumerate(ids):
        made[at] = wal.new("wal_entry", id=name, type="message",
                           payload='{"n":"%s"}' % name)
    return made


def check_append(wal, session):
    result = wal.new("wal_append_result")
    wal.call("wal_append", session, entries_of(wal, "a", "b"), 2, None,
             by_ref(result))
    same((result.appended, result.last_id), (2, b"b"), "append")
    options = wal.new("wal_append_options", expected_tail="a",
                      flags=wal.const["WAL_APPEND_EXPECT"])
    wal.call("wal_append", session, entries_of(wal, "c"), 1, by_ref(options),
             by_ref(result), status="WAL_ECONFLICT")
    same(wal.error.actual, b"b", "the tail")
    same(wal.error.expectation, wal.const["WAL_EXPECTATION_TAIL"],
         "the expectation")
    options = wal.new("wal_append_options", durability=wal.const["WAL_QUEUED"])
    ticket = ctypes.c_void_p()
    wal.call("wal_submit", session, entries_of(wal, "c"), 1, by_ref(options),
             by_ref(ticket))
    wal.call("wal_ticket_wait", ticket, ctypes.c_int64(-1), by_ref(result))
    same((result.appended, result.last_id), (1, b"c"), "ticket")
    wal.free("wal_ticket_destroy", ticket)


def check_iter(wal, session, expected):
    options = wal.new("wal_entry_cursor_options")
    iterator = ctypes.c_void_p()
    wal.call("wal_entry_cursor_open", session, by_ref(options), by_ref(iterator))
    remaining = wal.function("wal_entry_cursor_remaining", ctypes.c_uint64)
    entry = wal.new("wal_entry")
    for at, name in enumerate(expected):
        same(remaining(iterator), len(expected) - at, "remaining")
        wal.call("wal_entry_cursor_next", iterator, by_ref(entry))
        same((text_of(entry.id), text_of(entry.payload), entry.depth),
             (name, '{"n":"%s"}' % name, at), "entry")
    wal.call("wal_entry_cursor_next", iterator, by_ref(entry), status="WAL_END")
    wal.call("wal_entry_cursor_get", iterator, wal.slice(expected[0]), by_ref(entry))
    same(text_of(entry.id), expected[0], "entry by its id")
    wal.call("wal_entry_get", session, wal.slice(expected[0]), by_ref(entry))
    same(text_of(entry.id), expected[0], "entry without a cursor")
    wal.free("wal_entry_cursor_close", iterator)


def check_list(wal, store, expected):
    handle = ctypes.c_void_p()
    info = wal.new("wal_session_info")
    options = wal.new("wal_session_cursor_options")
    wal.call("wal_session_cursor_open", store, by_ref(options), by_ref(handle))
    for name in expected:
        wal.call("wal_session_cursor_next", handle, by_ref(info))
        same(text_of(info.id), name, "list")
    wal.call("wal_session_cursor_next", handle, by_ref(info), status="WAL_END")
    wal.free("wal_session_cursor_close", handle)


def read_docs(wal, store, session, **options):
    """Keys and values, in order."""
    reader = ctypes.c_void_p()
    doc = wal.new("wal_doc")
    found = []
    wal.call("wal_doc_cursor_open", store, session,
             by_ref(wal.new("wal_doc_cursor_options", **options)), by_ref(reader))
    end = wal.const["WAL_END"]
    following = wal.function("wal_doc_cursor_next")
    while following(reader, by_ref(doc), by_ref(wal.error)) != end:
        found.append((text_of(doc.key), text_of(doc.value)))
    wal.free("wal_doc_cursor_close", reader)
    return found


def check_documents(wal, store, session):
    version = ctypes.c_uint64()
    for key in ("part/2", "part/1", "other"):
        wal.call("wal_doc_put", store, session,
                 by_ref(wal.new("wal_doc", key=key, value='"%s"' % key)),
                 by_ref(version))
    first = version.value
    stale = wal.new("wal_doc", key="other", value="1", version=first + 9,
                    flags=wal.const["WAL_DOC_EXPECT"])
    wal.call("wal_doc_put", store, session, by_ref(stale), None,
             status="WAL_ECONFLICT")
    same(wal.error.actual.decode(), str(first), "the present version")
    same(read_docs(wal, store, session, prefix="part/"),
         [("part/1", '"part/1"'), ("part/2", '"part/2"')], "documents")
    wal.call("wal_doc_delete", store, session,
             by_ref(wal.new("wal_doc", key="other")), None)
    reader = ctypes.c_void_p()
    doc = wal.new("wal_doc")
    wal.call("wal_doc_cursor_open", store, session, None, by_ref(reader))
    wal.call("wal_doc_cursor_get", reader, wal.slice("other"), ctypes.c_uint64(0),
             by_ref(doc), status="WAL_ENOTFOUND")
    wal.call("wal_doc_cursor_get", reader, wal.slice("other"),
             ctypes.c_uint64(first), by_ref(doc))
    same((text_of(doc.value), doc.version), ('"other"', first), "a version")
    wal.free("wal_doc_cursor_close", reader)
    wal.call("wal_doc_get", store, session, wal.slice("other"),
             ctypes.c_uint64(first), by_ref(doc))
    same(text_of(doc.value), '"other"', "a version without a cursor")
    wal.call("wal_doc_put", store, None,
             by_ref(wal.new("wal_doc", key="k", value="[]")), None)
    same(read_docs(wal, store, None), [("k", "[]")], "the store's documents")


def check_heads(wal, session):
    previous = ctypes.create_string_buffer(256)
    wal.call("wal_head_move", session,
             by_ref(wal.new("wal_head", entry_id="a", note="back")), previous)
    same(previous.value, b"c", "the head before")
    wrong = wal.new("wal_head", entry_id="b", expected="c",
                    flags=wal.const["WAL_HEAD_EXPECT"])
    wal.call("wal_head_move", session, by_ref(wrong), None, status="WAL_ECONFLICT")
    same(wal.error.actual, b"a", "the present head")
    wal.call("wal_head_move", session,
             by_ref(wal.new("wal_head", entry_id="c")), None)
    wal.call("wal_head_move", session,
             by_ref(wal.new("wal_head", name="try", entry_id="b")), None)
    wal.call("wal_head_get", session, ctypes.c_uint32(0), wal.slice("try"),
             previous)
    same(previous.value, b"b", "a named head")
    heads = ctypes.c_void_p()
    head = wal.new("wal_head")
    wal.call("wal_head_cursor_open", session, by_ref(heads))
    for expected in (("main", "c"), ("try", "b")):
        wal.call("wal_head_cursor_next", heads, by_ref(head))
        same((text_of(head.name), text_of(head.entry_id)), expected, "heads")
    wal.call("wal_head_cursor_next", heads, by_ref(head), status="WAL_END")
    wal.free("wal_head_cursor_close", heads)


def check_batch(wal, session):
    change = wal.new("wal_session_change", title="Batched",
                     fields=wal.const["WAL_CHANGE_TITLE"])
    batch = wal.new("wal_batch", entries=entries_of(wal, "d"), entry_count=1,
                    documents=wal.new("wal_doc", key="b", value="2"),
                    document_count=1, change=change,
                    heads=wal.new("wal_head", name="try", entry_id="d"),
                    head_count=1)
    result = wal.new("wal_append_result")
    wal.call("wal_batch_commit", session, by_ref(batch), None, by_ref(result))
    same((result.appended, result.last_id), (1, b"d"), "batch")
    ticket = ctypes.c_void_p()
    wal.call("wal_batch_submit", session,
             by_ref(wal.new("wal_batch", entries=entries_of(wal, "e"),
                            entry_count=1)), None, by_ref(ticket))
    wal.call("wal_ticket_wait", ticket, ctypes.c_int64(-1), by_ref(result))
    wal.free("wal_ticket_destroy", ticket)


def check_update(wal, session):
    update = ctypes.CFUNCTYPE(
        ctypes.c_int32, ctypes.c_void_p,
        ctypes.POINTER(wal.structs["wal_session_info"]),
        ctypes.POINTER(wal.structs["wal_session_change"]))

    @update
    def count(_, now, change):
        same(text_of(now.contents.metadata), '{"a":1}', "metadata")
        change.contents.metadata = wal.slice('{"a":2}')
        change.contents.fields = wal.const["WAL_CHANGE_METADATA"]
        return 0

    @update
    def refuse(_, now, change):
        return 7

    info = wal.new("wal_session_info")
    wal.call("wal_session_update", session, count, None)
    wal.call("wal_session_get_info", session, by_ref(info))
    same((text_of(info.metadata), text_of(info.title)),
         ('{"a":2}', "Batched"), "session")
    wal.call("wal_session_update", session, refuse, None,
             status="WAL_ECALLBACK")
    same(wal.error.sys_errno, 7, "the function's answer")
    result = wal.new("wal_migrate_result")
    wal.call("wal_session_migrate", session, ctypes.c_uint32(1), None, None,
             by_ref(result))
    same((getattr(result, "from"), result.to), (1, 1), "migration")


def check_own_entries(wal, session):
    result = wal.new("wal_append_result")
    wal.call("wal_session_redact", session, wal.slice("a"),
             wal.slice("a secret"), by_ref(result))
    iterator = ctypes.c_void_p()
    entry = wal.new("wal_entry")
    wal.call("wal_entry_cursor_open", session, None, by_ref(iterator))
    wal.call("wal_entry_cursor_next", iterator, by_ref(entry))
    same(text_of(entry.id), "b", "the first entry that is not redacted")
    wal.call("wal_entry_cursor_get", iterator, wal.slice("a"), by_ref(entry),
             status="WAL_EREDACTED")
    wal.free("wal_entry_cursor_close", iterator)
    options = wal.new("wal_compact_options", first_kept="d", summary="a to c",
                      into=wal.new("wal_session_options", id="compacted"))
    fork = ctypes.c_void_p()
    wal.call("wal_session_compact", session, by_ref(options), by_ref(fork),
             by_ref(result))
    same(result.appended, 1, "compaction")
    wal.call("wal_session_delete", fork)
    wal.free("wal_session_close", fork)


def check_blobs(wal, store):
    size = wal.const["WAL_DIGEST_SIZE"]
    put = (ctypes.c_uint8 * size)()
    written = (ctypes.c_uint8 * size)()
    wal.call("wal_blob_put", store, wal.slice("some content"), put)
    same(bytes(put), hashlib.sha256(b"some content").digest(), "a digest")
    writer = ctypes.c_void_p()
    total = ctypes.c_uint64()
    wal.call("wal_blob_create_named", store, by_ref(writer))
    wal.free("wal_blob_discard", writer)
    wal.call("wal_blob_create", store, by_ref(writer))
    for piece in ("some ", "content"):
        wal.call("wal_blob_write", writer, wal.slice(piece))
    wal.call("wal_blob_finish", writer, written, by_ref(total))
    wal.free("wal_blob_discard", writer)
    same((bytes(written), total.value), (bytes(put), 12), "what was written")
    blob = ctypes.c_void_p()
    data = ctypes.create_string_buffer(7)
    wal.call("wal_blob_open", store, put, by_ref(blob))
    same(wal.function("wal_blob_size", ctypes.c_uint64)(blob), 12, "a size")
    wal.call("wal_blob_read", blob, ctypes.c_uint64(5), data,
             ctypes.c_uint64(9), by_ref(total))
    same((data.raw[:total.value], total.value), (b"content", 7), "content")
    wal.free("wal_blob_close", blob)


def read_changes(wal, reader):
    info = wal.new("wal_file_changes_info")
    change = wal.new("wal_file_change")
    found = []
    following = wal.function("wal_file_change_cursor_next")
    while (following(reader, by_ref(change), by_ref(wal.error)) !=
           wal.const["WAL_END"]):
        found.append((text_of(change.path), change.insertions,
                      change.deletions))
    wal.call("wal_file_changes_get_info", reader, by_ref(info))
    same(info.files, len(found), "changes")
    wal.free("wal_file_change_cursor_close", reader)
    return found


def make_checkpoint(wal, session, root, name, paths):
    """Files and their kinds, as recorded."""
    options = wal.new("wal_checkpoint_options", id=name, root=root)
    slices = (wal.structs["wal_slice"] * len(paths))(
        *[wal.slice(path) for path in paths])
    reader = ctypes.c_void_p()
    wal.call("wal_checkpoint_create", session, slices,
             ctypes.c_uint64(len(paths)), by_ref(options), by_ref(reader))
    info = wal.new("wal_checkpoint_info")
    wal.call("wal_checkpoint_get_info", reader, by_ref(info))
    file = wal.new("wal_file")
    found = []
    following = wal.function("wal_file_cursor_next")
    while (following(reader, by_ref(file), by_ref(wal.error)) !=
           wal.const["WAL_END"]):
        found.append((text_of(file.path), file.kind, bytes(file.digest)))
    same(info.files, len(found), "files")
    wal.free("wal_file_cursor_close", reader)
    return found


def head_of(wal, session):
    head = ctypes.create_string_buffer(wal.const["WAL_ID_SIZE"])
    wal.call("wal_head_get", session, ctypes.c_uint32(0), wal.slice(""), head)
    return head.value.decode()


def check_checkpoints(wal, session, folder):
    root = os.path.join(folder, "work")
    os.mkdir(root)
    with open(os.path.join(root, "a"), "w", encoding="utf-8") as file:
        file.write("1\n")
    digest = hashlib.sha256(b"1\n").digest()
    same(make_checkpoint(wal, session, root, "c", ["b", "a"]),
         [("a", wal.const["WAL_FILE_REGULAR"], digest),
          ("b", wal.const["WAL_FILE_ABSENT"], bytes(32))], "a checkpoint")
    with open(os.path.join(root, "a"), "a", encoding="utf-8") as file:
        file.write("2\n")
    reader = ctypes.c_void_p()
    wal.call("wal_checkpoint_diff", session, wal.slice("c"), wal.slice(""),
             by_ref(reader))
    same(read_changes(wal, reader), [("a", 1, 0)], "differences")
    make_checkpoint(wal, session, root, "d", ["a"])
    wal.call("wal_session_diff", session, by_ref(reader))
    same(read_changes(wal, reader), [("a", 1, 0)], "changes of the session")
    wal.call("wal_file_cursor_open", session, wal.slice("c"), by_ref(reader))
    wal.free("wal_file_cursor_close", reader)
    info = wal.new("wal_checkpoint_info")
    wal.call("wal_checkpoint_cursor_open", session, by_ref(reader))
    wal.call("wal_checkpoint_cursor_next", reader, by_ref(info))
    same((text_of(info.id), text_of(info.root), text_of(info.entry_id)),
         ("c", root, head_of(wal, session)), "the oldest")
    wal.free("wal_checkpoint_cursor_close", reader)
    wal.call("wal_checkpoint_delete", session, wal.slice("c"))
    imported = wal.new("wal_file", kind=wal.const["WAL_FILE_REGULAR"], path="a")
    imported.digest[:] = digest
    options = wal.new("wal_checkpoint_options", id="i", root=root)
    wal.call("wal_checkpoint_import", session, by_ref(imported),
             ctypes.c_uint64(1), by_ref(options), None)
    wal.call("wal_checkpoint_diff", session, wal.slice("i"), wal.slice("d"),
             by_ref(reader))
    same(read_changes(wal, reader), [("a", 1, 0)], "what was imported")
    for on in (0, 1):
        wal.call("wal_session_set_checkpointing", session, ctypes.c_int32(on))


def check_rewind(wal, session, folder):
    path = os.path.join(folder, "rewound")
    with open(path, "w", encoding="utf-8") as file:
        file.write("one\ntwo\n")
    paths = (wal.structs["wal_slice"] * 1)(wal.slice("rewound"))
    options = wal.new("wal_checkpoint_options", id="c", root=folder)
    wal.call("wal_checkpoint_create", session, paths, ctypes.c_uint64(1),
             by_ref(options), None)
    with open(path, "w", encoding="utf-8") as file:
        file.write("one\nthree\nfour\n")
    before = head_of(wal, session)
    wal.call("wal_append", session, entries_of(wal, "after"), 1, None, None)
    changes = ctypes.c_void_p()
    options = wal.new("wal_rewind_options", flags=wal.const["WAL_REWIND_HEAD"])
    result = wal.new("wal_rewind_result")
    wal.call("wal_rewind", session, wal.slice("c"), by_ref(options),
             by_ref(result), by_ref(changes))
    same((result.can_rewind, result.files_changed, result.insertions,
          result.deletions, len(result.undo)), (1, 1, 1, 2, 36), "a rewind")
    same(read_changes(wal, changes), [("rewound", 1, 2)], "what was rewound")
    same((result.previous_head.decode(), result.new_head.decode(),
          head_of(wal, session)), ("after", before, before), "the head")
    with open(path, encoding="utf-8") as file:
        same(file.read(), "one\ntwo\n", "what was rewound")


def check_append_one(wal, store):
    options = wal.new("wal_session_options", id="short")
    session = ctypes.c_void_p()
    wal.call("wal_session_create", store, by_ref(options), by_ref(session))
    result = wal.new("wal_append_result")
    wal.call("wal_append_one", session, b"message", wal.slice("{}"),
             by_ref(result))
    same(result.appended, 1, "one entry")
    wal.call("wal_session_trash", session)
    wal.call("wal_session_trash", session, status="WAL_ETRASHED")
    wal.call("wal_session_undelete", store, wal.slice("short"))
    remove = wal.new("wal_session_remove_options",
                     flags=wal.const["WAL_SESSION_REMOVE_EXPECT"])
    wal.call("wal_session_remove", session, by_ref(remove),
             status="WAL_ECONFLICT")
    wal.call("wal_session_delete", session)
    wal.free("wal_session_close", session)


def check_large(wal, store, session):
    """A payload out of line."""
    text = '{"text":"%s"}' % ("x" * 300000)
    wal.call("wal_append", session,
             by_ref(wal.new("wal_entry", id="large", type="message",
                            payload=text)), 1, None, None)
    entry = wal.new("wal_entry")
    for flags, payload in ((0, text), (wal.const["WAL_ENTRY_CURSOR_OUT_OF_LINE"], "")):
        iterator = ctypes.c_void_p()
        options = wal.new("wal_entry_cursor_options", flags=flags)
        wal.call("wal_entry_cursor_open", session, by_ref(options), by_ref(iterator))
        wal.call("wal_entry_cursor_get", iterator, wal.slice("large"), by_ref(entry))
        same((text_of(entry.payload), entry.payload_size),
             (payload, len(text)), "a large payload")
        wal.free("wal_entry_cursor_close", iterator)
    same(bytes(entry.payload_digest), hashlib.sha256(text.encode()).digest(),
         "the digest of a payload")


def check_opening(wal, store):
    session = ctypes.c_void_p()
    wal.call("wal_session_open_latest", store, wal.slice(""), by_ref(session))
    wal.free("wal_session_close", session)
    options = wal.new("wal_session_options", id="s")
    created = ctypes.c_int32(-1)
    wal.call("wal_session_open_or_create", store, by_ref(options),
             by_ref(session), by_ref(created))
    same(created.value, 0, "a session that exists")
    wal.free("wal_session_close", session)


def check_wait(wal, store, session):
    sequence = ctypes.c_uint64(0)
    wal.call("wal_store_wait", store, by_ref(sequence),
             ctypes.c_uint32(wal.const["WAL_WRITTEN"]), ctypes.c_int64(0))
    same(sequence.value > 0, True, "a record to wait for")
    wal.call("wal_store_wait", store, by_ref(sequence),
             ctypes.c_uint32(wal.const["WAL_WRITTEN"]), ctypes.c_int64(0),
             status="WAL_EBUSY")


def check_claims(wal, store, session, folder):
    """A claim in the list of this process, and in what another one reports."""
    wal.call("wal_session_claim", session)
    cursor = ctypes.c_void_p()
    claim = wal.new("wal_claim")
    wal.call("wal_claim_cursor_open", store, by_ref(cursor))
    wal.call("wal_claim_cursor_next", cursor, by_ref(claim))
    same((text_of(claim.session_id), claim.process_id, claim.flags),
         ("s", os.getpid(), wal.const["WAL_CLAIM_OWN"]), "a claim")
    wal.call("wal_claim_cursor_next", cursor, by_ref(claim), status="WAL_END")
    wal.free("wal_claim_cursor_close", cursor)
    same(agentwal_stats(folder, "--json").count(
        '"claims":[{"sessionId":"s","processId":%d}]' % os.getpid()), 1,
        "the claims that stats writes")
    same(re.findall(r"(?m)^s +(\d+)$", agentwal_stats(folder)),
         [str(os.getpid())], "the claims that stats prints")
    wal.call("wal_session_unclaim", session)


def check_moves(wal, session):
    """A session that goes on elsewhere, and is back."""
    move = wal.new("wal_session_move")
    wal.call("wal_session_get_move", session, by_ref(move),
             status="WAL_ENOTFOUND")
    move.flags = wal.const["WAL_SESSION_MOVE_AWAY"]
    move.number = 1
    move.host = b"desk"
    wal.call("wal_session_set_move", session, by_ref(move))
    move.flags = 0
    wal.call("wal_session_get_move", session, by_ref(move))
    same((move.flags, move.host), (wal.const["WAL_SESSION_MOVE_AWAY"], b"desk"),
         "a move")
    move.flags = 0
    move.number = 2
    wal.call("wal_session_set_move", session, by_ref(move))


def agentwal_stats(folder, *options):
    # A sanitizer's runtime is preloaded for Python only.
    rest = {name: value for name, value in os.environ.items()
            if name != "LD_PRELOAD"}
    return subprocess.run(
        [os.path.join(os.path.dirname(sys.argv[2]), "..", "bin", "agentwal"),
         "--store", os.path.join(folder, "store"), "stats", *options],
        env=rest, check=True, stdout=subprocess.PIPE, text=True).stdout


def check_view_roots(wal, store):
    """The list of roots as the store keeps it."""
    root = (wal.slice("none"), wal.slice("/nowhere"))
    is_new = ctypes.c_int32()
    listed = []

    def add(_, dialect, path):
        listed.append((text_of(dialect), text_of(path)))
        return 0

    kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p,
                            wal.structs["wal_slice"], wal.structs["wal_slice"])
    for count in (1, 0):
        wal.call("wal_store_add_view_root", store, *root, ctypes.c_uint32(0),
                 by_ref(is_new))
        same(is_new.value, count, "a root that is new")
    wal.call("wal_store_list_view_roots", store, kind(add), None)
    same(("none", "/nowhere") in listed, True, "a root of the list")
    wal.call("wal_store_remove_view_root", store, *root)


def check_view_list(wal, store, place):
    """The view in the list of the store, which knows the root already."""
    wal.call("wal_view_root_add", store, wal.slice("entries"),
             wal.slice(place.root.decode()))
    cursor = ctypes.c_void_p()
    listed = wal.new("wal_view_info")
    options = wal.new("wal_view_cursor_options",
                      session=place.session.decode())
    wal.call("wal_view_cursor_open", store, by_ref(options), by_ref(cursor))
    wal.call("wal_view_cursor_next", cursor, by_ref(listed))
    same((listed.session, listed.root, listed.flags),
         (place.session, os.path.realpath(place.root), 0), "a listed view")
    wal.call("wal_view_cursor_next", cursor, by_ref(listed),
             status="WAL_END")
    wal.free("wal_view_cursor_close", cursor)
    wal.call("wal_view_update", store, by_ref(listed), None)


def check_views(wal, store, session, folder):
    names = []
    name = wal.function("wal_view_dialect", ctypes.c_char_p)
    while name(ctypes.c_uint32(len(names))) is not None:
        names.append(name(ctypes.c_uint32(len(names))).decode())
    same("claude" in names and "lines" not in names, True, "dialects")
    view = ctypes.c_void_p()
    path = ctypes.c_char_p()
    report = wal.new("wal_view_flush_result")
    options = wal.new("wal_view_options", dialect="entries",
                      root=os.path.join(folder, "views"))
    wal.call("wal_view_open", store, session, by_ref(options), by_ref(view))
    wal.call("wal_view_flush", view, by_ref(report))
    wal.call("wal_view_path", view, ctypes.c_uint32(0), by_ref(path))
    with open(path.value, "rb") as file:
        same(file.read().count(b"\n"), report.lines, "lines of a view")
    loss = ctypes.c_char_p()
    count = ctypes.c_uint64()
    wal.call("wal_view_loss", view, ctypes.c_uint32(99), by_ref(loss),
             by_ref(count), status="WAL_END")
    place = wal.new("wal_view_info")
    wal.call("wal_view_find", store, wal.slice(path.value.decode()),
             by_ref(place))
    same(place.dialect, b"entries", "the dialect of a view")
    check_view_roots(wal, store)
    check_view_list(wal, store, place)
    with open(path.value, "ab") as file:
        file.write(b"not JSON\n")
    taken = wal.new("wal_view_import_result")
    offset = ctypes.c_uint64()
    wal.call("wal_view_import", view, by_ref(taken))
    same((taken.appended, taken.damaged), (1, 1), "lines of another program")
    wal.call("wal_view_issue", view, ctypes.c_uint32(0), by_ref(offset),
             by_ref(loss))
    same(loss.value, b"is not JSON", "the reason of the issue")
    wal.free("wal_view_close", view)

    @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p,
                      ctypes.c_uint64)
    def refuse(_, data, size):
        return 7

    options = wal.new("wal_view_options", dialect="pi",
                      put=ctypes.cast(refuse, ctypes.c_void_p).value)
    wal.call("wal_view_open", store, session, by_ref(options), by_ref(view))
    wal.call("wal_view_flush", view, None, status="WAL_ECALLBACK")
    same(wal.error.sys_errno, 7, "the function's answer")
    wal.free("wal_view_close", view)


def check_import(wal, store, folder):
    name = wal.function("wal_import_dialect", ctypes.c_char_p)
    names = []
    while name(ctypes.c_uint32(len(names))) is not None:
        names.append(name(ctypes.c_uint32(len(names))).decode())
    same("claude" in names and "lines" in names, True, "dialects of imports")
    path = os.path.join(folder, "of-another.jsonl")
    with open(path, "wb") as file:
        file.write(b'{"n":1}\n{"n":2}\n')
    reports = []

    @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p,
                      ctypes.POINTER(wal.structs["wal_import_report"]))
    def report(_, made):
        reports.append((text_of(made.contents.session_id),
                        made.contents.appended))
        return 0

    options = wal.new("wal_import_options",
                      report=ctypes.cast(report, ctypes.c_void_p).value)
    result = wal.new("wal_import_result")
    wal.call("wal_import_file", store, wal.slice(path), by_ref(options),
             by_ref(result))
    same((result.sessions, result.appended), (1, 2), "an imported file")
    same(reports[0][1], 2, "the report of a file")
    paths = (wal.structs["wal_slice"] * 1)(wal.slice(path))
    wal.call("wal_import_tree", store, paths, ctypes.c_uint32(1),
             by_ref(options), by_ref(result))
    same((result.appended, result.duplicates), (0, 2), "the file again")
    same(reports[1], (reports[0][0], 0), "the report of the file again")
    check_follow(wal, store, path, paths, result)


def check_follow(wal, store, path, paths, result):
    wal.call("wal_import_scan", paths, ctypes.c_uint32(1), None, by_ref(result))
    same((result.sources, result.bytes), (1, 16), "a scan")
    kind = wal.function("wal_import_left_out_name", ctypes.c_char_p)
    same(kind(ctypes.c_uint32(0)), b"credentials", "a kind that is left out")
    client = wal.new("wal_import_client")
    wal.call("wal_import_client", ctypes.c_uint32(0), by_ref(client))
    same(bool(client.dialect), True, "a client")
    follow = ctypes.c_void_p()
    wal.call("wal_import_follow_open", store, paths, ctypes.c_uint32(1), None,
             by_ref(follow))
    wal.call("wal_import_follow_next", follow, ctypes.c_uint32(0),
             by_ref(result))
    same((result.sources, result.appended), (1, 0), "a first import")
    with open(path, "ab") as file:
        file.write(b'{"n":3}\n')
    wal.call("wal_import_follow_next", follow, ctypes.c_uint32(5000),
             by_ref(result))
    same(result.appended, 1, "a line that was followed")
    info = wal.new("wal_import_follow_info")
    wal.call("wal_import_follow_get_info", follow, by_ref(info))
    same(info.scans, 1, "scans")
    wal.free("wal_import_follow_close", follow)


def check_compact(wal, store, folder):
    """The other store is compacted: check_salvage wants one that is not."""
    listed = {}

    @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p,
                      ctypes.POINTER(wal.structs["wal_session_space"]))
    def session(_, made):
        space = made.contents
        listed[text_of(space.session_id)] = (space.own_bytes, space.shared_bytes,
                                             space.reclaimable_bytes)
        return 0

    options = wal.new("wal_store_compact_options",
                      flags=wal.const["WAL_STORE_COMPACT_DRY_RUN"],
                      session=ctypes.cast(session, ctypes.c_void_p).value)
    planned = wal.new("wal_store_compact_result")
    wal.call("wal_store_compact", store, by_ref(options), by_ref(planned))
    same(listed["f"][1] > 0, True, "what a fork shares")
    same("" in listed, True, "the documents of the store")
    same((planned.segments, planned.rewritten), (1, 1), "what is planned")
    other = check_store(wal, os.path.join(folder, "other").encode())
    session = check_session(wal, other)
    check_append(wal, session)
    options = wal.new("wal_store_compact_options", rate=2 ** 64 - 1)
    done = wal.new("wal_store_compact_result")
    wal.call("wal_store_compact", other, by_ref(options), by_ref(done))
    same((done.segments, done.rewritten, done.refused), (1, 1, 0), "compaction")
    same(done.bytes_after < done.bytes_before, True, "what comes back")
    wal.free("wal_session_close", session)
    wal.call("wal_close", other)


def check_backup(wal, store, folder):
    copy = os.path.join(folder, "copy").encode()
    seen = []

    @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint64,
                      ctypes.c_uint64)
    def progress(_, done, total):
        seen.append((done, total))
        return 0

    options = wal.new("wal_store_backup_options",
                      progress=ctypes.cast(progress, ctypes.c_void_p).value)
    done = wal.new("wal_store_backup_result")
    wal.call("wal_store_backup", store, copy, by_ref(options), by_ref(done))
    same(done.copied, done.segments, "a backup")
    same(seen[-1][0], seen[-1][1], "the progress of a backup")
    # The idle mark may be written after the first one, once: nothing follows it.
    for _ in range(2):
        wal.call("wal_store_backup", store, copy, None, by_ref(done))
        if done.copied == 0:
            break
    same((done.copied, done.removed, done.bytes), (0, 0, 0), "a backup again")


def check_parts(wal, store, folder):
    """A replica of the store, which becomes a store."""
    path = os.path.join(folder, "replica").encode()
    places = (wal.structs["wal_part_place"] * wal.const["WAL_PART_STREAMS"])()
    part = wal.structs["wal_slice"]()
    info = wal.new("wal_part_info")
    reader = ctypes.c_void_p()
    replica = ctypes.c_void_p()
    limit = ctypes.c_uint64(0)
    wal.call("wal_sync", store)
    shipper = ctypes.c_void_p()
    wal.call("wal_shipper_open", store, by_ref(shipper))
    wal.call("wal_shipper_report", shipper, limit, wal.const["WAL_OK"])
    wal.free("wal_shipper_close", shipper)
    wal.call("wal_part_reader_open", store, by_ref(reader))
    wal.call("wal_replica_open", path, by_ref(replica))
    wal.call("wal_part_reader_next", reader, None, limit, by_ref(part), by_ref(info))
    wal.call("wal_part_reader_next_to", reader, None, info.after, limit, by_ref(part),
             by_ref(info))
    wal.call("wal_part_check", part, by_ref(info))
    wal.call("wal_part_verify", part, by_ref(info))
    wal.call("wal_part_get_info", part, by_ref(info))
    same(info.size, part.size, "the size of a part")
    wal.call("wal_replica_write", replica, part)
    wal.call("wal_replica_sync", replica)
    wal.call("wal_replica_apply", replica, part)
    needs = ctypes.c_int32(1)
    wal.call("wal_replica_needs", replica, part, by_ref(needs))
    same(needs.value, 0, "whether a replica needs what it has")
    wal.call("wal_replica_get_position", replica, places)
    same([place.offset for place in places], [place.offset for place in info.after],
         "the position of a replica")
    wal.free("wal_part_reader_close", reader)
    wal.call("wal_replica_promote", replica)
    wal.call("wal_replica_open", path, by_ref(replica), status="WAL_EEXISTS")
    wal.call("wal_replica_open_store", path, by_ref(replica))
    wal.free("wal_replica_close", replica)


def check_transfer(wal, store, folder):
    """A bundle of two sessions, and the whole store after it."""
    bundle = os.path.join(folder, "bundle")
    reports = []

    @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p,
                      ctypes.POINTER(wal.structs["wal_transfer_report"]))
    def report(_, made):
        reports.append((text_of(made.contents.session_id), made.contents.kind))
        return 0

    ids = (wal.structs["wal_slice"] * 2)(wal.slice("s"), wal.slice("f"))
    options = wal.new("wal_transfer_options", session_count=2, directory=folder,
                      sessions=ctypes.cast(ids, ctypes.c_void_p).value,
                      report=ctypes.cast(report, ctypes.c_void_p).value)
    result = wal.new("wal_transfer_result")
    wal.call("wal_bundle_write", store, wal.slice(bundle), by_ref(options),
             by_ref(result))
    same((result.created, result.bytes), (2, os.path.getsize(bundle)), "a bundle")
    detect = wal.function("wal_bundle_detect", ctypes.c_int32)
    same(detect(wal.slice(bundle)), 1, "whether it is a bundle")
    other = check_store(wal, os.path.join(folder, "unpacked").encode())
    options = wal.new("wal_transfer_options", directory=folder,
                      report=ctypes.cast(report, ctypes.c_void_p).value)
    del reports[:]
    wal.call("wal_bundle_read", other, wal.slice(bundle), by_ref(options),
             by_ref(result))
    same(reports, [("s", wal.const["WAL_TRANSFER_CREATED"]),
                   ("f", wal.const["WAL_TRANSFER_CREATED"])], "its sessions")
    wal.call("wal_store_merge", store, other, None, by_ref(result))
    same((result.unchanged, result.refused), (2, 0), "sessions that were there")
    wal.call("wal_close", other)


def check_salvage(wal, path, folder):
    """The store has lost the end of its log."""
    segment = sorted(glob.glob(os.path.join(path, "log", "*.seg")))[-1]
    os.truncate(segment, 8192)
    reports = []

    @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p,
                      ctypes.POINTER(wal.structs["wal_salvage_report"]))
    def report(_, made):
        reports.append((made.contents.kind, text_of(made.contents.file)))
        return 0

    options = wal.new("wal_salvage_options",
                      report=ctypes.cast(report, ctypes.c_void_p).value)
    result = wal.new("wal_salvage_result")
    wal.call("wal_salvage", path.encode(), os.path.join(folder, "out").encode(),
             by_ref(options), by_ref(result))
    same(result.losses, len(reports), "what a salvage reports")
    same(reports[0][0], wal.const["WAL_SALVAGE_RANGE"], "the damage")
    same(reports[0][1], "log/" + os.path.basename(segment), "its file")
    same(result.entries > 0, True, "what a salvage keeps")


def check_pages(wal, store):
    handle = ctypes.c_void_p()
    info = wal.new("wal_session_info")
    cursor = ctypes.create_string_buffer(wal.const["WAL_CURSOR_TEXT_SIZE"])
    wal.call("wal_session_cursor_open", store, None, by_ref(handle))
    wal.call("wal_session_cursor_next", handle, by_ref(info))
    first = text_of(info.id)
    wal.call("wal_session_cursor_encode", handle, cursor)
    wal.free("wal_session_cursor_close", handle)
    options = wal.new("wal_session_cursor_options", after=cursor.value.decode())
    wal.call("wal_session_cursor_open", store, by_ref(options), by_ref(handle))
    wal.call("wal_session_cursor_next", handle, by_ref(info))
    same(text_of(info.id) != first, True, "the next page")
    wal.free("wal_session_cursor_close", handle)


def check_records(wal, store):
    """The ids of all entries, segment by segment."""
    segments = ctypes.c_void_p()
    segment = wal.new("wal_segment_info")
    found = []
    wal.call("wal_segment_cursor_open", store, by_ref(segments))
    end = wal.const["WAL_END"]
    following = wal.function("wal_segment_cursor_next")
    while following(segments, by_ref(segment), by_ref(wal.error)) != end:
        found += read_records(wal, store, segment)
    wal.free("wal_segment_cursor_close", segments)
    same(segment.flags, wal.const["WAL_SEGMENT_TAIL"], "the newest segment")
    same(found.count("b"), 1, "an entry that a fork shares")
    same("a" in found, False, "an entry that was redacted")


def read_records(wal, store, segment):
    options = wal.new("wal_record_cursor_options", segment=segment.id,
                      identity=segment.identity)
    cursor = ctypes.c_void_p()
    record = wal.new("wal_record")
    found = []
    wal.call("wal_record_cursor_open", store, by_ref(options), by_ref(cursor))
    end = wal.const["WAL_END"]
    following = wal.function("wal_record_cursor_next")
    while following(cursor, by_ref(record), by_ref(wal.error)) != end:
        if record.kind == wal.const["WAL_RECORD_ENTRY"]:
            entry = wal.structs["wal_entry"].from_address(record.entry)
            found.append(text_of(entry.id))
    if record.sequence != 0:
        again = wal.new("wal_record")
        wal.call("wal_record_cursor_get", cursor,
                 ctypes.c_uint32(record.session_number),
                 ctypes.c_uint64(record.sequence), by_ref(again))
        same(again.kind, record.kind, "a record by its number")
    wal.free("wal_record_cursor_close", cursor)
    return found


def main():
    source, path = sys.argv[1:]
    wal = Library(path, source)
    check_constants(wal)
    with tempfile.TemporaryDirectory() as folder:
        where = os.path.join(folder, "store").encode()
        store = check_store(wal, where)
        session = check_session(wal, store)
        check_append(wal, session)
        check_iter(wal, session, ["a", "b", "c"])
        options = wal.new("wal_session_options", id="f")
        fork = ctypes.c_void_p()
        wal.call("wal_session_fork", session, wal.slice("b"), by_ref(options),
                 by_ref(fork))
        check_iter(wal, fork, ["a", "b"])
        check_list(wal, store, ["f", "s"])
        check_documents(wal, store, session)
        check_heads(wal, session)
        check_batch(wal, session)
        check_update(wal, session)
        check_own_entries(wal, session)
        check_blobs(wal, store)
        check_large(wal, store, session)
        check_append_one(wal, store)
        check_checkpoints(wal, session, folder)
        check_rewind(wal, session, folder)
        check_views(wal, store, session, folder)
        check_import(wal, store, folder)
        check_opening(wal, store)
        check_pages(wal, store)
        check_records(wal, store)
        check_wait(wal, store, session)
        check_claims(wal, store, session, folder)
        check_moves(wal, session)
        wal.call("wal_store_accept_damage", store)
        wal.call("wal_sync", store)
        check_async(wal, store, session)
        wal.call("wal_sync", store)
        check_parts(wal, store, folder)
        check_transfer(wal, store, folder)
        check_compact(wal, store, folder)
        check_backup(wal, store, folder)
        wal.free("wal_session_close", fork)
        wal.free("wal_session_close", session)
        wal.call("wal_close", store)
        result = wal.new("wal_migrate_result")
        wal.call("wal_store_migrate", where, None, by_ref(result))
        same((getattr(result, "from"), result.to), (1, 1), "migration")
        check_salvage(wal, where.decode(), folder)
    same(sorted(wal.names - wal.called), [], "functions that are not called")
    same(sorted(wal.called - wal.names), [], "functions that are not declared")
    print("%d functions, %d structures" % (len(wal.called), len(wal.structs)))


main()
