// Lists of sessions, forks, the trash, claims and migrations.

import assert from 'node:assert/strict';
import test from 'node:test';

import { ConflictError, LockedError, Session, Store } from '../index.mjs';
import { atEnd, memoryStore, openStore, rejection, storePath, thrown } from './lib/store.mjs';

test('changes at once are each made once', async (t) => {
  const store = await openStore(t);
  const session = await store.create({ metadata: { count: 0 } });
  let calls = 0;
  const change = (now) => {
    calls += 1;
    return { metadata: { count: now.metadata.count + 1 } };
  };
  await Promise.all(Array.from({ length: 1200 }, () => session.update(change)));
  assert.equal(session.info().metadata.count, 1200);
  assert.equal(calls, 1200);
});

test('a list has pages', async (t) => {
  const store = memoryStore(t);
  for (let i = 0; i < 250; i++) {
    store.createSync({ id: `s${String(i).padStart(3, '0')}`, created: 1_700_000_000_000 + i });
  }
  const ids = Array.from({ length: 250 }, (_, i) => `s${String(249 - i).padStart(3, '0')}`);
  const first = store.list();
  assert.deepEqual(first.map((info) => info.id), ids.slice(0, 100));
  assert.equal(typeof first.next, 'string');
  const found = [];
  let after;
  do {
    const page = store.list({ limit: 50, after });
    found.push(...page.map((info) => info.id));
    after = page.next ?? undefined;
  } while (after !== undefined);
  assert.deepEqual(found, ids);
  assert.equal(store.list({ limit: 250 }).next, null, 'a page that ends at the end');
  assert.deepEqual([...store.sessions()].map((info) => info.id), ids);
  const turns = [];
  for await (const info of store.sessions({ limit: 7 })) {
    turns.push(info.id);
  }
  assert.deepEqual(turns, ids.slice(0, 7));
  for (const limit of [0, -1, 1.5, 'x']) {
    assert.equal(thrown(() => store.list({ limit })).code, 'WAL_EINVAL');
  }
  assert.equal(thrown(() => store.list({ after: 'x' })).code, 'WAL_EINVAL');
});

test('a list is filtered', async (t) => {
  const store = memoryStore(t);
  const time = 1_700_000_000_000;
  store.createSync({ id: 'a', cwd: '/x', project: 'p', source: 'one', created: time });
  store.createSync({ id: 'ab', cwd: '/y', project: 'p', parentId: 'a', created: time + 1 });
  store.createSync({ id: 'c', cwd: '/x', source: 'two', created: time + 2, metadata: { m: 1 } });
  const ids = (options) => store.list(options).map((info) => info.id);
  assert.deepEqual(ids({ cwd: '/x' }), ['c', 'a']);
  assert.deepEqual(ids({ project: 'p' }), ['ab', 'a']);
  assert.deepEqual(ids({ prefix: 'a' }), ['ab', 'a']);
  assert.deepEqual(ids({ source: 'two' }), ['c']);
  assert.deepEqual(ids({ parent: 'a' }), ['ab']);
  assert.deepEqual(ids({ changedAfter: new Date(time + 1) }), ['c']);
  assert.deepEqual(ids({ changedAfter: time }), ['c', 'ab']);
  assert.deepEqual(ids({ recordedAfter: store.session('ab').info().lastSequence }), ['c']);
  assert.equal(store.list({ prefix: 'c' })[0].metadata, null);
  assert.equal(store.latest().id, 'c');
  assert.equal(store.latest({ cwd: '/y' }).id, 'ab');
  assert.equal(store.latest({ cwd: '/z' }), null);
});

test('openOrCreate creates once', async (t) => {
  const store = memoryStore(t);
  const first = await store.openOrCreate({ id: 's', cwd: '/x', title: 'A' });
  assert.equal(first.created, true);
  assert.ok(first.session instanceof Session);
  const second = await store.openOrCreate({ id: 's', title: 'B' });
  assert.equal(second.created, false);
  assert.equal(second.session.info().title, 'A');
  assert.equal((await store.openOrCreate({ cwd: '/x' })).session.id, 's');
  assert.equal((await store.openOrCreate({ cwd: '/y' })).created, true);
  const error = await rejection(store.create({ id: 's' }));
  assert.equal(error.code, 'WAL_EEXISTS');
  assert.equal(error.actual, 's');
});

