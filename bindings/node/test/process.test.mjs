// Several processes, and ends of processes.

import assert from 'node:assert/strict';
import test from 'node:test';

import { Store } from '../index.mjs';
import { atEnd, openStore, startChild, storePath } from './lib/store.mjs';

test('a killed process loses nothing that was acknowledged', async (t) => {
  const name = storePath(t);
  const acknowledged = [];
  for (let round = 0; round < 2; round++) {
    const child = startChild('append', [`${name}-${round}`]);
    const ids = [];
    while (ids.length < 200 + 50 * round) {
      ids.push(await child.line());
    }
    child.kill('SIGKILL');
    const { signal, lines } = await child.ended;
    assert.equal(signal, 'SIGKILL');
    acknowledged.push([...ids, ...lines]);
  }
  for (const [round, ids] of acknowledged.entries()) {
    const store = await Store.open(`${name}-${round}`);
    const session = store.session('s');
    const found = new Set(session.entries({ mode: 'all' }).toArray().map((entry) => entry.id));
    assert.deepEqual(ids.filter((id) => !found.has(id)), []);
    await store.close();
  }
});

test('two processes count together with expectTail', async (t) => {
  const store = await openStore(t);
  const session = await store.create({ id: 's' });
  const children = [1, 2].map(() => startChild('count', [store.path, '30']));
  for (const child of children) {
    const { code, errors } = await child.ended;
    assert.equal(code, 0, errors);
  }
  const numbers = session.entries().toArray().map((entry) => entry.payload);
  assert.deepEqual(numbers, Array.from({ length: 60 }, (_, i) => i + 1));
});

test('another process follows what is appended', async (t) => {
  const store = await openStore(t);
  const session = await store.create({ id: 's' });
  await session.append({ payload: 0 });
  const child = startChild('follow', [store.path]);
  assert.equal(await child.line(), 'ready');
  for (let i = 1; i < 50; i++) {
    await session.append({ payload: i }, { durability: i % 2 === 0 ? 'durable' : 'written' });
    if (i % 10 === 0) {
      await new Promise((resolve) => { setTimeout(resolve, 20); });
    }
  }
  await session.append({ payload: 'end' });
  const { code, errors, lines } = await child.ended;
  assert.equal(code, 0, errors);
  assert.deepEqual(lines, [...Array(50).keys(), 'end']);
});

for (const [how, code, count] of [
  ['loop', 0, 100], ['idle', 0, 1], ['closeSync', 0, 100], ['close', 0, 100],
  ['exit', 7, 100], ['closeExit', 7, 100], ['closeGatedExit', 7, 100], ['closeTwice', 7, 100],
  ['throw', 1, 100],
]) {
  test(`a process that ends by ${how} leaves a sound store`, async (t) => {
    const name = storePath(t);
    const ended = await startChild('exit', [name, how]).ended;
    assert.equal(ended.code, code, ended.errors);
    assert.equal(ended.signal, null);
    const store = await Store.open(name);
    atEnd(t, () => store.close());
    assert.equal(store.info().tail, 'clean');
    const numbers = store.session('s').entries().toArray().map((entry) => entry.payload);
    assert.deepEqual(numbers, how === 'idle' ? [1] : [...Array(count).keys()]);
  });
}
