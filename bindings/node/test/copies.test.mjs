// Several copies of the package in one thread, as test runners load them.

import assert from 'node:assert/strict';
import test from 'node:test';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

import { ConflictError, Store } from '../index.mjs';
import {
  atEnd, openStore, rejection, startChild, storePath, temporaryFolder, thrown,
} from './lib/store.mjs';
import { loadCopy } from './lib/copies.mjs';

test('copies write to one store, each with classes for itself', async (t) => {
  const first = await openStore(t);
  const copies = [loadCopy(), loadCopy()];
  const stores = [first];
  for (const copy of copies) {
    assert.notEqual(copy.Store, Store);
    const store = await copy.Store.open(first.path);
    atEnd(t, () => store.close());
    stores.push(store);
  }
  const sessions = [];
  for (const store of stores) {
    sessions.push((await store.openOrCreate({ id: 's' })).session);
  }
  const appends = [];
  for (let i = 0; i < 300; i++) {
    appends.push(sessions[i % 3].append({ payload: i }).durable);
  }
  await Promise.all(appends);
  const found = sessions.map((session) => [...session].map((entry) => entry.payload));
  assert.deepEqual([...found[0]].sort((a, b) => a - b), [...Array(300).keys()]);
  assert.deepEqual(found[1], found[0]);
  assert.deepEqual(found[2], found[0]);

  const refused = { expectTail: 'other' };
  const conflict = await rejection(sessions[1].append({ payload: 1 }, refused).durable);
  assert.ok(conflict instanceof copies[0].ConflictError && !(conflict instanceof ConflictError));
  assert.ok(thrown(() => stores[2].session('none')) instanceof copies[1].NotFoundError);
  assert.equal((await rejection(stores[1].merge(first))).code, 'WAL_EINVAL');
});

test('a follower of one copy gets what another appends', async (t) => {
  const first = await openStore(t);
  const session = await first.create({ id: 's' });
  const store = await loadCopy().Store.open(first.path);
  atEnd(t, () => store.close());
  const following = store.session('s').follow();
  const next = following.next();
  await session.append({ payload: 'x' });
  assert.equal((await next).value.payload, 'x');
  await following.return();
});

test('copies that are dropped are collected, and their stores are closed', async (t) => {
  const child = startChild('copies', [temporaryFolder(t)], { execArgv: ['--expose-gc'] });
  const { code, lines, errors } = await child.ended;
  assert.equal(code, 0, errors);
  assert.deepEqual(lines, [
    { isCollected: true, files: 0, listeners: 0, warnings: { AgentwalLeak: 3 } },
  ]);
});

test('Workers with copies end by themselves and are terminated', async (t) => {
  const name = storePath(t);
  const start = (id, count) => new Worker(new URL('./child/copies_worker.mjs', import.meta.url), {
    workerData: { name, id, count },
  });
  const workers = [start('a', 60), start('b', 60), start('c', 1e9)];
  const exits = workers.map((worker) => once(worker, 'exit'));
  await Promise.all(workers.map((worker) => once(worker, 'message')));
  await Promise.all(exits.slice(0, 2));
  await workers[2].terminate();
  const store = await Store.open(name);
  assert.equal(store.info().tail, 'clean');
  for (const id of ['a', 'b']) {
    assert.deepEqual([...store.session(id)].map((entry) => entry.payload), [...Array(60).keys()]);
  }
  await store.close();
});
