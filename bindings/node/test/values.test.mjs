// Values that JavaScript has and the store does not.

import assert from 'node:assert/strict';
import test from 'node:test';

import { isLong, memoryStore, rejection, thrown } from './lib/store.mjs';

const HALF = 'a\ud800b';
const OTHER_HALF = '\udc00';

test('values that are no JSON are refused', async (t) => {
  const session = memoryStore(t).createSync();
  const cycle = {};
  cycle.self = cycle;
  const throwing = { toJSON() { throw new Error('no'); } };
  for (const payload of [undefined, () => {}, Symbol('s'), 1n, { deep: 1n }, cycle, throwing]) {
    const error = await rejection(session.append({ payload }));
    assert.equal(error.code, 'WAL_EINVAL');
    assert.match(error.message, /payload/);
    assert.equal((await rejection(session.documents.put('k', payload))).code, 'WAL_EINVAL');
    assert.equal(thrown(() => session.appendSync({ payload })).code, 'WAL_EINVAL');
    const batch = session.commit({ documents: [{ key: 'k', value: payload }] });
    assert.equal((await rejection(batch)).code, 'WAL_EINVAL');
  }
  assert.ok((await rejection(session.append({ payload: cycle }))).cause instanceof TypeError);
  for (const meta of [1, 'x', [], null, cycle]) {
    assert.equal((await rejection(session.append({ payload: 1, meta }))).code, 'WAL_EINVAL');
  }
  assert.deepEqual(session.entries().toArray(), []);
});

test('values are kept as JSON.stringify has them', async (t) => {
  const session = memoryStore(t).createSync();
  const values = [null, false, 0, -0, 1e308, NaN, '', 'x', [], {}, [undefined], { a: undefined },
    new Date(0), '\u2028\0"\\', Buffer.from('ab'), new Map([[1, 2]])];
  await session.append(values.map((payload) => ({ payload })));
  assert.deepEqual(session.entries().toArray().map((entry) => entry.payload),
    values.map((value) => JSON.parse(JSON.stringify(value))));
});

test('text that is no JSON is refused by the store', async (t) => {
  const session = memoryStore(t).createSync();
  for (const text of ['', '{', 'undefined', '{"a":1}x', Buffer.from([0x22, 0xff, 0x22])]) {
    assert.equal((await rejection(session.append({ text }))).code, 'WAL_EBADJSON');
  }
});

// Bytes that are no more there.
function lostBytes() {
  const moved = new Uint8Array(4);
  structuredClone(moved.buffer, { transfer: [moved.buffer] });
  const lost = [moved];
  if ('resizable' in ArrayBuffer.prototype) {
    const buffer = new ArrayBuffer(16, { maxByteLength: 16 });
    lost.push(new Uint8Array(buffer, 8, 8));
    buffer.resize(4);
  }
  return lost;
}

test('content that is none is refused, and empty content kept', async (t) => {
  const store = memoryStore(t);
  const session = store.createSync();
  const wrong = [null, 5, {}, [], new Uint16Array(2), new ArrayBuffer(2),
    new DataView(new ArrayBuffer(0)), ...lostBytes()];
  for (const content of wrong) {
    for (const entry of [{ line: content }, { text: content }]) {
      const input = { ...entry, payload: 'kept' };
      assert.equal((await rejection(session.append(input))).code, 'WAL_EINVAL');
      assert.equal(thrown(() => session.appendSync(input)).code, 'WAL_EINVAL');
    }
    assert.equal((await rejection(store.blobs.put(content))).code, 'WAL_EINVAL');
  }
  for (const isGated of [false, true]) {
    const writer = await store.blobs.create();
    for (const piece of [undefined, ...wrong]) {
      const before = isGated ? writer.write('x') : undefined;
      assert.equal((await rejection(writer.write(piece))).code, 'WAL_EINVAL');
      await before;
    }
    await writer.write('');
    await writer.write(new Uint8Array(0));
    assert.equal((await writer.finish()).size, isGated ? wrong.length + 1 : 0);
  }
  for (const line of ['', new Uint8Array(0), Buffer.alloc(0)]) {
    await session.append({ line });
  }
  assert.deepEqual(session.entries().toArray().map((entry) => entry.payloadSize), [0, 0, 0]);
});

