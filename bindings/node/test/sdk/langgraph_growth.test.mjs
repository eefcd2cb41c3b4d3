// A thread's bytes grow with what is new in each checkpoint, not with the size
// of its values; and each checkpoint is read as it was put.
import assert from 'node:assert/strict';
import test from 'node:test';

import { AgentwalSaver } from '../../lib/langgraph/index.mjs';
import { makeRandom, takeSeed } from '../lib/random.mjs';
import { memoryStore, openStore } from '../lib/store.mjs';
import {
  all, configOf, idOf, loop, makeCheckpoint, put, valuesOf,
} from './langgraph.mjs';

// Bytes of a checkpoint in addition to its new content: entries and documents.
const OVERHEAD = 1800;

const seed = takeSeed();
const random = makeRandom(seed);

// Text of which little repeats, so that compression does not help.
function makeText(size) {
  return Array.from({ length: size / 8 },
    () => random(2 ** 32).toString(36).padStart(8, 'x').slice(-8)).join('');
}

const makeMessage = (i) => ({ id: `m${i}`, type: 'ai', content: makeText(200) });

// How the next list of messages is made of the one before, for how many steps,
// and how many bytes of it are new, at most.
const lists = {
  'grows at its end': [1000, 300, (list, next) => [...list, next]],
  'grows at its start': [400, 300, (list, next) => [next, ...list]],
  'is a window': [400, 300, (list, next) => [...list, next].slice(-50)],
  'grows and is changed in two places': [400, 600, (list, next) => {
    const changed = [...list, next];

    changed[random(changed.length)] = makeMessage('new');
    changed[0] = { ...changed[0], seen: list.length };
    return changed;
  }],
};

for (const [name, [count, added, change]] of Object.entries(lists)) {
  test(`${count} checkpoints of a list that ${name} (seed ${seed})`, async (t) => {
    const store = memoryStore(t);
    const saver = new AgentwalSaver(store, { durability: 'written' });
    const bytesAt = [];
    const kept = new Map();
    let list = [];
    let config = configOf('t');
    let whole = 0;

    for (let i = 0; i < count; i++) {
      const versions = { messages: i + 1, step: i + 1, prompt: 1 };

      list = change(list, makeMessage(i));
      whole += JSON.stringify(list).length;
      config = await saver.put(config, makeCheckpoint(
        { messages: list, step: i, prompt: 'p'.repeat(5000) }, versions), loop(i),
      i === 0 ? versions : { messages: i + 1, step: i + 1 });
      if (i % 97 === 0 || i === count - 1) {
        kept.set(idOf(config), list);
      }
      if ((i + 1) % (count / 4) === 0) {
        bytesAt.push(store.info().logBytes);
      }
    }
    t.diagnostic(`${bytesAt.join(', ')} bytes; as a whole each time: ${whole}`);
    // A list is stored whole each time that it doubled: at most twice its end.
    const last = JSON.stringify(list).length;
    assert.ok(bytesAt[3] < count * (added + OVERHEAD) + 2 * last, bytesAt.join());
    // The last quarter costs no more than the second one, but for a whole copy.
    assert.ok(bytesAt[3] - bytesAt[2] < 1.3 * (bytesAt[1] - bytesAt[0]) + 1.1 * last,
      bytesAt.join());

    // Reading a value takes at most twice as long as if it was whole.
    for (const { meta } of store.session('lg/t').entries({ mode: 'all', stream: 2 })) {
      assert.ok(meta.cost <= 2 * meta.size + 256, JSON.stringify(meta));
    }
    const cold = new AgentwalSaver(store);
    for (const [id, messages] of kept) {
      const { checkpoint } = await cold.getTuple(configOf('t', '', id));

      assert.deepEqual(checkpoint.channel_values.messages, messages);
      assert.equal(checkpoint.channel_values.prompt.length, 5000);
    }
  });
}

test('a value that does not change costs nothing', async (t) => {
  const store = memoryStore(t);
  const saver = new AgentwalSaver(store);
  const large = makeText(80_000);
  const versions = { large: 1 };
  let config = await saver.put(configOf('t'),
    makeCheckpoint({ large }, versions), loop(0), versions);
  const before = store.info().logBytes;

  for (let i = 1; i < 100; i++) {
    config = await saver.put(config, makeCheckpoint({ large }, versions), loop(i), {});
  }
  // A version that changes without the value, too.
  for (let i = 2; i < 100; i++) {
    config = await saver.put(config, makeCheckpoint({ large }, { large: i }), loop(i),
      { large: i });
  }
  assert.ok(store.info().logBytes - before < 200 * OVERHEAD);
  assert.equal((await saver.getTuple(config)).checkpoint.channel_values.large, large);
  assert.equal((await all(saver.list(configOf('t'), { limit: 3 }))).length, 3);
});

test('what is deleted leaves no bytes after a compaction', async (t) => {
  const store = await openStore(t);
  const saver = new AgentwalSaver(store, { durability: 'written' });
  let config = configOf('keep');
  const small = await put(saver, config, { a: 1 });

  for (let i = 0; i < 20; i++) {
    // Above 256 KiB a payload is a blob.
    config = await put(saver, configOf('t', '', idOf(config)),
      { value: makeText(20_000), large: makeText(300_000) }, i);
    await saver.putWrites(config, [['w', makeText(10_000)]], 'task');
  }
  await saver.deleteThread('t');
  await store.compact({ erase: true, rate: Infinity });
  const { logBytes, packBytes } = store.info();
  t.diagnostic(`${logBytes} bytes in the log, ${packBytes} in the pack`);
  assert.ok(logBytes + packBytes < 300_000);
  assert.deepEqual(await valuesOf(saver, small), { a: 1 });
});
