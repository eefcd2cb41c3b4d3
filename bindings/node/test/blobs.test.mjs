// Blobs: content by its digest.

import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import test from 'node:test';

import { NotFoundError, Store, WalError } from '../index.mjs';
import { memoryStore, openStore, rejection, startChild, storePath, thrown } from './lib/store.mjs';

const MIB = 2 ** 20;

function sha256(content) {
  return createHash('sha256').update(content).digest('hex');
}

async function writeAll(store, pieces, options) {
  const writer = await store.blobs.create(options);
  for (const piece of pieces) {
    await writer.write(piece);
  }
  return writer.finish();
}

test('content is kept under its SHA-256, and read back', async (t) => {
  const store = memoryStore(t);
  const random = randomBytes(3 * MIB + 17);
  for (const content of ['', 'hello', 'ä€😀\0', random, new Uint8Array([0, 255, 10])]) {
    const digest = await store.blobs.put(content);
    assert.equal(digest, sha256(content));
    const back = await store.blobs.get(digest);
    assert.ok(Buffer.isBuffer(back));
    assert.ok(back.equals(Buffer.from(content)));
  }
});

test('a part of a buffer is that part alone', async (t) => {
  const store = memoryStore(t);
  const whole = new Uint8Array(100).map((_, i) => i);
  const part = whole.subarray(10, 20);
  const digest = await store.blobs.put(part);
  assert.equal(digest, sha256(part));
});

test('a blob is durable when its promise is fulfilled', async (t) => {
  const name = storePath(t);
  const store = await Store.open(name);
  const digest = await store.blobs.put('kept');
  await store.close();
  const again = await Store.open(name, { readOnly: true });
  assert.equal((await again.blobs.get(digest)).toString(), 'kept');
  assert.equal((await rejection(again.blobs.put('x'))).code, 'WAL_EREADONLY');
  assert.equal((await rejection(again.blobs.create())).code, 'WAL_EREADONLY');
  await again.close();
});

test('what is not there: get gives null, open throws', async (t) => {
  const store = memoryStore(t);
  const digest = sha256('absent');
  assert.equal(await store.blobs.get(digest), null);
  assert.ok(thrown(() => store.blobs.open(digest)) instanceof NotFoundError);
});

test('a digest is 64 hexadecimal digits, of any case', async (t) => {
  const store = memoryStore(t);
  const digest = await store.blobs.put('x');
  assert.equal((await store.blobs.get(digest.toUpperCase())).toString(), 'x');
  assert.equal(store.blobs.open(digest.toUpperCase()).digest, digest);
  for (const wrong of [
    '',
    'x',
    digest.slice(1),
    `${digest}0`,
    `${digest.slice(1)}g`,
    `${digest.slice(1)}\0`,
    undefined,
    null,
    5,
    {},
    Buffer.from(digest),
  ]) {
    assert.equal((await rejection(store.blobs.get(wrong))).code, 'WAL_EINVAL', String(wrong));
    assert.equal(thrown(() => store.blobs.open(wrong)).code, 'WAL_EINVAL');
  }
});

test('content of other types is refused', async (t) => {
  const store = memoryStore(t);
  for (const wrong of [
    undefined,
    null,
    5,
    {},
    [1],
    true,
    new Uint16Array(4),
    new ArrayBuffer(4),
    '\ud800',
  ]) {
    const error = await rejection(store.blobs.put(wrong));
    assert.ok(error instanceof WalError);
    assert.equal(error.code, 'WAL_EINVAL');
  }
  const writer = await store.blobs.create();
  for (const wrong of [5, {}, new Uint16Array(4), '\ud800']) {
    assert.equal((await rejection(writer.write(wrong))).code, 'WAL_EINVAL');
  }
  await writer.write('still usable');
  assert.equal((await writer.finish()).digest, sha256('still usable'));
});

