// Administration of stores: compaction, backup, salvage, migration, claims.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { setTimeout as delay } from 'node:timers/promises';
import test from 'node:test';

import { LockedError, NotFoundError, Store, WalError } from '../index.mjs';
import {
  atEnd,
  memoryStore,
  openStore,
  rejection,
  startChild,
  storePath,
  temporaryFolder,
  thrown,
  wrongPaths,
} from './lib/store.mjs';

// Text that does not compress.
function noise(size) {
  return randomBytes(Math.ceil(size / 2))
    .toString('hex')
    .slice(0, size);
}

async function append(session, count, size) {
  const calls = [];
  for (let i = 0; i < count; i++) {
    calls.push(session.append({ payload: noise(size) }, { durability: 'written' }));
  }
  await Promise.all(calls);
}

// Flips a bit of the file below a folder that has some text; returns its name.
function damage(folder, text) {
  for (const file of readdirSync(folder)) {
    const bytes = readFileSync(path.join(folder, file));
    const at = bytes.indexOf(text);
    if (at >= 0) {
      bytes[at + 5] ^= 1;
      writeFileSync(path.join(folder, file), bytes);
      return file;
    }
  }
  throw new Error(`no file has ${text}`);
}

// ------------------------------------------------------------ compaction ---

test('a compaction gives back the space of a deleted session', async (t) => {
  const store = await openStore(t);
  const kept = await store.create({ id: 'kept' });
  const dead = await store.create({ id: 'dead' });
  await append(kept, 10, 1000);
  await append(dead, 100, 10_000);
  await kept.append({ id: 'last', payload: 'last' });
  await dead.delete();
  const plan = await store.compact({ dryRun: true });
  assert.ok(plan.deadBytes > 900_000);
  assert.deepEqual(
    plan.sessions.map(({ id, deleted }) => [id, deleted]),
    [
      ['kept', false],
      ['dead', true],
    ],
  );
  const space = plan.sessions[1];
  assert.ok(space.reclaimableBytes > 900_000);
  assert.equal(typeof space.number, 'number');
  assert.deepEqual([plan.keptRecords, plan.droppedRecords], [0, 0]);

  const result = await store.compact({ rate: Infinity });
  assert.equal(result.rewritten, plan.rewritten);
  assert.ok(result.bytesBefore - result.bytesAfter > 900_000);
  assert.ok(result.droppedRecords >= 100);
  assert.ok(result.keptRecords >= 11);
  assert.deepEqual(
    [result.refused, result.refusals, result.readers, result.sessions],
    [0, [], [], []],
  );
  assert.equal(store.session('kept').entries().toArray().length, 11);
});

test('a compaction empties the trash, and erases', async (t) => {
  const store = await openStore(t);
  const session = await store.create({ id: 's' });
  await session.append([{ id: 'secret', payload: 'the-secret-text' }, { payload: 1 }]);
  const trashed = await store.create({ id: 'trashed' });
  await trashed.append({ payload: 'x' });
  await session.redact('secret');
  await trashed.trash();
  await store.compact({ rate: Infinity });
  await store.undelete('trashed');
  await store.session('trashed').trash();
  const result = await store.compact({ rate: Infinity, emptyTrash: true, erase: true });
  assert.ok(result.erasedRecords >= 0);
  assert.ok((await rejection(store.undelete('trashed'))) instanceof NotFoundError);
  const folder = path.join(store.path, 'log');
  for (const file of readdirSync(folder)) {
    assert.equal(readFileSync(path.join(folder, file)).indexOf('the-secret-text'), -1, file);
  }
});

test('options of a compaction are checked', async (t) => {
  const store = await openStore(t);
  for (const wrong of [
    { rate: 0 },
    { rate: -1 },
    { rate: '5' },
    { rate: NaN },
    { rate: 1.5 },
    { maxBytes: 0 },
    { maxBytes: -Infinity },
    { maxBytes: Infinity },
    { deadPercent: 0 },
    { deadPercent: 101 },
    { deadPercent: 1.5 },
    { erase: true, keepDeltas: true },
    { onProgress: 5 },
    { signal: 'x' },
  ]) {
    assert.equal((await rejection(store.compact(wrong))).code, 'WAL_EINVAL', JSON.stringify(wrong));
  }
  await store.compact({ rate: 1e9, maxBytes: 1e9, deadPercent: 100, keepDeltas: true });
  const name = store.path;
  const reader = await Store.open(name, { readOnly: true });
  assert.equal((await rejection(reader.compact())).code, 'WAL_EREADONLY');
  assert.equal((await reader.compact({ dryRun: true })).refused, 0);
  await reader.close();
});

