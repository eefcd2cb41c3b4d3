// Worker threads, each of which opens the same path.

import assert from 'node:assert/strict';
import test from 'node:test';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

import { Store } from '../index.mjs';
import { openStore, storePath } from './lib/store.mjs';

function start(name, id, mode) {
  return new Worker(new URL('./child/worker.mjs', import.meta.url), {
    workerData: { name, id, mode },
  });
}

test('Workers and the main thread write at the same time', async (t) => {
  const store = await openStore(t);
  const { session } = await store.openOrCreate({ id: 'main' });
  const workers = [1, 2, 3].map((i) => start(store.path, `worker-${i}`, 'count'));
  const counts = Promise.all(workers.map(async (worker) => {
    const exit = once(worker, 'exit');
    const [count] = await once(worker, 'message');
    assert.deepEqual(await exit, [0]);
    return count;
  }));
  for (let i = 0; i < 100; i++) {
    await session.append({ payload: i }, { durability: 'written' });
  }
  assert.deepEqual(await counts, [200, 200, 200]);
  for (const i of [1, 2, 3]) {
    assert.deepEqual(store.session(`worker-${i}`).entries().toArray().map((entry) => entry.payload),
      [...Array(200).keys()]);
  }
});

test('a Worker that ends without a close leaves nothing open', async (t) => {
  const name = storePath(t);
  const worker = start(name, 's', 'leave');
  const exit = once(worker, 'exit');
  assert.deepEqual(await once(worker, 'message'), ['left']);
  assert.deepEqual(await exit, [0]);
  const store = await Store.open(name);
  assert.equal(store.info().tail, 'clean');
  assert.equal(store.session('s').entries().toArray().length, 51);
  await store.close();
});

test('a Worker is terminated with work pending', async (t) => {
  const name = storePath(t);
  for (let round = 0; round < 6; round++) {
    const worker = start(name, `s-${round}`, round % 2 === 0 ? 'run' : 'calls');
    await once(worker, 'message');
    await new Promise((resolve) => { setTimeout(resolve, 7 * round); });
    await worker.terminate();
  }
  const store = await Store.open(name);
  assert.equal(store.info().tail, 'clean');
  assert.equal(store.list().length, 6);
  for (const { id } of store.list()) {
    for (const entry of store.session(id).entries({ mode: 'all' })) {
      assert.ok(entry.payload < 20);
    }
  }
  await store.close();
});