test('a reader reads parts, at the end fewer bytes', async (t) => {
  const store = memoryStore(t);
  const content = randomBytes(2 * MIB + 5);
  const reader = store.blobs.open(await store.blobs.put(content));
  assert.equal(reader.size, content.length);
  const all = await Promise.all([
    reader.read(0, 10),
    reader.read(MIB - 3, 6),
    reader.read(content.length - 2, 100),
    reader.read(content.length, 5),
    reader.read(content.length + 1000, 5),
    reader.read(7, 0),
    reader.read(0, content.length),
  ]);
  assert.ok(all[0].equals(content.subarray(0, 10)));
  assert.ok(all[1].equals(content.subarray(MIB - 3, MIB + 3)));
  assert.ok(all[2].equals(content.subarray(content.length - 2)));
  assert.deepEqual(
    all.slice(3, 6).map((one) => one.length),
    [0, 0, 0],
  );
  assert.ok(all[6].equals(content));
  for (const wrong of [-1, 1.5, NaN, '1', undefined, 2 ** 53]) {
    assert.equal((await rejection(reader.read(wrong, 1))).code, 'WAL_EINVAL');
    assert.equal((await rejection(reader.read(0, wrong))).code, 'WAL_EINVAL');
  }
  reader.close();
  reader.close();
  assert.equal((await rejection(reader.read(0, 1))).code, 'WAL_ECLOSED');
});

test('a reader that is closed completes the reads before', async (t) => {
  const store = memoryStore(t);
  const reader = store.blobs.open(await store.blobs.put(randomBytes(MIB)));
  const reads = [reader.read(0, MIB), reader.read(5, 5), reader.read(MIB - 1, 9)];
  reader.close();
  assert.deepEqual(
    (await Promise.all(reads)).map((one) => one.length),
    [MIB, 5, 1],
  );
});

test('a reader is iterated in pieces of 1 MiB', async (t) => {
  const store = memoryStore(t);
  const content = randomBytes(2 * MIB + 1);
  const sizes = [];
  const hash = createHash('sha256');
  for await (const piece of store.blobs.open(await store.blobs.put(content))) {
    sizes.push(piece.length);
    hash.update(piece);
  }
  assert.deepEqual(sizes, [MIB, MIB, 1]);
  assert.equal(hash.digest('hex'), sha256(content));
  for await (const piece of store.blobs.open(await store.blobs.put(''))) {
    assert.fail(`an empty blob has the piece ${piece}`);
  }
});

test('a writer keeps the order of pieces that nobody waits for', async (t) => {
  const store = memoryStore(t);
  const writer = await store.blobs.create();
  const piece = Buffer.alloc(1000);
  const expected = createHash('sha256');
  const writes = [];
  for (let i = 0; i < 200; i++) {
    piece.fill(i);
    expected.update(piece);
    writes.push(writer.write(piece)); // and then it is changed
  }
  const { digest, size } = await writer.finish();
  await Promise.all(writes);
  assert.equal(size, 200_000);
  assert.equal(digest, expected.digest('hex'));
});

test('an empty blob may be written, and the same content twice', async (t) => {
  const store = memoryStore(t);
  assert.deepEqual(await writeAll(store, []), { digest: sha256(''), size: 0 });
  const pieces = ['ab', Buffer.from('c')];
  const both = await Promise.all([writeAll(store, pieces), writeAll(store, pieces)]);
  assert.deepEqual(both[0], { digest: sha256('abc'), size: 3 });
  assert.deepEqual(both[1], both[0]);
});

test('a writer that was finished or discarded is closed', async (t) => {
  const store = memoryStore(t);
  const writer = await store.blobs.create();
  await writer.write('x');
  await writer.finish();
  assert.equal((await rejection(writer.write('y'))).code, 'WAL_ECLOSED');
  assert.equal((await rejection(writer.finish())).code, 'WAL_ECLOSED');
  writer.discard();
  const other = await store.blobs.create();
  await other.write('dropped');
  other.discard();
  other.discard();
  assert.equal((await rejection(other.finish())).code, 'WAL_ECLOSED');
  assert.equal(await store.blobs.get(sha256('dropped')), null);
});