test('a fork shares a branch', async (t) => {
  const store = memoryStore(t);
  const session = store.createSync({ id: 's', title: 'T', cwd: '/x', metadata: { m: 1 } });
  await session.append([{ id: 'a', payload: 1 }, { id: 'b', payload: 2 }]);
  const fork = await session.fork({ id: 'f', at: 'a', title: 'F' });
  await fork.append({ id: 'c', payload: 3 });
  assert.deepEqual(fork.entries().toArray().map((entry) => entry.id), ['a', 'c']);
  assert.deepEqual(session.entries().toArray().map((entry) => entry.id), ['a', 'b']);
  const info = fork.info();
  assert.deepEqual([info.parentId, info.title, info.cwd], ['s', 'F', '/x']);
  assert.deepEqual(info.metadata, { m: 1 });
  assert.deepEqual([info.isFork, info.inherited], [true, 1]);
  assert.deepEqual(store.list({ lineageOf: 'f' }).map((one) => one.id), ['s']);
  assert.equal((await fork.fork()).head(), 'c');
  const { session: into, result } =
    await session.compact({ firstKept: 'b', summary: 'was', into: { id: 'i' } });
  assert.equal(into.id, 'i');
  assert.equal(into.head(), result.lastId);
  assert.equal(session.head(), 'b');
});

test('the trash keeps a session, a deletion does not', async (t) => {
  const store = memoryStore(t);
  const session = store.createSync({ id: 's' });
  await session.append({ payload: 1 });
  await session.trash();
  assert.equal(session.info().isTrashed, true);
  assert.deepEqual(store.list().map((info) => info.id), []);
  assert.deepEqual(store.list({ trash: true }).map((info) => info.id), ['s']);
  assert.equal(thrown(() => store.session('s')).code, 'WAL_ETRASHED');
  assert.equal((await rejection(session.append({ payload: 1 }))).code, 'WAL_ETRASHED');
  await store.undelete('s');
  await session.append({ payload: 2 });
  assert.equal((await rejection(store.undelete('s'))).code, 'WAL_ENOTFOUND');
  await session.delete();
  assert.equal(thrown(() => store.session('s')).code, 'WAL_ENOTFOUND');
  assert.equal((await rejection(session.delete())).code, 'WAL_ENOTFOUND');
});

test('a claim is held by one handle', async (t) => {
  const name = storePath(t);
  const stores = await Promise.all([Store.open(name), Store.open(name)]);
  atEnd(t, () => Promise.all(stores.map((store) => store.close())));
  const session = await stores[0].create({ id: 's' });
  const other = stores[1].session('s');
  await session.claim();
  const error = await rejection(other.claim());
  assert.ok(error instanceof LockedError);
  assert.equal(error.code, 'WAL_ECLAIMED');
  assert.equal(error.holder, process.pid);
  await session.unclaim();
  await other.claim();
  other.close();
  await session.claim();
});

test('a session is migrated one version at a time', async (t) => {
  const name = storePath(t);
  let store = await Store.open(name);
  await store.create({ id: 's', schemaVersion: 1, metadata: { v: 1 } });
  await store.close();
  store = await Store.open(name, { schemaVersion: 4 });
  atEnd(t, () => store.close());
  const session = store.session('s');
  const refused = await rejection(session.append({ payload: 1 }));
  assert.equal(refused.code, 'WAL_ESCHEMA');
  assert.equal(refused.actual, '1');
  assert.equal((await rejection(session.migrate(4))).code, 'WAL_ESCHEMA', 'the step is unknown');
  const steps = [];
  await session.migrate(4, (now) => {
    steps.push(now.schemaVersion);
    return { metadata: { v: now.metadata.v + 1 } };
  });
  assert.deepEqual(steps, [1, 2, 3]);
  assert.deepEqual([session.info().schemaVersion, session.info().metadata.v], [4, 4]);
  await session.append({ payload: 1 });
  await session.migrate(4);
  assert.equal((await rejection(session.migrate(2, () => ({})))).code, 'WAL_ESCHEMA');
});

