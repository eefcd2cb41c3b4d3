// Reading entries.

import assert from 'node:assert/strict';
import test from 'node:test';
import { inspect } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { memoryStore, openStore, rejection, thrown } from './lib/store.mjs';

function fill(session, count) {
  return session.append(Array.from({ length: count }, (_, i) => ({ id: `e${i}`, payload: i })));
}

const payloads = (entries) => [...entries].map((entry) => entry.payload);

test('pages join without a gap', async (t) => {
  const session = memoryStore(t).createSync();
  for (const count of [0, 1, 255, 256, 257, 1024]) {
    await session.moveHead(null);
    if (count > 0) {
      await session.append(Array.from({ length: count }, (_, i) => ({ payload: i })));
    }
    assert.deepEqual(payloads(session), [...Array(count).keys()]);
    const read = [];
    for await (const entry of session.entries()) {
      read.push(entry.payload);
    }
    assert.deepEqual(read, [...Array(count).keys()]);
  }
});

test('an iteration has what was there when it began', async (t) => {
  const session = (await openStore(t)).createSync();
  await fill(session, 600);
  let count = 0;
  const appends = [];
  for (const entry of session.entries()) {
    assert.equal(entry.payload, count);
    count++;
    if (count % 100 === 0) {
      appends.push(session.append({ payload: 'more' }));
    }
  }
  assert.equal(count, 600);
  await Promise.all(appends);
  count = 0;
  for await (const entry of session.entries()) {
    assert.ok(entry.id);
    if (++count % 100 === 0) {
      await session.append({ payload: 'more' });
    }
  }
  assert.equal(count, 606);
  assert.equal(session.entries().toArray().length, 612);
});

test('the asynchronous iteration gives other tasks a turn', async (t) => {
  const session = memoryStore(t).createSync();
  const text = JSON.stringify('x'.repeat(2000));
  for (let i = 0; i < 20; i++) {
    session.appendSync(Array.from({ length: 1000 }, () => ({ text })), { durability: 'written' });
  }
  let turns = 0;
  const timer = setInterval(() => { turns++; }, 0);
  let count = 0;
  for await (const entry of session.entries()) {
    count += entry.text.length > 0 ? 1 : 0;
  }
  clearInterval(timer);
  assert.equal(count, 20_000);
  assert.ok(turns > 1, `${turns} turns`);
});

test('options choose a branch and its parts', async (t) => {
  const session = memoryStore(t).createSync();
  await fill(session, 10);
  await session.append({ id: 'x', parentId: 'e4', payload: 'x' });
  await session.moveHead('x', { name: 'side' });
  await session.append({ stream: 1, payload: 'transcript' });
  const read = (options) => payloads(session.entries(options));
  assert.deepEqual(read({ upTo: 'e2' }), [0, 1, 2]);
  assert.deepEqual(read({ skip: 7 }), [7, 8, 9]);
  assert.deepEqual(read({ last: 2 }), [8, 9]);
  assert.deepEqual(read({ skip: 3, last: 1 }), [9]);
  assert.deepEqual(read({ head: 'side' }), [0, 1, 2, 3, 4, 'x']);
  assert.deepEqual(read({ mode: 'all' }), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 'x']);
  assert.deepEqual(read({ stream: 1 }), ['transcript']);
  assert.equal(thrown(() => read({ upTo: 'none' })).code, 'WAL_ENOTFOUND');
  assert.equal(thrown(() => read({ head: 'none' })).code, 'WAL_ENOTFOUND');
  for (const wrong of [{ mode: 'other' }, { skip: -1 }, { last: 1.5 }, { skip: 2 ** 60 },
    { stream: 'x' }, { upTo: 7 }]) {
    assert.equal(thrown(() => read(wrong)).code, 'WAL_EINVAL', inspect(wrong));
  }
  const { last, after } = { last: session.entries({ last: 3 }).toArray(), after: 0 };
  assert.equal(last[0].parentId, 'e6');
  assert.equal(after, 0);
});