test('a blob for a checkpoint goes with it', async (t) => {
  const store = memoryStore(t);
  const session = await store.create({ cwd: '/work' });
  const writer = await store.blobs.create({ named: true });
  await writer.write('content');
  const { digest } = await writer.finish();
  assert.equal((await rejection(writer.finish())).code, 'WAL_EINVAL');
  await session.checkpoints.import([{ path: 'a', kind: 'file', digest }], { id: 'c' });
  writer.discard();
  await store.compact({ rate: Infinity });
  assert.equal((await store.blobs.get(digest)).toString(), 'content');
  await session.checkpoints.delete('c');
  await session.delete();
  await store.compact({ rate: Infinity });
  assert.equal(await store.blobs.get(digest), null);
});

test('close completes reads and writes that were asked for', async (t) => {
  const store = await openStore(t);
  const content = randomBytes(MIB);
  const reader = store.blobs.open(await store.blobs.put(content));
  const writer = await store.blobs.create();
  const unfinished = await store.blobs.create();
  await unfinished.write('x');
  const calls = [
    reader.read(0, MIB),
    reader.read(1, 1),
    store.blobs.put('late'),
    writer.write('a'),
    writer.write('b'),
    writer.finish(),
  ];
  await store.close();
  const results = await Promise.all(calls);
  assert.ok(results[0].equals(content));
  assert.equal(results[5].digest, sha256('ab'));
  for (const call of [
    reader.read(0, 1),
    writer.write('c'),
    unfinished.write('y'),
    unfinished.finish(),
    store.blobs.put('x'),
    store.blobs.get(sha256('x')),
    store.blobs.create(),
  ]) {
    assert.equal((await rejection(call)).code, 'WAL_ECLOSED');
  }
  assert.equal(thrown(() => store.blobs.open(sha256('x'))).code, 'WAL_ECLOSED');
  reader.close();
  writer.discard();
  unfinished.discard();
});

test('a store that is closed at once leaves readers and writers harmless', async (t) => {
  const store = await openStore(t);
  const reader = store.blobs.open(await store.blobs.put('x'.repeat(MIB)));
  const writer = await store.blobs.create();
  const calls = [reader.read(0, MIB), writer.write('a'), store.blobs.put('y')];
  store.closeSync();
  const outcomes = await Promise.allSettled(calls);
  for (const { status, reason } of outcomes) {
    assert.ok(status === 'fulfilled' || reason.code === 'WAL_ECLOSED', reason);
  }
  reader.close();
  writer.discard();
});

test('a damaged blob is WAL_ECORRUPT, and nothing of it is read', async (t) => {
  const name = storePath(t);
  const content = randomBytes(100_000);
  let store = await Store.open(name);
  const digest = await store.blobs.put(content);
  await store.close();
  const folder = path.join(name, 'pack');
  let flipped = 0;
  for (const file of readdirSync(folder)) {
    const bytes = readFileSync(path.join(folder, file));
    const at = bytes.indexOf(content.subarray(50_000, 50_032));
    if (at >= 0) {
      bytes[at] ^= 1;
      writeFileSync(path.join(folder, file), bytes);
      flipped++;
    }
  }
  assert.equal(flipped, 1);
  store = await Store.open(name);
  const error = await rejection(store.blobs.get(digest));
  assert.equal(error.code, 'WAL_ECORRUPT');
  await store.close();
});

test('200 MB stream through a writer and a reader in bounded memory', async (t) => {
  const child = startChild('blob', [storePath(t), '200']);
  const { code, lines, errors } = await child.ended;
  assert.equal(code, 0, errors);
  t.diagnostic(JSON.stringify(lines[0]));
  assert.equal(lines[0].size, 200 * MIB);
  assert.equal(lines[0].read, lines[0].digest);
  assert.ok(lines[0].grown < 64 * MIB, `memory grew by ${lines[0].grown} bytes`);
});
