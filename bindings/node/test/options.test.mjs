// Options that are none, and options whose getters throw.

import assert from 'node:assert/strict';
import test from 'node:test';

import { AgentwalSessionStore } from '../claude-session-store.mjs';
import { scanImport, Store } from '../index.mjs';
import { AgentwalSession } from '../lib/openai-agents/index.mjs';
import { memoryStore, rejection, storePath, temporaryFolder, thrown } from './lib/store.mjs';

// Calls with options, which return promises, and those that do not.
async function makeCalls(t) {
  const store = memoryStore(t);
  const other = memoryStore(t);
  const session = store.createSync({ id: 's', cwd: '/' });
  await session.append({ id: 'a', payload: 1 });
  await session.checkpoints.import([], { id: 'c' });
  const path = storePath(t);
  const folder = temporaryFolder(t);
  const adapter = new AgentwalSessionStore(store);
  return {
    session,
    promised: {
      open: (o) => Store.open(path, o), migrate: (o) => Store.migrate(path, o),
      salvage: (o) => Store.salvage(path, `${path}-2`, o), create: (o) => store.create(o),
      openOrCreate: (o) => store.openOrCreate(o), compact: (o) => store.compact(o),
      backup: (o) => store.backup(`${path}-3`, o), merge: (o) => store.merge(other, o),
      writeBundle: (o) => store.writeBundle(`${path}-4`, o),
      readBundle: (o) => store.readBundle(`${path}-4`, o), import: (o) => store.import(folder, o),
      scanImport: (o) => scanImport(folder, o), blob: (o) => store.blobs.create(o),
      append: (o) => session.append({ payload: 1 }, o),
      commit: (o) => session.commit({ entries: { payload: 1 } }, o),
      entry: (o) => session.append(o), batch: (o) => session.commit(o),
      batchDocument: (o) => session.commit({ documents: [o] }),
      batchHead: (o) => session.commit({ heads: [o] }),
      batchChange: (o) => session.commit({ change: o }),
      fork: (o) => session.fork(o), compactSession: (o) => session.compact(o),
      compactInto: (o) => session.compact({ firstKept: 'a', summary: 's', into: o }),
      moveHead: (o) => session.moveHead('a', o), update: (o) => session.update(o),
      rewind: (o) => session.rewind('c', o), export: (o) => session.export(o),
      put: (o) => session.documents.put('k', 1, o),
      delete: (o) => session.documents.delete('k', o),
      checkpoint: (o) => session.checkpoints.create('a', o),
      checkpoints: (o) => session.checkpoints.import([], o),
      claudeFork: (o) => adapter.fork({ projectKey: 'p', sessionId: 's' }, o),
    },
    synchronous: {
      openSync: (o) => Store.openSync(path, o), memory: (o) => Store.memory(o),
      createSync: (o) => store.createSync(o), latest: (o) => store.latest(o),
      list: (o) => store.list(o), sessions: (o) => [...store.sessions(o)],
      followImport: (o) => store.followImport(folder, o), views: (o) => store.views(o),
      follow: (o) => store.follow(o), appendSync: (o) => session.appendSync({ payload: 1 }, o),
      entries: (o) => [...session.entries(o)], followSession: (o) => session.follow(o),
      head: (o) => session.head('main', o), view: (o) => session.view(o),
      get: (o) => session.documents.get('k', o), documents: (o) => session.documents.list(o),
      claude: (o) => new AgentwalSessionStore(store, o),
    },
  };
}

test('options that are not an object are refused', async (t) => {
  const { session, promised, synchronous } = await makeCalls(t);
  const before = session.info();
  for (const options of [null, 5, 'options']) {
    for (const [name, call] of Object.entries(promised)) {
      assert.equal((await rejection(call(options))).code, 'WAL_EINVAL', name);
    }
    for (const [name, call] of Object.entries(synchronous)) {
      assert.equal(thrown(() => call(options)).code, 'WAL_EINVAL', name);
    }
    const error = thrown(() => new AgentwalSession('path', options));
    assert.ok(error instanceof TypeError);
    assert.match(error.message, /options/);
  }
  for (const batch of [{ documents: 5 }, { documents: null }, { heads: 5 }, { heads: {} }]) {
    assert.equal((await rejection(session.commit(batch))).code, 'WAL_EINVAL');
  }
  assert.deepEqual(session.info(), before);
});

test('times and durabilities of other types are refused', async (t) => {
  const store = memoryStore(t);
  const session = store.createSync({ id: 's', cwd: '/' });
  const before = session.info();
  for (const wrong of [null, 'x', '5', true, {}, Object.create(null), Symbol('s'), 5n]) {
    const calls = [() => store.create({ created: wrong }),
      () => session.checkpoints.import([], { created: wrong }),
      async () => store.list({ changedAfter: wrong }),
      ...wrong === null ? [] : [() => session.append({ payload: 1 }, { durability: wrong })]];
    for (const call of calls) {
      assert.equal((await rejection(call())).code, 'WAL_EINVAL', call);
    }
  }
  for (const wrong of [NaN, new Date(NaN), Infinity, 0.5]) {
    assert.equal((await rejection(store.create({ created: wrong }))).code, 'WAL_EINVAL');
  }
  assert.deepEqual(session.info(), before);
  assert.equal(store.createSync({ created: new Date(5) }).info().created, 5);
});

test('what a getter of options throws is thrown, or rejects the promise', async (t) => {
  const { session, promised, synchronous } = await makeCalls(t);
  const before = session.info();
  const failure = new RangeError('of the getter');
  const options = new Proxy({}, { get() { throw failure; }, ownKeys() { throw failure; } });
  for (const [name, call] of Object.entries(promised)) {
    const promise = call(options);
    assert.ok(promise instanceof Promise, name);
    assert.equal(await rejection(promise), failure, name);
  }
  for (const [name, call] of Object.entries(synchronous)) {
    assert.equal(thrown(() => call(options)), failure, name);
  }
  assert.deepEqual(session.info(), before);
});
