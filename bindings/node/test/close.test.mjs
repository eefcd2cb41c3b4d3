// Closing a store and what came from it.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import test from 'node:test';

import { Store } from '../index.mjs';
import {
  memoryStore, openStore, rejection, storePath, temporaryFolder, thrown,
} from './lib/store.mjs';

test('close completes every append, then resolves', async (t) => {
  const name = storePath(t);
  const store = await Store.open(name, { queueLimit: 4 });
  const session = await store.create({ id: 's' });
  const order = [];
  const calls = [];
  for (let i = 0; i < 100; i++) {
    const durability = ['durable', 'written', 'queued'][i % 3];
    calls.push(session.append({ payload: i }, { durability }).then(() => { order.push(i); }));
  }
  calls.push(session.documents.put('k', 1).then(() => { order.push('put'); }));
  calls.push(session.append({ payload: 100 }).then(() => { order.push('gated'); }));
  calls.push(store.sync());
  await store.close();
  assert.equal(order.length, 102, 'all were answered before');
  await Promise.all(calls);
  const again = await Store.open(name);
  assert.equal(again.session('s').entries().toArray().length, 101);
  assert.equal(again.session('s').documents.get('k').value, 1);
  await again.close();
});

test('close waits for calls that run in threads', async (t) => {
  const name = storePath(t);
  const store = await Store.open(name);
  const session = await store.create({ id: 's' });
  const calls = [session.append({ id: 'a', payload: 1 }), session.fork({ id: 'f', at: 'a' })];
  for (let i = 0; i < 30; i++) {
    calls.push(store.create({ id: `s${i}` }));
  }
  const opened = store.openOrCreate({ id: 's30' });
  await store.close();
  await Promise.all(calls);
  const { session: last } = await opened;
  assert.equal(last.id, 's30', 'its handle is closed, and has its id');
  const again = await Store.open(name);
  assert.equal(again.list().length, 33);
  await again.close();
});

test('close runs alone, in many races with calls in threads', async (t) => {
  for (let round = 0; round < 100; round++) {
    const store = memoryStore(t);
    const session = store.createSync();
    const calls = [session.append({ payload: 1 }, { durability: 'queued' })];
    for (let i = 0; i < 1 + round % 6; i++) {
      calls.push(session.documents.put('k', i), store.create(), store.sync());
    }
    await store.close();
    await Promise.all(calls);
  }
});

test('close may be called again, at the same time and later', async (t) => {
  const store = await openStore(t);
  const both = [store.close(), store.close()];
  assert.equal(store.isOpen, false);
  await Promise.all(both);
  await store.close();
  store.closeSync();
  const other = await openStore(t);
  other.closeSync();
  other.closeSync();
  await other.close();
});

for (const turns of [0, 1, 2, 5, 20]) {
  test(`closeSync ends a close that was called ${turns} turns before`, async (t) => {
    const name = storePath(t);
    const store = await Store.open(name, { queueLimit: 4 });
    const session = await store.create({ id: 's' });
    const calls = Array.from({ length: 100 }, (_, i) => session.append({ payload: i }));
    const closing = store.close();
    for (let i = 0; i < turns; i++) {
      await new Promise((resolve) => { setImmediate(resolve); });
    }
    store.closeSync();
    const again = Store.openSync(name);
    assert.equal(again.session('s').entries().toArray().length, 100);
    again.closeSync();
    await closing;
    await Promise.all(calls);
  });
}

test('a durability that is asked for after the close is known', async (t) => {
  const store = await openStore(t);
  const session = await store.create();
  const append = session.append({ payload: 1 }, { durability: 'written' });
  await append;
  await store.close();
  await append.durable;
  const other = await openStore(t);
  const last = (await other.create()).append({ payload: 1 }, { durability: 'queued' });
  other.closeSync();
  await last.durable;
});