test('an empty string is no id of an entry', async (t) => {
  const session = memoryStore(t).createSync({ cwd: '/' });
  await session.append([{ id: 'a', payload: 1 }, { id: 'b', payload: 2 }]);
  const calls = [
    () => session.append({ id: '', payload: 1 }),
    () => session.append({ parentId: '', payload: 1 }),
    () => session.append({ payload: 1 }, { expectTail: '' }),
    () => session.commit({ heads: [{ entryId: '' }] }),
    () => session.moveHead(''),
    () => session.moveHead('a', { expect: '' }),
    () => session.fork({ at: '' }),
    () => session.redact(''),
    () => session.unredact(''),
    () => session.compact({ firstKept: '', summary: 's' }),
    () => session.checkpoints.import([], { entryId: '' }),
    async () => session.appendSync({ id: '', payload: 1 }),
    async () => session.entries({ upTo: '' }).toArray(),
  ];
  for (const call of calls) {
    assert.equal((await rejection(call())).code, 'WAL_EINVAL', call);
  }
  assert.equal(session.head(), 'b');
  assert.equal(session.entry(''), null);
  assert.equal(session.entries({ mode: 'all' }).toArray().length, 2);
});

test('half a surrogate pair is refused in names and texts', async (t) => {
  const store = memoryStore(t);
  const session = store.createSync({ id: 's' });
  for (const half of [HALF, OTHER_HALF, `${'x'.repeat(10_000)}\ud83d`]) {
    for (const entry of [{ id: half }, { parentId: half }, { type: half }, { runId: half },
      { timestamp: half }]) {
      assert.equal((await rejection(session.append({ payload: 1, ...entry }))).code, 'WAL_EINVAL');
    }
    assert.equal((await rejection(session.append({ line: half }))).code, 'WAL_EINVAL');
    assert.equal((await rejection(store.create({ title: half }))).code, 'WAL_EINVAL');
    assert.equal((await rejection(session.documents.put(half, 1))).code, 'WAL_EINVAL');
    assert.equal((await rejection(session.moveHead('a', { name: half }))).code, 'WAL_EINVAL');
    assert.equal(thrown(() => store.session(half)).code, 'WAL_EINVAL');
  }
  const whole = await session.append({ id: 'x\ufffdy', type: '😀', payload: 1 });
  assert.equal(session.entry(whole.lastId).type, '😀');
  assert.equal(session.entry(whole.lastId).id, 'x\ufffdy');
});

test('half a surrogate pair in JSON is kept as an escape', async (t) => {
  const session = memoryStore(t).createSync({ metadata: { m: HALF } });
  await session.append([{ payload: { [HALF]: OTHER_HALF }, meta: { m: HALF } },
    { text: `{"a": "${HALF}😀${OTHER_HALF}"}` }]);
  const [first, second] = session.entries().toArray();
  assert.deepEqual(first.payload, { [HALF]: OTHER_HALF });
  assert.match(first.text, /\\ud800/);
  assert.deepEqual(first.meta, { m: HALF });
  assert.deepEqual(second.payload, { a: `${HALF}😀${OTHER_HALF}` });
  assert.deepEqual(session.info().metadata, { m: HALF });
  await session.documents.put('k', HALF);
  assert.equal(session.documents.get('k').value, HALF);
});

test('arguments of other types are refused', async (t) => {
  const store = memoryStore(t);
  const session = store.createSync();
  for (const entry of [null, undefined, 1, 'x', { payload: 1, id: 7 }, { payload: 1, type: {} },
    { payload: 1, stream: -1 }, { payload: 1, stream: 1.5 }, { payload: 1, stream: 256 },
    { text: 7 }, { line: new Uint16Array(2) }, { line: [] }]) {
    const error = await rejection(session.append(entry));
    assert.equal(error.code, 'WAL_EINVAL', JSON.stringify(entry));
  }
  for (const durability of ['never', 1, 'toString', '__proto__']) {
    const error = await rejection(session.append({ payload: 1 }, { durability }));
    assert.equal(error.code, 'WAL_EINVAL');
    assert.match(error.message, /durability/);
  }
});

test('what is over a limit is refused', async (t) => {
  const store = memoryStore(t);
  const session = store.createSync();
  const long = 'x'.repeat(256);
  for (const entry of [{ id: long }, { type: long }, { runId: long }, { timestamp: long }]) {
    const error = await rejection(session.append({ payload: 1, ...entry }));
    assert.ok(['WAL_EINVAL', 'WAL_ETOOBIG'].includes(error.code), error.code);
  }
  const document = await rejection(session.documents.put('k', 'x'.repeat(16 * 1024 * 1024)));
  assert.equal(document.code, 'WAL_ETOOBIG');
  const metadata = { m: 'x'.repeat(1024 * 1024) };
  const error = await rejection(store.create({ metadata }));
  assert.ok(['WAL_EINVAL', 'WAL_ETOOBIG'].includes(error.code), error.code);
  if (isLong) {
    const text = new Uint8Array(1024 * 1024 * 1024 + 1).fill(0x20);
    text[0] = 0x31;
    assert.equal((await rejection(session.append({ text }))).code, 'WAL_ETOOBIG');
  }
});