test('a damaged segment is refused, and salvaged', async (t) => {
  const name = storePath(t);
  let store = await Store.open(name);
  const session = await store.create({ id: 's' });
  await session.append([
    { id: 'a', payload: 1 },
    { id: 'b', payload: 'damage-me-here' },
    { id: 'c', payload: 3 },
  ]);
  const whole = await store.create({ id: 'whole' });
  await whole.append({ payload: 1 });
  await store.compact({ rate: Infinity, dryRun: true });
  await store.close();
  const file = damage(path.join(name, 'log'), 'damage-me-here');
  store = await Store.open(name).catch(() => Store.open(name, { readOnly: true }));
  const result = await store.compact({ rate: Infinity }).catch((error) => error);
  await store.close();
  if (!(result instanceof WalError)) {
    assert.equal(result.refused, 1);
    assert.equal(result.refusals.length, 1);
    const [refusal] = result.refusals;
    assert.ok(refusal instanceof WalError);
    assert.equal(refusal.code, 'WAL_ECORRUPT');
    assert.ok(refusal.file.endsWith(file));
    assert.ok(refusal.message.length > 0);
  } else {
    assert.fail(result);
  }

  const out = path.join(temporaryFolder(t), 'out');
  const seen = [];
  const salvaged = await Store.salvage(pathToFileURL(name), out, {
    onProgress: (done, total) => seen.push([done, total]),
  });
  assert.equal(salvaged.sessions, 2);
  assert.ok(salvaged.losses > 0 && salvaged.reports.length > 0);
  assert.ok(salvaged.lostEntries >= 1);
  assert.equal(salvaged.entries, 3);
  const range = salvaged.reports.find((report) => report.kind === 'range');
  assert.match(range.file, /log\//);
  assert.ok(range.size > 0 && range.reason.length > 0);
  assert.ok(seen.length > 0 && seen.every(([done, total]) => done <= total));
  const again = await Store.open(out);
  assert.deepEqual(
    again
      .session('s')
      .entries({ mode: 'all' })
      .toArray()
      .map((entry) => entry.id),
    ['a', 'c'],
  );
  assert.equal(again.info().tail, 'clean');
  await again.close();
});

test('other processes that have replaced files mapped are listed', async (t) => {
  const store = await openStore(t);
  const kept = await store.create({ id: 'kept' });
  const dead = await store.create({ id: 'dead' });
  await append(kept, 100, 10_000);
  await append(dead, 100, 10_000);
  const child = startChild('reader', [store.path, 'kept']);
  assert.equal((await child.line()).entries, 100);
  await dead.delete();
  const result = await store.compact({ rate: Infinity });
  child.stdin.end();
  await child.ended;
  assert.deepEqual(
    result.readers.map((reader) => reader.processId),
    [child.pid],
  );
  assert.ok(result.readers[0].bytes > 0);
});

test('what was read by id or key keeps no file that is erased', async (t) => {
  const store = await openStore(t);
  const session = await store.create({ id: 's' });
  await append(session, 100, 10_000);
  const { lastId } = await session.append({ payload: 'last' });
  await session.documents.put('key', 'value');
  const other = await Store.open(store.path);
  atEnd(t, () => other.close());
  const again = other.session('s');
  const held = [again.entry(lastId), again.documents.get('key')];
  const result = await store.compact({ rate: Infinity, erase: true });
  assert.ok(result.rewritten > 0);
  assert.deepEqual(result.readers, []);
  const old = readFileSync('/proc/self/maps', 'utf8').split('\n')
    .filter((line) => line.includes(store.path) && line.endsWith('(deleted)'));
  assert.deepEqual(old, []);
  assert.deepEqual([held[0].payload, held[1].value], ['last', 'value']);
});

// A store that takes a while to be compacted at 1 MiB/s.
// Bytes a second: a compaction of the store below would take a quarter of an hour, and what ends
// it earlier is far from that on any machine.
const SLOW = 2 ** 14;

async function slowStore(t) {
  const store = await openStore(t);
  const dead = await store.create({ id: 'dead' });
  const kept = await store.create({ id: 'kept' });
  for (let i = 0; i < 8; i++) {
    await append(dead, 100, 10_000);
    await append(kept, 100, 10_000);
  }
  await dead.delete();
  return store;
}

test('a signal stops a compaction, and the next one goes on', async (t) => {
  const store = await slowStore(t);
  const reason = new Error('mine');
  assert.equal(await rejection(store.compact({ signal: AbortSignal.abort(reason) })), reason);
  const controller = new AbortController();
  const begin = Date.now();
  const stopped = store.compact({ rate: SLOW, signal: controller.signal });
  await delay(300);
  const appended = store.session('kept').append({ id: 'meanwhile', payload: 1 });
  controller.abort(reason);
  assert.equal(await rejection(stopped), reason);
  await appended;
  assert.ok(Date.now() - begin < 120_000, `${Date.now() - begin} ms`);
  const result = await store.compact({ rate: Infinity });
  assert.ok(result.droppedRecords >= 800);
  assert.equal(store.session('kept').entries().toArray().length, 801);
});

test('a second compaction at the same time is refused', async (t) => {
  const store = await slowStore(t);
  const controller = new AbortController();
  const first = store.compact({ rate: SLOW, signal: controller.signal });
  await delay(200);
  const error = await rejection(store.compact());
  assert.ok(error instanceof LockedError);
  assert.equal(error.holder, process.pid);
  controller.abort();
  assert.equal((await rejection(first)).name, 'AbortError');
});

test('close stops a compaction, and the store is whole', async (t) => {
  const store = await slowStore(t);
  const outcome = rejection(store.compact({ rate: SLOW }));
  await delay(200);
  const begin = Date.now();
  await store.close();
  assert.ok(Date.now() - begin < 120_000, `${Date.now() - begin} ms`);
  assert.equal((await outcome).code, 'WAL_ECLOSED');
  const again = await Store.open(store.path);
  assert.equal(again.session('kept').entries().toArray().length, 800);
  await again.close();
  assert.equal((await rejection(again.compact())).code, 'WAL_ECLOSED');
});

// How a process or a Worker ends in the middle of a long call.
for (const mode of ['exit', 'terminate', 'throw']) {
  test(`a compaction under way does not keep a process: ${mode}`, async (t) => {
    const store = await slowStore(t);
    await store.close();
    const begin = Date.now();
    const child = startChild('long', [store.path, mode]);
    const { code, errors } = await child.ended;
    assert.equal(code, { exit: 7, terminate: 0, throw: 1 }[mode], errors);
    assert.ok(Date.now() - begin < 120_000, `${Date.now() - begin} ms`);
    const again = await Store.open(store.path);
    assert.equal(again.session('kept').entries().toArray().length, 800);
    assert.ok((await again.compact({ rate: Infinity })).droppedRecords >= 800);
    await again.close();
  });
}

test('a store with a long call under way is not lost', async (t) => {
  const store = await slowStore(t);
  await store.close();
  const child = startChild('held', [store.path], { execArgv: ['--expose-gc'] });
  const { code, lines, errors } = await child.ended;
  assert.equal(code, 0, errors);
  assert.deepEqual(lines[0], { outcomes: ['stopped', 'stopped'], warnings: [] });
});

// ---------------------------------------------------------------- backup ---

test('a backup is a store; the next one copies what is new', async (t) => {
  const store = await openStore(t);
  const session = await store.create({ id: 's' });
  await append(session, 100, 10_000);
  const to = path.join(temporaryFolder(t), 'copy');
  const seen = [];
  session.append({ id: 'last', payload: 'not waited for' });
  const first = await store.backup(pathToFileURL(to), {
    onProgress: (done, total) => seen.push([done, total]),
  });
  assert.ok(first.segments > 0 && first.copied > 0);
  assert.equal(first.removed, 0);
  assert.ok(first.bytes + first.sharedBytes > 1_000_000);
  assert.equal(first.lastSequence, store.info().lastSequence);
  assert.ok(seen.length > 0 && seen.every(([done, total]) => done <= total), JSON.stringify(seen));
  await session.append({ payload: 'new' });
  const second = await store.backup(to);
  assert.ok(second.bytes < 500_000, `${second.bytes} bytes`);
  const copy = await Store.open(to);
  const entries = copy.session('s').entries().toArray();
  assert.equal(entries.length, 102);
  assert.equal(entries[100].id, 'last');
  const locked = await rejection(store.backup(to));
  assert.equal(locked.code, 'WAL_ELOCKED');
  await copy.session('s').append({ payload: 'elsewhere' });
  await copy.close();
  assert.equal((await rejection(store.backup(to))).code, 'WAL_EEXISTS');
});

test('errors of backup', async (t) => {
  const store = await openStore(t);
  const folder = temporaryFolder(t);
  mkdirSync(path.join(folder, 'full'));
  writeFileSync(path.join(folder, 'full', 'x'), '');
  assert.equal((await rejection(store.backup(path.join(folder, 'full')))).code, 'WAL_EEXISTS');
  assert.equal(
    (await rejection(store.backup(path.join(store.path, 'log', 'x')))).code,
    'WAL_EINVAL',
  );
  assert.equal((await rejection(memoryStore(t).backup(path.join(folder, 'm')))).code, 'WAL_EINVAL');
  for (const wrong of wrongPaths) {
    assert.equal((await rejection(store.backup(wrong))).code, 'WAL_EINVAL');
  }
  assert.ok((await rejection(store.backup(`/${'x'.repeat(5000)}`))) instanceof WalError);
  assert.ok((await rejection(store.backup(path.join(folder, 'none', 'none')))) instanceof WalError);
  const reason = new Error('mine');
  assert.equal(
    await rejection(store.backup(path.join(folder, 'b'), { signal: AbortSignal.abort(reason) })),
    reason,
  );
  assert.equal(existsSync(path.join(folder, 'b')), false);
});

test('a backup that is stopped goes on with the next call', async (t) => {
  const store = await openStore(t);
  const session = await store.create({ id: 's' });
  for (let i = 0; i < 6; i++) {
    await append(session, 500, 10_000);
  }
  const to = path.join(temporaryFolder(t), 'copy');
  const controller = new AbortController();
  const stopped = store.backup(to, { signal: controller.signal });
  while (!existsSync(to)) {
    await delay(1);
  }
  controller.abort();
  const outcome = await stopped.catch((error) => error);
  assert.ok(outcome.name === 'AbortError' || outcome.segments > 0);
  await store.backup(to);
  const closing = store.backup(path.join(path.dirname(to), 'other')).catch((error) => error);
  await store.close();
  const closed = await closing;
  assert.ok(closed.code === 'WAL_ECLOSED' || closed.segments > 0);
  const copy = await Store.open(to, { readOnly: true });
  assert.equal(copy.session('s').info().entries, 3000);
  await copy.close();
  assert.equal((await rejection(store.backup(to))).code, 'WAL_ECLOSED');
});

// ------------------------------------------------- salvage and migration ---

test('errors of salvage', async (t) => {
  const store = await openStore(t);
  await (await store.create({ id: 's' })).append({ payload: 1 });
  const folder = temporaryFolder(t);
  const out = path.join(folder, 'out');
  assert.equal(
    (await rejection(Store.salvage(path.join(folder, 'none'), out))).code,
    'WAL_ENOTSTORE',
  );
  assert.equal((await rejection(Store.salvage(store.path, folder))).code, 'WAL_EEXISTS');
  assert.equal(
    (await rejection(Store.salvage(store.path, path.join(store.path, 'x')))).code,
    'WAL_EINVAL',
  );
  assert.equal(
    (await rejection(Store.salvage(store.path, path.join(out, 'none')))).code,
    'WAL_ENOTFOUND',
  );
  for (const wrong of wrongPaths) {
    assert.equal((await rejection(Store.salvage(wrong, out))).code, 'WAL_EINVAL');
    assert.equal((await rejection(Store.salvage(store.path, wrong))).code, 'WAL_EINVAL');
  }
  const reason = new Error('mine');
  const signal = AbortSignal.abort(reason);
  assert.equal(await rejection(Store.salvage(store.path, out, { signal })), reason);
  const sound = await Store.salvage(store.path, out, { networkFs: true });
  assert.deepEqual([sound.sessions, sound.entries, sound.losses, sound.reports], [1, 1, 0, []]);
});

test('a salvage that is stopped removes what it made', async (t) => {
  const store = await openStore(t);
  const session = await store.create({ id: 's' });
  for (let i = 0; i < 6; i++) {
    await append(session, 500, 10_000);
  }
  await store.close();
  const folder = temporaryFolder(t);
  const out = path.join(folder, 'out');
  const controller = new AbortController();
  const reason = new Error('mine');
  const stopped = Store.salvage(store.path, out, { signal: controller.signal });
  while (!existsSync(out)) {
    await delay(1);
  }
  controller.abort(reason);
  assert.equal(await rejection(stopped), reason);
  assert.deepEqual(readdirSync(folder), []);
});

test('migrate of a store that has the version does nothing', async (t) => {
  const name = storePath(t);
  const store = await Store.open(name);
  const { formatVersion } = store.info();
  await store.close();
  assert.deepEqual(await Store.migrate(pathToFileURL(name)), {
    from: formatVersion,
    to: formatVersion,
    sessions: 0,
  });
  const none = path.join(temporaryFolder(t), 'none');
  assert.equal((await rejection(Store.migrate(none))).code, 'WAL_ENOTSTORE');
  assert.equal(existsSync(none), false);
  for (const wrong of wrongPaths) {
    assert.equal((await rejection(Store.migrate(wrong))).code, 'WAL_EINVAL');
  }
  assert.equal((await rejection(Store.migrate(name, { lockTimeout: 'x' }))).code, 'WAL_EINVAL');
});

// ----------------------------------------------------- claims and damage ---

test('claims of this process and of others are listed', async (t) => {
  const store = await openStore(t);
  const mine = await store.create({ id: 'mine' });
  await store.create({ id: 'theirs' });
  assert.deepEqual(store.claims(), []);
  await mine.claim();
  const child = startChild('claim', [store.path, 'theirs']);
  await child.line();
  const claims = store.claims();
  assert.deepEqual(
    claims.map(({ sessionId, processId, own }) => [sessionId, processId, own]),
    [
      ['mine', process.pid, true],
      ['theirs', child.pid, false],
    ],
  );
  assert.equal(claims[0].sessionNumber, mine.info().number);
  child.stdin.end();
  await child.ended;
  await mine.unclaim();
  assert.deepEqual(store.claims(), []);
  await store.close();
  assert.equal(thrown(() => store.claims()).code, 'WAL_ECLOSED');
});

test('iteration goes on after an entry that is damaged', async (t) => {
  const name = storePath(t);
  let store = await Store.open(name);
  const session = await store.create({ id: 's' });
  await session.append(Array.from({ length: 600 }, (_, i) => ({ payload: `<entry ${i}>` })));
  await store.close();
  damage(path.join(name, 'log'), '<entry 300>');
  store = await Store.open(name, { readOnly: true });
  const iterator = store.session('s').entries()[Symbol.iterator]();
  const payloads = [];
  const errors = [];
  for (;;) {
    try {
      const { done, value } = iterator.next();
      if (done) {
        break;
      }
      payloads.push(value.payload);
    } catch (error) {
      errors.push(error.code);
    }
  }
  assert.deepEqual(errors, ['WAL_ECORRUPT']);
  assert.deepEqual(payloads, Array.from({ length: 600 }, (_, i) => `<entry ${i}>`)
    .filter((payload) => payload !== '<entry 300>'));
  await store.close();
});

test('damage of a session is accepted', async (t) => {
  const name = storePath(t);
  let store = await Store.open(name);
  const session = await store.create({ id: 's' });
  await session.append([
    { id: 'a', payload: 1 },
    { id: 'b', payload: 'damage-me-here' },
  ]);
  await session.append({ id: 'c', payload: 3 });
  await store.compact({ rate: Infinity });
  await (await store.create({ id: 'other' })).append({ payload: 1 });
  await store.close();
  damage(path.join(name, 'log'), 'damage-me-here');
  store = await Store.open(name);
  const damaged = store.session('s');
  const refused = await damaged.append({ id: 'd', payload: 4 }).then(
    () => null,
    (error) => error,
  );
  if (refused !== null) {
    assert.equal(refused.code, 'WAL_EDAMAGED');
    assert.equal(damaged.info().isDamaged, true);
  }
  await damaged.acceptDamage();
  await damaged.append({ id: 'e', payload: 5 });
  await store.acceptDamage();
  await store.documents.put('k', 1);
  await store.close();
  assert.equal((await rejection(damaged.acceptDamage())).code, 'WAL_ECLOSED');
  assert.equal((await rejection(store.acceptDamage())).code, 'WAL_ECLOSED');
});