test('calls after the close fail with WAL_ECLOSED', async (t) => {
  const store = memoryStore(t);
  const session = store.createSync({ id: 's' });
  await session.append([{ id: 'a', payload: 1 }, { payload: 2 }]);
  const iterator = session.entries()[Symbol.iterator]();
  iterator.next();
  const late = session.entries()[Symbol.iterator]();
  const following = session.follow();
  const waiting = rejection(following.next());
  const watching = rejection(store.follow().next());
  await new Promise((resolve) => { setImmediate(resolve); });
  const closing = store.close();

  const synchronous = {
    info: () => store.info(), createSync: () => store.createSync(),
    session: () => store.session('s'),
    latest: () => store.latest(), list: () => store.list(), follow: () => store.follow(),
    get: () => store.documents.get('k'), documents: () => store.documents.list(),
    sessions: () => [...store.sessions()], sessionInfo: () => session.info(),
    appendSync: () => session.appendSync({ payload: 1 }), entries: () => [...session.entries()],
    entry: () => session.entry('a'), head: () => session.head(), heads: () => session.heads(),
    sessionFollow: () => session.follow(), sessionGet: () => session.documents.get('k'),
    iteration: () => [...session], late: () => late.next(),
  };
  const promised = {
    create: () => store.create(), openOrCreate: () => store.openOrCreate(),
    undelete: () => store.undelete('s'), sync: () => store.sync(), flush: () => store.flush(),
    put: () => store.documents.put('k', 1), deleteDocument: () => store.documents.delete('k'),
    append: () => session.append({ payload: 1 }),
    commit: () => session.commit({ entries: { payload: 1 } }), fork: () => session.fork(),
    moveHead: () => session.moveHead('a'), update: () => session.update({ title: 't' }),
    migrate: () => session.migrate(2), redact: () => session.redact('a'),
    unredact: () => session.unredact('a'),
    compact: () => session.compact({ firstKept: 'a', summary: 's' }),
    claim: () => session.claim(), unclaim: () => session.unclaim(), trash: () => session.trash(),
    delete: () => session.delete(), sessionPut: () => session.documents.put('k', 1),
  };
  const check = async () => {
    for (const [name, call] of Object.entries(synchronous)) {
      assert.equal(thrown(call).code, 'WAL_ECLOSED', name);
    }
    for (const [name, call] of Object.entries(promised)) {
      const promise = call();
      assert.ok(promise instanceof Promise, name);
      assert.equal((await rejection(promise)).code, 'WAL_ECLOSED', name);
    }
  };
  await check();
  await closing;
  await check();
  assert.equal((await waiting).code, 'WAL_ECLOSED');
  assert.equal((await watching).code, 'WAL_ECLOSED');
  session.close();
  session.close();
});

// Descriptors below a folder, and threads of the library and the addon.
function resources(folder) {
  const files = readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return '';
    }
  });
  const threads = readdirSync('/proc/self/task').map((id) => {
    try {
      return readFileSync(`/proc/self/task/${id}/comm`, 'utf8').trim();
    } catch {
      return '';
    }
  });
  return [...files.filter((name) => name.startsWith(folder) || name.includes('eventfd')),
    ...threads.filter((name) => name.startsWith('wal-'))];
}

for (const how of ['close', 'closeSync']) {
  test(`${how} ends threads and closes descriptors`, async (t) => {
    const name = storePath(t);
    const before = resources(name);
    const store = await Store.open(name);
    const session = await store.create();
    await session.append({ payload: 1 });
    const ended = rejection(session.follow().next());
    const durable = rejection(store.follow({ durability: 'durable' }).next());
    await new Promise((resolve) => { setTimeout(resolve, 20); });
    assert.ok(resources(name).length > before.length + 4);
    await store[how]();
    assert.deepEqual(resources(name).sort(), before.sort());
    assert.equal((await ended).code, 'WAL_ECLOSED');
    assert.equal((await durable).code, 'WAL_ECLOSED');
  });
}

// Maps of stores in memory.
const memories = () => readFileSync('/proc/self/maps', 'utf8')
  .split('\n').filter((line) => line.includes('/memfd:agentwal')).length;

