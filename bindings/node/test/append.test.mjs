// Appends and batches: their order, durabilities, expectations and outcomes.

import assert from 'node:assert/strict';
import { createHook } from 'node:async_hooks';
import test from 'node:test';

import { ConflictError, NotFoundError, Store, WalError } from '../index.mjs';
import { atEnd, memoryStore, openStore, rejection, storePath, thrown } from './lib/store.mjs';

async function openAgain(t, name) {
  const store = await Store.open(name);
  atEnd(t, () => store.close());
  return store;
}

test('1,000 appends in flight resolve in order', async (t) => {
  const store = await openStore(t);
  const session = await store.create();
  const resolved = [];
  const appends = [];
  for (let i = 0; i < 1000; i++) {
    const append = session.append({ payload: i });
    append.then((result) => { resolved.push([i, result]); });
    appends.push(append);
  }
  const results = await Promise.all(appends);
  assert.deepEqual(resolved.map(([i]) => i), results.map((_, i) => i));
  for (let i = 1; i < results.length; i++) {
    assert.ok(results[i].sequence > results[i - 1].sequence);
    assert.equal(results[i].appended, 1);
    assert.equal(results[i].duplicates, 0);
    assert.equal(results[i].lastId, appends[i].lastId);
  }
  const entries = session.entries().toArray();
  assert.deepEqual(entries.map((entry) => entry.payload), results.map((_, i) => i));
  assert.deepEqual(entries.map((entry) => entry.id), appends.map((append) => append.lastId));
  assert.ok(store.info().syncs < 500, 'appends share syncs');
});