test('deltas, redactions and compactions are read when they are asked for', async (t) => {
  const session = memoryStore(t).createSync();
  await fill(session, 4);
  await session.append({ type: 'message_delta_batch', payload: 'delta' });
  assert.deepEqual(payloads(session.entries()), [0, 1, 2, 3]);
  assert.deepEqual(payloads(session.entries({ deltas: true })), [0, 1, 2, 3, 'delta']);
  const result = await session.redact('e1', 'a reason');
  assert.equal(result.appended, 1);
  assert.equal(thrown(() => session.entry('e1')).code, 'WAL_EREDACTED');
  const [hidden] = session.entries({ redacted: true }).toArray().filter((one) => one.isRedacted);
  assert.equal(hidden.id, 'e1');
  assert.deepEqual(hidden.payload, { redactedBy: result.lastId, reason: 'a reason' });
  assert.equal(await session.unredact('e1'), undefined);
  assert.equal(session.entry('e1').payload, 1);
  await assert.rejects(session.unredact('e1'), { code: 'WAL_ENOTFOUND' });
  await session.redact('e1');
  const { session: same, result: summary } =
    await session.compact({ firstKept: 'e3', summary: 'it was so' });
  assert.equal(same, session);
  assert.equal(summary.lastId, session.head());
  const since = session.entries({ sinceCompaction: true }).toArray();
  assert.equal(since[0].id, 'e3');
  assert.equal(since.at(-1).type, 'compaction_summary');
});

test('large payloads are read whole, or left out of line', async (t) => {
  const session = (await openStore(t)).createSync();
  const large = 'ä'.repeat(300_000);
  await session.append([{ payload: large }, { line: Buffer.alloc(400_000, 0xff) }, { payload: 1 }]);
  const [text, line] = session.entries().toArray();
  assert.equal(text.payload, large);
  assert.equal(text.digest, null);
  assert.equal(line.bytes.length, 400_000);
  const [left, leftLine, small] = session.entries({ outOfLine: true }).toArray();
  assert.equal(left.isOutOfLine, true);
  assert.equal(left.payload, undefined);
  assert.equal(left.text, null);
  assert.equal(left.bytes, null);
  assert.equal(left.payloadSize, text.payloadSize);
  assert.match(left.digest, /^[0-9a-f]{64}$/);
  assert.match(leftLine.digest, /^[0-9a-f]{64}$/);
  assert.equal(small.payload, 1);
  assert.equal(session.entry(left.id).payload, large);
});

test('a page ends at a size, so that large entries do not fill memory', async (t) => {
  const session = memoryStore(t).createSync();
  const text = JSON.stringify('x'.repeat(200_000));
  await session.append(Array.from({ length: 50 }, () => ({ text })));
  setFlagsFromString('--expose-gc');
  const { Bun } = globalThis;
  const collect = Bun === undefined ? runInNewContext('gc') : () => Bun.gc(true);
  const used = () => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  const iterator = session.entries()[Symbol.iterator]();
  const before = used();
  iterator.next();
  const taken = used() - before;
  assert.ok(taken > 900_000 && taken < 3_000_000, `${taken} bytes`);
  assert.equal([...iterator].length, 49);
});

test('entries of many types, runs and parents keep theirs', async (t) => {
  const session = memoryStore(t).createSync();
  const given = [];
  for (let i = 0; i < 300; i++) {
    given.push({
      id: `e${i}`, type: `type-${i % 20}`, runId: i % 3 === 0 ? undefined : `run-${i % 7}`,
      meta: i % 2 === 0 ? undefined : { i }, payload: i % 5 === 0 ? 'ö' : 'o',
      parentId: i % 10 === 5 ? `e${i - 3}` : undefined,
    });
  }
  await session.append(given);
  const entries = session.entries({ mode: 'all' }).toArray();
  assert.equal(entries.length, 300);
  for (const [i, entry] of entries.entries()) {
    assert.equal(entry.id, given[i].id);
    assert.equal(entry.type, given[i].type);
    assert.equal(entry.runId, given[i].runId ?? null);
    assert.deepEqual(entry.meta, given[i].meta ?? null);
    assert.equal(entry.payload, given[i].payload);
    if (given[i].parentId !== undefined) {
      assert.equal(entry.parentId, given[i].parentId);
    }
  }
});

test('an entry is shown and kept as JSON', async (t) => {
  const session = memoryStore(t).createSync();
  await session.append({ id: 'a', payload: { text: 'hello' } });
  const entry = session.entry('a');
  assert.match(inspect(entry), /Entry \{\s+id: 'a'/);
  assert.equal(JSON.parse(JSON.stringify(entry)).payload.text, 'hello');
});

test('an entry of another session is not found', async (t) => {
  const store = memoryStore(t);
  const session = store.createSync();
  await session.append({ id: 'a', payload: 1 });
  assert.equal(store.createSync().entry('a'), null);
  assert.equal((await rejection(session.fork({ at: 'none' }))).code, 'WAL_ENOTFOUND');
});