for (const how of ['close', 'closeSync']) {
  test(`${how} drops a store in memory with open handles`, async (t) => {
    const before = memories();
    const store = memoryStore(t);
    const session = await store.create({ id: 's' });
    await session.append([{ payload: 1 }, { payload: 2 }]);
    const digest = await store.blobs.put('content');
    const held = {
      session, iterator: session[Symbol.iterator](), sessions: store.sessions()[Symbol.iterator](),
      reader: store.blobs.open(digest), writer: await store.blobs.create(),
      view: session.view({ dialect: 'claude', root: temporaryFolder(t) }),
      // Its handle is made after the close.
      opening: store.openOrCreate({ id: 't' }),
    };
    held.iterator.next();
    held.sessions.next();
    assert.ok(memories() > before);
    await store[how]();
    const late = await held.opening;
    assert.equal(memories(), before);
    assert.equal(thrown(() => held.iterator.next() && held.iterator.next()).code, 'WAL_ECLOSED');
    assert.equal((await rejection(held.view.flush())).code, 'WAL_ECLOSED');
    for (const handle of [late.session, session, held.reader, held.view]) {
      handle.close();
    }
    held.iterator.return();
    held.sessions.return();
    held.writer.discard();
  });
}

test('sessions are closed while the store closes', async (t) => {
  for (let round = 0; round < 20; round++) {
    const store = memoryStore(t);
    const sessions = Array.from({ length: 50 }, () => store.createSync());
    sessions[0].append({ payload: 1 }, { durability: 'queued' });
    const iterators = sessions.map((session) => session.entries()[Symbol.iterator]());
    const closing = store.close();
    for (const [i, session] of sessions.entries()) {
      session.close();
      iterators[i].return();
      if (i % 10 === 0) {
        await new Promise((resolve) => { setImmediate(resolve); });
      }
    }
    await closing;
  }
});

test('a closed session fails alone, and what it was asked for is completed', async (t) => {
  const store = await openStore(t);
  const session = await store.create({ id: 's' });
  const other = store.session('s');
  const calls = [session.append({ id: 'a', payload: 1 }), session.moveHead(null),
    session.append({ id: 'b', payload: 2 }), session.fork({ id: 'f', at: 'a' })];
  session.close();
  assert.equal(thrown(() => session.info()).code, 'WAL_ECLOSED');
  assert.equal((await rejection(session.append({ payload: 1 }))).code, 'WAL_ECLOSED');
  await Promise.all(calls);
  assert.equal(other.entry('b').parentId, null);
  assert.equal(store.session('f').head(), 'a');
});

test('an iterator may be left, and its session closed before it', async (t) => {
  const store = await openStore(t);
  const session = await store.create({ id: 's' });
  await session.append(Array.from({ length: 1000 }, (_, i) => ({ payload: i })));
  for (const entry of session.entries()) {
    if (entry.payload === 3) {
      break;
    }
  }
  const iterator = session.entries()[Symbol.iterator]();
  iterator.next();
  session.close();
  assert.equal([...iterator].length, 999);
  assert.deepEqual(iterator.next(), { done: true, value: undefined });
});

test('stores of a program are closed by using, in any order', async (t) => {
  if (Symbol.asyncDispose === undefined) {
    return;
  }
  const store = await openStore(t);
  const session = await store.create();
  await store[Symbol.asyncDispose]();
  session[Symbol.dispose]();
  assert.equal(store.isOpen, false);
});

test('a store that is closed in one place can be opened in the next', async (t) => {
  const name = storePath(t);
  for (let i = 0; i < 10; i++) {
    const store = await Store.open(name, { exclusive: i === 0 });
    const { session } = await store.openOrCreate({ id: 's' });
    session.append({ payload: i }, { durability: 'queued' });
    if (i % 2 === 0) {
      await store.close();
    } else {
      store.closeSync();
    }
  }
  const store = await Store.open(name);
  assert.equal(store.session('s').entries().toArray().length, 10);
  await store.close();
});
