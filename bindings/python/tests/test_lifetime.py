"""Closing, use after close, cycles, collection, the end of the interpreter, pickling."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import textwrap
import warnings
import weakref

import pytest

import agentwal


def test_close__calls_after_it_raise_closed(tmp_path):
    store = agentwal.open(tmp_path / "store")
    session = store.create(cwd=tmp_path)
    entry_id = session.append({"n": 1}).last_id
    entry = session[0]
    iterator, documents = iter(session), session.documents
    blob, writer = store.blobs.open(store.blobs.put(b"abc")), store.blobs.create()
    view = session.view(dialect="claude", root=tmp_path / "view")
    followed = store.follow_import(tmp_path / "view")
    store.close()
    store.close()
    calls = [store.info, store.create, lambda: store.session("x"), store.list, store.sync,
             store.flush, store.claims, lambda: store.blobs.put(b""), store.completion_fd,
             lambda: store.compact(), lambda: store.backup(tmp_path / "copy"), store.views,
             lambda: store.import_files(tmp_path), lambda: next(store.sessions()), session.info,
             lambda: session.append({}), lambda: session.submit({}), lambda: session[0],
             lambda: len(session), lambda: list(session), session.head, session.heads,
             session.fork, lambda: session.entry(entry_id), session.trash, session.delete,
             session.claim, session.unclaim, lambda: session.update(title="x"),
             lambda: session.redact(entry_id), lambda: documents.get("x"),
             lambda: documents.put("x", 1), documents.list, lambda: next(iterator),
             iterator.remaining, lambda: blob.read(), lambda: blob.size, lambda: writer.write(b""),
             writer.finish, view.flush, view.path, view.import_changes, view.losses,
             lambda: followed.next(0), followed.info, session.checkpoints.list,
             lambda: session.checkpoints.create("x"), lambda: session.rewind("x"), session.diff,
             lambda: session.export(dialect="claude"), lambda: store.merge(store)]
    for number, call in enumerate(calls):
        with pytest.raises(agentwal.Closed) as caught:
            call()
        assert caught.value.code == "WAL_ECLOSED", number
    assert entry.payload == {"n": 1} and bytes(entry.payload_view) == b'{"n":1}'
    for handle in (session, blob, writer, view, followed):
        handle.close()
        handle.close()


def test_close__of_a_session_ends_that_handle_only(store):
    with store.create(id="s") as session:
        session.append({"n": 1})
        iterator = iter(session)
    with pytest.raises(agentwal.Closed, match="a session was closed"):
        session.info()
    assert next(iterator).payload == {"n": 1}
    assert len(store.session("s")) == 1


def test_close__iterator_ends_even_with_entries_read_ahead(tmp_path):
    with agentwal.open(tmp_path / "store") as store:
        session = store.create()
        session.append_many(range(100))
        iterator = iter(session)
        next(iterator)
    with pytest.raises(agentwal.Closed):
        next(iterator)


def test_exit__exception_of_the_block_is_raised(tmp_path):
    with pytest.raises(RuntimeError, match="of the block"):
        with agentwal.open(tmp_path / "store") as store:
            raise RuntimeError("of the block")
    assert not store.is_open


def test_objects__keep_their_store_open(tmp_path):
    session = agentwal.open(tmp_path / "store").create(id="s")
    session.append_many(range(1000), durability="queued")
    count = 0
    for entry in agentwal.open(tmp_path / "store", read_only=True).session("s"):
        count += 1
    assert count <= 1000
    documents = session.documents
    blobs = session.store.blobs
    store = session.store
    del session
    gc.collect()
    documents.put("key", 1)
    blobs.put(b"x")
    store.close()


def test_collection__closes_the_store_and_warns(tmp_path):
    store = agentwal.open(tmp_path / "store")
    store.create(id="s").append({"n": 1}, durability="queued")
    with pytest.warns(ResourceWarning, match="unclosed store"):
        del store
        gc.collect()
    with agentwal.open(tmp_path / "store", lock_timeout=0.001) as store:
        assert len(store.session("s")) == 1


def test_collection__of_cycles(store, tmp_path):
    """Handles in cycles are collected, and close what they hold."""
    class Holder:
        pass

    session = store.create(id="s")
    session.append({"n": 1})
    references = []
    for make in (lambda: session[0], lambda: iter(session), lambda: store.session("s"),
                 lambda: store.blobs.open(store.blobs.put(b"x")),
                 lambda: session.submit({"n": 1}), lambda: session.follow(),
                 lambda: session.view(dialect="claude", root=tmp_path),
                 lambda: store.follow_import(tmp_path)):
        holder = Holder()
        holder.made, holder.itself = make(), holder
        references.append(weakref.ref(holder))
    del holder
    gc.collect()
    assert [reference() for reference in references] == [None] * 8


def test_collection__of_an_import_that_its_function_refers_to(store, tmp_path):
    class Project:
        def __call__(self, directory):
            return None

    project = Project()
    project.followed = store.follow_import(tmp_path, project=project)
    project.followed.next(0)
    reference = weakref.ref(project)
    del project
    gc.collect()
    assert reference() is None


def test_collection__of_an_entry_that_its_payload_contains(session):
    class Tracker:
        pass

    session.append({"list": []})
    entry = session[0]
    tracker = Tracker()
    entry.payload["list"] += [entry, tracker]
    reference = weakref.ref(tracker)
    del entry, tracker
    gc.collect()
    assert reference() is None


def test_collection__of_an_iterator_that_its_owner_refers_to(store, session):
    class Owner(agentwal.Session):
        pass

    owner = Owner(store, store.session(session.id)._handle)
    owner.iterator = iter(owner)
    reference = weakref.ref(owner)
    del owner
    gc.collect()
    assert reference() is None


def test_memoryview__is_valid_after_everything_else_is_gone(tmp_path):
    store = agentwal.open(tmp_path / "store")
    session = store.create()
    session.append({"text": "x" * 500000})
    session.append({"n": 1})
    views = [entry.payload_view for entry in session]
    store.close()
    del store, session
    gc.collect()
    assert [len(view) for view in views] == [500011, 7] and bytes(views[1]) == b'{"n":1}'


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle__is_refused_with_a_sentence(store, session, tmp_path, protocol):
    session.append({"n": 1})
    for thing in (store, session, session[0], iter(session), session.submit({}),
                  session.documents, store.blobs, store.blobs.create(), session.entries(),
                  session.view(dialect="claude", root=tmp_path),
                  store.follow_import(tmp_path)):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(thing, protocol)
        with pytest.raises(agentwal.InvalidType):
            copy.copy(thing)
    info = session.info()  # once: what was submitted above may change it
    assert pickle.loads(pickle.dumps(info, protocol)) == info


# ----------------------------------------- the end of the interpreter ---

PREFIX = "import agentwal, sys, os, threading\npath = sys.argv[1]\n"


@pytest.mark.parametrize("program", [
    "store = agentwal.open(path); session = store.create(id='s')\n"
    "session.append({'n': 1}, durability='queued')",
    "store = agentwal.open(path); store.create(id='s').submit({'n': 1}, durability='queued')",
    "class Holder: pass\n"
    "holder = Holder(); holder.itself = holder\n"
    "holder.session = agentwal.open(path).create(id='s')\n"
    "holder.iterator = iter(holder.session)\n"
    "holder.session.append({'n': 1}, durability='queued')",
    "store = agentwal.open(path); session = store.create(id='s')\n"
    "session.append({'n': 1}); entry = session[0]; entry.payload['self'] = entry\n"
    "view = entry.payload_view; iterator = iter(session)",
    "store = agentwal.open(path); session = store.create(id='s')\n"
    "session.append({'n': 1})\n"
    "threading.Thread(target=lambda: list(session.follow()), daemon=True).start()",
    "store = agentwal.open(path); session = store.create(id='s')\n"
    "session.append({'n': 1})\n"
    "def append():\n"
    "    while True: session.append({'n': 1}, durability='written')\n"
    "for _ in range(4): threading.Thread(target=append, daemon=True).start()",
    "import atexit\n"
    "atexit.register(lambda: print('later', store.is_open))\n"
    "store = agentwal.open(path); session = store.create(id='s'); session.append({'n': 1})",
    "sys.modules['kept'] = agentwal.open(path); session = sys.modules['kept'].create(id='s')\n"
    "session.append({'n': 1}, durability='queued'); sys.exit(0)",
])
def test_exit__with_a_store_open(tmp_path, run_python, program):
    run_python(PREFIX + program, tmp_path / "store")
    with agentwal.open(tmp_path / "store") as store:
        assert len(store.session("s")) >= 1 and store.info().tail == "clean"


def test_exit__closes_stores_before_what_was_registered_earlier(tmp_path, run_python):
    program = textwrap.dedent("""
        import atexit, sys, threading
        atexit.register(lambda: print("open:", store.is_open))
        import agentwal
        store = agentwal.open(sys.argv[1])
        session = store.create(id="s")
        session.append({"n": 1}, durability="queued")
        hold = lambda session: threading.Event().wait()
        threading.Thread(target=hold, args=(session,), daemon=True).start()
    """)
    assert run_python(program, tmp_path / "store").stdout == "open: False\n"
    with agentwal.open(tmp_path / "store") as store:
        assert len(store.session("s")) == 1


def test_exit__by_an_exception_closes_the_store(tmp_path, run_python):
    program = PREFIX + textwrap.dedent("""
        store = agentwal.open(path)
        store.create(id="s").append({"n": 1}, durability="queued")
        raise RuntimeError("end")
    """)
    done = run_python(program, tmp_path / "store", check=False)
    assert done.returncode == 1 and "RuntimeError: end" in done.stderr
    with agentwal.open(tmp_path / "store") as store:
        assert len(store.session("s")) == 1


def test_import__twice_in_one_process(run_python):
    program = textwrap.dedent("""
        import gc, sys
        for _ in range(5):
            for name in [name for name in sys.modules if name.split(".")[0] == "agentwal"]:
                del sys.modules[name]
            import agentwal
            with agentwal.memory() as store:
                store.create().append({"n": 1})
            try:
                store.info()
            except agentwal.Closed:
                pass
            del store, agentwal
            gc.collect()
    """)
    run_python(program)


def test_warnings__none_when_all_is_closed(tmp_path, run_python):
    program = PREFIX + textwrap.dedent("""
        with agentwal.open(path) as store, store.create() as session:
            session.append({"n": 1})
            list(session)
    """)
    done: subprocess.CompletedProcess[str] = run_python(
        program, tmp_path / "store", options=("-X", "dev", "-W", "error"))
    assert done.stderr == ""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agentwal.memory().close()


def test_close__that_is_interrupted_is_completed_at_the_end(run_python, tmp_path):
    program = textwrap.dedent("""
        import builtins, os, signal, sys, threading, time, agentwal

        builtins.store = store = agentwal.open(sys.argv[1])
        session = store.create(id="s")
        started = threading.Event()

        def change(now):
            started.set()
            time.sleep(1.0)
            return {"title": "late"}

        threading.Thread(target=lambda: session.update(change)).start()
        started.wait()
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            store.close()
        except KeyboardInterrupt:
            print("interrupted")
        close = agentwal.Store.close
        agentwal.Store.close = lambda self: print("completed", close(self))
    """)
    assert run_python(program, tmp_path / "store").stdout == "interrupted\ncompleted None\n"