test('the id of the last entry is known at once', async (t) => {
  const session = memoryStore(t).createSync();
  const made = session.append({ payload: 1 });
  assert.match(made.lastId,
    /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  const time = Number.parseInt(made.lastId.replace('-', '').slice(0, 12), 16);
  assert.ok(Math.abs(time - Date.now()) < 60_000, 'it has the time');
  const given = session.append([{ payload: 1 }, { id: 'given', payload: 2 }]);
  assert.equal(given.lastId, 'given');
  const none = session.commit({ documents: [{ key: 'k', value: 1 }] });
  assert.equal(none.lastId, null);
  assert.deepEqual(await none, { appended: 0, duplicates: 0, sequence: 0, lastId: null });
  assert.equal((await given).lastId, 'given');
  await made;
  const ids = new Set();
  for (let i = 0; i < 1000; i++) {
    ids.add(session.append({ payload: 1 }, { durability: 'written' }).lastId);
  }
  assert.equal(ids.size, 1000);
});

test('an append is a promise of each kind of use', async (t) => {
  const session = memoryStore(t).createSync();
  const append = session.append({ payload: 1 });
  assert.ok(append instanceof Promise);
  assert.equal((await append).appended, 1);
  assert.equal(await append.then((result) => result.appended), 1);
  assert.equal(await append.catch(() => 2).then((result) => result.appended), 1);
  let ended = false;
  await append.finally(() => { ended = true; });
  assert.ok(ended);
  assert.equal(append.then(() => {}).lastId, undefined, 'what comes from it is a plain promise');
});

test('a written and a queued append are read at once and made durable later', async (t) => {
  const store = await openStore(t);
  const session = await store.create();
  const written = session.append({ payload: 1 }, { durability: 'written' });
  assert.equal((await written).appended, 1);
  const queued = session.append({ payload: 2 }, { durability: 'queued' });
  const accepted = { appended: 0, duplicates: 0, sequence: 0, lastId: queued.lastId };
  assert.deepEqual(await queued, accepted);
  await store.flush();
  assert.equal(session.entries().toArray().length, 2);
  await Promise.all([written.durable, queued.durable]);
  assert.equal(session.entries({ durable: true }).toArray().length, 2);
});

test('all that ask for durability in one turn share a sync', async (t) => {
  const store = await openStore(t);
  const session = await store.create();
  const appends = [];
  for (let i = 0; i < 100; i++) {
    appends.push(session.append({ payload: i }, { durability: 'written' }));
  }
  await Promise.all(appends);
  const before = store.info().syncs;
  await Promise.all(appends.map((append) => append.durable));
  assert.ok(store.info().syncs - before <= 2);
  assert.equal(appends[0].durable, appends[0].durable, 'it is made once');
});

test('a durability that nobody waits for rejects nothing', async (t) => {
  const store = await openStore(t);
  const session = await store.create();
  const unhandled = [];
  const note = (reason) => { unhandled.push(reason); };
  process.on('unhandledRejection', note);
  atEnd(t, () => process.off('unhandledRejection', note));
  for (const durability of ['durable', 'written']) {
    const append = session.append({ parentId: 'none', payload: 1 }, { durability });
    void append.durable;
    assert.equal((await rejection(append)).code, 'WAL_ENOPARENT');
    assert.equal((await rejection(append.durable)).code, 'WAL_ENOPARENT');
    const other = session.append({ parentId: 'none', payload: 1 }, { durability });
    void other.durable;
    await rejection(other);
  }
  await new Promise((resolve) => { setTimeout(resolve, 20); });
  assert.deepEqual(unhandled, []);
});

test('expectTail refuses what another writer overtook', async (t) => {
  const session = memoryStore(t).createSync();
  const first = await session.append({ payload: 1 }, { expectTail: null });
  const second = await session.append({ payload: 2 }, { expectTail: first.lastId });
  const error = await rejection(session.append({ payload: 3 }, { expectTail: first.lastId }));
  assert.ok(error instanceof ConflictError);
  assert.ok(error instanceof WalError);
  assert.ok(error instanceof Error);
  assert.equal(error.name, 'ConflictError');
  assert.equal(error.code, 'WAL_ECONFLICT');
  assert.equal(error.actual, second.lastId);
  assert.equal(error.expectation, 'tail');
  assert.match(error.message, /tail|head/);
  assert.match(error.stack, /ConflictError: /);
  const empty = await rejection(session.append({ payload: 3 }, { expectTail: null }));
  assert.equal(empty.actual, second.lastId);
});

test('an id that is taken by other content is refused, by equal content counted', async (t) => {
  const session = memoryStore(t).createSync();
  await session.append({ id: 'a', timestamp: 't', payload: 1 });
  const again = await session.append({ id: 'a', timestamp: 't', payload: 1 });
  assert.deepEqual(again, { appended: 0, duplicates: 1, sequence: again.sequence, lastId: 'a' });
  const error = await rejection(session.append({ id: 'a', timestamp: 't', payload: 2 }));
  assert.equal(error.code, 'WAL_EEXISTS');
  assert.equal(error.actual, 'a');
});

test('a batch is committed whole or not at all', async (t) => {
  const store = memoryStore(t);
  const session = store.createSync({ id: 's', title: 'old' });
  const result = await session.commit({
    entries: [{ id: 'a', payload: 1 }, { id: 'b', payload: 2 }],
    documents: [{ key: 'k', value: 1, expect: 0 }, { key: 'shared', value: 2, store: true }],
    heads: [{ name: 'saved', entryId: 'a', note: 'n', expect: null }],
    change: { title: 'new', metadata: { n: 1 } },
  });
  assert.equal(result.appended, 2);
  assert.equal(session.documents.get('k').value, 1);
  assert.equal(store.documents.get('shared').value, 2);
  assert.equal(session.head('saved'), 'a');
  assert.equal(session.info().title, 'new');
  assert.deepEqual(session.info().metadata, { n: 1 });

  const version = session.documents.get('k').version;
  const error = await rejection(session.commit({
    entries: { id: 'c', payload: 3 },
    documents: [{ key: 'k', value: 2, expect: version - 1 }],
    change: { title: 'newer' },
  }));
  assert.equal(error.code, 'WAL_ECONFLICT');
  assert.equal(error.expectation, 'document');
  assert.equal(error.actual, String(version));
  assert.equal(session.entry('c'), null);
  assert.equal(session.info().title, 'new');

  const head = await rejection(session.commit({
    heads: [{ name: 'saved', entryId: 'b', expect: 'b' }],
  }));
  assert.deepEqual([head.expectation, head.actual], ['head', 'a']);
  const change = await rejection(session.commit({ change: { title: 'x', expectVersion: 1 } }));
  assert.equal(change.expectation, 'metadata');
  assert.equal(change.actual, String(session.info().metadataVersion));

  await session.commit({ documents: [{ key: 'k', delete: true }] });
  assert.equal(session.documents.get('k'), null);
});

test('appendSync overtakes nothing that waits for another call', async (t) => {
  const session = memoryStore(t).createSync();
  await session.append({ id: 'a', payload: 1 });
  const calls = {
    moveHead: () => session.moveHead('a', { name: 'x' }),
    put: () => session.documents.put('k', 1),
    update: () => session.update({ title: 't' }),
    fork: () => session.fork(),
    claim: () => session.claim(),
    unclaim: () => session.unclaim(),
    checkpoint: () => session.checkpoints.setEnabled(false),
  };
  for (const [name, call] of Object.entries(calls)) {
    const before = session.head();
    const called = call();
    const waiting = session.append({ payload: name });
    assert.equal(thrown(() => session.appendSync({ payload: 1 })).code, 'WAL_EBUSY', name);
    assert.equal(session.head(), before);
    await called;
    await waiting;
    assert.equal(session.head(), waiting.lastId);
    await call();
    assert.equal(session.appendSync({ payload: 'after' }).appended, 1, name);
  }
});

test('appendSync waits for what was queued before', async (t) => {
  const store = await openStore(t, { queueLimit: 2 });
  const session = await store.create();
  const appends = [];
  for (let i = 0; i < 100; i++) {
    appends.push(session.append({ payload: i }, { durability: 'queued' }));
  }
  const result = session.appendSync({ id: 'last', payload: 100 });
  const { sequence } = result;
  assert.deepEqual(result, { appended: 1, duplicates: 0, sequence, lastId: 'last' });
  assert.deepEqual(session.entries().toArray().map((entry) => entry.payload),
    Array.from({ length: 101 }, (_, i) => i));
  await Promise.all(appends);
  assert.throws(() => session.appendSync({ payload: 1 }, { expectTail: 'x' }), ConflictError);
  assert.throws(() => session.appendSync([]), { code: 'WAL_EINVAL' });
  const made = session.appendSync([{ payload: 1 }, { payload: 2 }], { durability: 'written' });
  assert.equal(session.head(), made.lastId);
});

test('a full queue keeps what comes in order and does not block', async (t) => {
  const store = await openStore(t, { queueLimit: 1 });
  const session = await store.create();
  const other = await store.create();
  const settled = [];
  const calls = [];
  for (let i = 0; i < 300; i++) {
    const durability = i % 10 === 9 ? 'durable' : 'queued';
    calls.push(session.append({ payload: i }, { durability }).then(() => { settled.push(i); }));
  }
  const sync = store.sync();
  calls.push(other.append({ payload: 'x' }));
  assert.ok(settled.length === 0);
  await sync;
  assert.equal(session.entries({ durable: true }).toArray().length, 300);
  await Promise.all(calls);
  assert.deepEqual(session.entries().toArray().map((entry) => entry.payload),
    Array.from({ length: 300 }, (_, i) => i));
  const queued = settled.filter((i) => i % 10 !== 9);
  assert.deepEqual(queued, queued.toSorted?.((a, b) => a - b) ?? [...queued].sort((a, b) => a - b));
});

test('the failure of a queued append is reported by the next', async (t) => {
  const store = await openStore(t);
  const session = await store.create();
  await session.append({ parentId: 'none', payload: 1 }, { durability: 'queued' });
  const error = await rejection(store.flush());
  assert.equal(error.code, 'WAL_ENOPARENT');
  await store.flush();
});

test('calls without a ticket begin in order, too', async (t) => {
  const session = (await openStore(t)).createSync({ id: 's' });
  const calls = [session.append([{ id: 'a', payload: 1 }, { id: 'b', payload: 2 }])];
  calls.push(session.moveHead('a'));
  calls.push(session.append({ id: 'c', payload: 3 }));
  for (let i = 0; i < 20; i++) {
    calls.push(session.documents.put('k', i));
  }
  calls.push(session.commit({ documents: [{ key: 'k', value: 'last' }] }));
  const gated = session.append({ payload: 4 });
  assert.match(gated.lastId, /^[0-9a-f-]{36}$/);
  const results = await Promise.all(calls);
  assert.equal(results[1], 'b');
  assert.equal(session.entry('c').parentId, 'a');
  assert.equal(session.documents.get('k').value, 'last');
  assert.deepEqual(session.documents.list({ history: true }).map((one) => one.value),
    ['last', ...Array.from({ length: 20 }, (_, i) => 19 - i)]);
  const versions = results.slice(3, 23);
  assert.deepEqual(versions, [...versions].sort((a, b) => a - b));
  await gated;
  assert.equal(session.entry(gated.lastId).parentId, 'c');
});

test('an update by a function that is asynchronous is refused', async (t) => {
  const session = memoryStore(t).createSync({ schemaVersion: 1 });
  for (const change of [async () => ({ title: 'late' }), Promise.resolve({ title: 'late' })]) {
    assert.equal((await rejection(session.update(change))).code, 'WAL_EINVAL');
  }
  const error = await rejection(session.migrate(2, async () => ({ title: 'late' })));
  assert.equal(error.code, 'WAL_EINVAL');
  assert.deepEqual([session.info().title, session.info().schemaVersion], ['', 1]);
});

test('changes of batches follow each other, and what was asked for before', async (t) => {
  const name = storePath(t);
  const store = await openAgain(t, name);
  const session = await store.create({ id: 's' });
  const { metadataVersion } = session.info();
  const order = [];
  const done = (what) => () => { order.push(what); };
  const calls = [
    session.update({ title: 'a', metadata: { n: 1 } }).then(done('update')),
    session.commit({ change: { title: 'b' } }).then(done('first')),
    session.commit({ entries: { id: 'x', payload: 1 }, change: { title: 'c' } },
      { durability: 'queued' }).then(done('second')),
    session.append({ id: 'y', payload: 2 }).then(done('append')),
    session.commit({ change: { project: 'p' } }).then(done('third')),
  ];
  await Promise.all(calls);
  assert.deepEqual(order, ['update', 'first', 'second', 'append', 'third']);
  const { title, project, metadata } = session.info();
  assert.deepEqual([title, project, metadata], ['c', 'p', { n: 1 }]);
  assert.deepEqual([...session].map(({ id }) => id), ['x', 'y']);

  const others = Array.from({ length: 3 }, () => store.session('s'));
  others.push((await openAgain(t, name)).session('s'));
  const raced = others.map(async (one, i) => {
    for (let round = 0; round < 20; round++) {
      const id = `${i}-${round}`;
      const { appended, lastId } = await one.commit({ entries: { id, payload: 1 },
        change: { title: id } }, { durability: ['durable', 'written', 'queued'][round % 3] });
      assert.deepEqual([appended, lastId], [1, id]);
    }
  });
  await Promise.all(raced);
  assert.equal(session.entries({ mode: 'all' }).toArray().length, 82);
  const stale = { change: { title: 'z', expectVersion: metadataVersion } };
  assert.equal((await rejection(session.commit(stale))).expectation, 'metadata');
  assert.match(session.info().title, /^[0-3]-19$/);
});

test('an update begins again when another writer was faster', async (t) => {
  const name = storePath(t);
  const stores = await Promise.all([Store.open(name), Store.open(name)]);
  atEnd(t, () => Promise.all(stores.map((store) => store.close())));
  await stores[0].create({ id: 's', metadata: { n: 0 } });
  const sessions = stores.map((store) => store.session('s'));
  sessions.push(stores[0].session('s'));
  await Promise.all(sessions.map(async (session) => {
    for (let i = 0; i < 20; i++) {
      await session.update((now) => ({ metadata: { n: now.metadata.n + 1 } }));
    }
  }));
  assert.deepEqual(sessions[1].info().metadata, { n: 60 });
  await sessions[0].update({ title: 'a title', cwd: '/x', project: 'p' });
  const info = sessions[0].info();
  assert.deepEqual([info.title, info.cwd, info.project, info.metadata.n],
    ['a title', '/x', 'p', 60]);
  const failure = new Error('of the caller');
  assert.equal(await rejection(sessions[0].update(() => { throw failure; })), failure);
});

test('a session that is not there is not found', async (t) => {
  const store = memoryStore(t);
  assert.throws(() => store.session('none'), NotFoundError);
  assert.equal(store.latest(), null);
  const session = store.createSync({ id: 's' });
  await session.delete();
  assert.equal((await rejection(session.append({ payload: 1 }))).code, 'WAL_ENOTFOUND');
  assert.throws(() => session.info(), NotFoundError);
});

// Calls a function while outcomes are reported, once.
function callInReport(call) {
  let settled = 0;
  const hook = createHook({ init() {}, promiseResolve() {
    if (++settled === 6) {
      hook.disable();
      call();
    }
  } });
  hook.enable();
}

for (const [how, call] of [
  ['closes the store', (store) => store.closeSync()],
  ['appends', (store, session) => session.appendSync({ payload: 'within' })],
]) {
  test(`a hook that ${how} while outcomes are reported changes none`, async (t) => {
    const store = memoryStore(t, { queueLimit: 8 });
    const session = await store.create();
    const appends = Array.from({ length: 600 }, (_, i) =>
      session.append({ id: `e${i}`, payload: i }));
    callInReport(() => call(store, session));
    const results = await Promise.all(appends);
    assert.deepEqual(results.map(({ appended, lastId }) => [appended, lastId]),
      appends.map((_, i) => [1, `e${i}`]));
  });
}

test('a timestamp is a text or a Date', async (t) => {
  const session = await memoryStore(t).create();
  await session.append({ id: 'a', payload: 1, timestamp: new Date(86_400_000) });
  await session.append({ id: 'b', payload: 2, timestamp: 'then' });
  assert.deepEqual([...session].map((entry) => entry.timestamp),
    ['1970-01-02T00:00:00.000Z', 'then']);
  for (const timestamp of [5, {}, new Date(NaN)]) {
    const error = await rejection(session.append({ payload: 3, timestamp }));
    assert.match(error.message, /timestamp/);
    assert.equal(error.code, 'WAL_EINVAL');
  }
});

test('an id of a wrong type is named', async (t) => {
  const session = await memoryStore(t).create();
  for (const name of ['id', 'parentId']) {
    const error = await rejection(session.append({ payload: 1, [name]: 5 }));
    assert.match(error.message, new RegExp(`^${name} is the id of an entry`));
  }
  const error = await rejection(session.append({ payload: 1 }, { expectTail: 5 }));
  assert.match(error.message, /^expectTail is the id of an entry/);
});