test('classes are made by the store alone', () => {
  assert.equal(thrown(() => new Session()).code, 'WAL_EINVAL');
  assert.equal(thrown(() => new Store()).code, 'WAL_EINVAL');
});

test('a store that keeps nothing has the same calls', async (t) => {
  const store = await openStore(t, { noop: true });
  const session = await store.create();
  assert.equal((await session.append({ payload: 1 })).appended, 1);
  assert.deepEqual(session.entries().toArray(), []);
});

test('a migration to what is no version of a schema is refused', async (t) => {
  const session = await memoryStore(t).create({ schemaVersion: 1 });
  for (const to of [NaN, undefined, null, '3', 2.5, -1, 2 ** 32, Infinity]) {
    const step = () => { throw new Error('a step was asked for'); };
    assert.equal((await rejection(session.migrate(to, step))).code, 'WAL_EINVAL', String(to));
  }
  assert.equal(session.info().schemaVersion, 1);
});

test('a session with NUL in its id is that session, and not another one', async (t) => {
  const store = memoryStore(t);
  const other = await store.create({ id: 'a' });
  const id = 'a\0b';
  const session = await store.create({ id });
  assert.equal(session.id, id);
  assert.equal(store.session(id).id, id);
  assert.equal((await store.openOrCreate({ id })).session.id, id);
  assert.equal((await other.fork({ id: 'a\0c' })).id, 'a\0c');
  await session.append({ id: 'e\0f', payload: 1 });
  assert.equal(session.head(), 'e\0f');
  await session.append({ payload: 2 }, { expectTail: session.head() });
});

test('what expects a sequence is refused once another writer was there', async (t) => {
  const store = memoryStore(t);
  const session = await store.create({ id: 's' });
  await session.append({ id: 'a', payload: 1 });
  const expectSequence = session.info().lastSequence;
  await store.session('s').append({ id: 'b', payload: 2 });
  const now = session.info().lastSequence;
  const refused = [
    session.delete({ expectSequence }),
    session.trash({ expectSequence }),
    session.update({ title: 'x' }, { expectSequence }),
    session.update(() => ({ title: 'x' }), { expectSequence }),
    session.commit({ entries: { payload: 3 }, expectSequence }),
    session.commit({ change: { title: 'x' }, expectSequence }),
    session.commit({ documents: [{ key: 'k', value: 1 }], expectSequence },
      { durability: 'written' }),
  ];
  for (const promise of refused) {
    const error = await rejection(promise);
    assert.ok(error instanceof ConflictError);
    assert.deepEqual([error.expectation, error.actual], ['sequence', String(now)]);
  }
  assert.equal(session.info().lastSequence, now);
  await session.update({ title: 'y' }, { expectSequence: now });
  const changed = session.info();
  assert.equal(changed.title, 'y');
  await session.commit({ entries: { id: 'c', payload: 3 }, expectSequence: changed.lastSequence });
  await session.commit({ entries: { id: 'c', payload: 3 }, expectSequence: 0 }); // exists already
  await session.trash({ expectSequence: session.info().lastSequence });
  await store.undelete('s');
  await session.delete({ expectSequence: session.info().lastSequence });
  assert.equal((await rejection(session.delete({ expectSequence: 1 }))).code, 'WAL_ENOTFOUND');
});

test('an expected sequence is a whole number', async (t) => {
  const session = await memoryStore(t).create();
  for (const expectSequence of [null, -1, 0.5, NaN, 2 ** 60, '1', {}, 1n]) {
    for (const refused of [
      session.delete({ expectSequence }), session.trash({ expectSequence }),
      session.update({ title: 'x' }, { expectSequence }), session.commit({ expectSequence }),
    ]) {
      assert.match((await rejection(refused)).message, /expectSequence/);
    }
  }
  assert.equal(session.info().title, '');
});
