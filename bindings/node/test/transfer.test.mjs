// Sessions from one store to another, and bundles.

import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { setTimeout as delay } from 'node:timers/promises';
import test from 'node:test';

import { isBundle, NotFoundError, Store, WalError } from '../index.mjs';
import {
  memoryStore,
  openStore,
  rejection,
  storePath,
  temporaryFolder,
  thrown,
  wrongPaths,
} from './lib/store.mjs';

// Two sessions, one a fork, and documents.
async function fill(store) {
  const session = await store.create({ id: 'a', title: 'first', cwd: '/work' });
  await session.append([
    { id: 'e1', payload: 1 },
    { id: 'e2', payload: { x: 'ä' } },
  ]);
  await session.documents.put('key', { v: 1 });
  await session.fork({ id: 'f', at: 'e1' });
  await store.documents.put('shared', [1, 2]);
  return session;
}

function ids(store, id) {
  return store
    .session(id)
    .entries()
    .toArray()
    .map((entry) => entry.id);
}

test('merge takes in sessions, forks and documents; again it changes nothing', async (t) => {
  const from = memoryStore(t);
  const to = memoryStore(t);
  await fill(from);
  const first = await to.merge(from);
  assert.deepEqual([first.created, first.continued, first.unchanged, first.refused], [2, 0, 0, 0]);
  assert.equal(first.bytes, 0);
  assert.equal(first.differingDocuments, 0);
  assert.ok(first.documents >= 2);
  assert.deepEqual(first.reports.map((report) => [report.kind, report.sessionId]).sort(), [
    ['created', 'a'],
    ['created', 'f'],
  ]);
  assert.deepEqual(ids(to, 'a'), ['e1', 'e2']);
  assert.equal(to.session('f').info().isFork, true);
  assert.deepEqual(to.session('a').documents.get('key').value, { v: 1 });
  assert.deepEqual(to.documents.get('shared').value, [1, 2]);

  const second = await to.merge(from);
  assert.deepEqual([second.created, second.unchanged, second.entries], [0, 2, 0]);
  from.session('a').append({ id: 'e3', payload: 3 }); // not waited for
  const third = await to.merge(from);
  assert.deepEqual([third.continued, third.entries], [1, 1]);
  assert.deepEqual(ids(to, 'a'), ['e1', 'e2', 'e3']);
});

test('merge of named sessions, and of none', async (t) => {
  const from = memoryStore(t);
  const to = memoryStore(t);
  await fill(from);
  assert.equal((await to.merge(from, { sessions: [] })).created, 0);
  const one = await to.merge(from, { sessions: ['a'] });
  assert.equal(one.created, 1);
  assert.equal(to.documents.get('shared'), null);
  const absent = await rejection(to.merge(from, { sessions: ['a', 'none'] }));
  assert.ok(absent instanceof NotFoundError);
  assert.equal(absent.actual, 'none');
});

test('what both went on with is kept on both sides', async (t) => {
  const from = await openStore(t);
  const to = memoryStore(t);
  await (await from.create({ id: 's' })).append({ id: 'e1', payload: 1 });
  await to.merge(from);
  await from.session('s').append({ id: 'e2', payload: 'here' });
  await to.session('s').append({ id: 'e3', payload: 'there' });
  const keep = { keepBoth: true, branchName: 'host' };
  const made = await to.merge(from, keep);
  assert.deepEqual([made.refused, made.branched], [0, 1]);
  assert.deepEqual(
    made.reports.map(({ kind, branchId, entries }) => [kind, branchId, entries]),
    [['branched', 's@host', 1]],
  );
  assert.deepEqual(ids(to, 's'), ['e1', 'e3']);
  assert.deepEqual(ids(to, 's@host'), ['e1', 'e2']);
  assert.deepEqual(
    [to.session('s@host').info().isFork, to.session('s').info().isMoved],
    [true, false],
  );
  const file = path.join(temporaryFolder(t), 'both.bundle');
  await from.writeBundle(file);
  const again = await to.readBundle(file, keep);
  assert.deepEqual([again.unchanged, again.reports[0].branchId], [1, 's@host']);
  assert.equal((await to.merge(from)).refused, 1);
  const wrong = async (branchName) =>
    (await rejection(to.merge(from, { keepBoth: true, branchName }))).code;
  assert.equal(await wrong(5), 'WAL_EINVAL');
  assert.equal(await wrong('\ud800'), 'WAL_EINVAL');
  assert.equal(await wrong('x'.repeat(300)), 'WAL_ETOOBIG');
});

test('what differs is refused and reported', async (t) => {
  const from = memoryStore(t);
  const to = memoryStore(t);
  await fill(from);
  const other = await to.create({ id: 'a' });
  await other.append({ id: 'e1', payload: 'something else' });
  await to.documents.put('shared', 'mine');
  const result = await to.merge(from);
  assert.equal(result.refused, 2, 'the fork, too');
  assert.equal(result.differingDocuments, 1);
  const refused = result.reports.find((report) => report.sessionId === 'a');
  assert.equal(refused.kind, 'refused');
  assert.equal(refused.error.code, 'WAL_EEXISTS');
  assert.ok(refused.error instanceof WalError);
  const document = result.reports.find((report) => report.kind === 'document');
  assert.deepEqual([document.key, document.sessionId], ['shared', '']);
  assert.equal(to.documents.get('shared').value, 'mine');
});

test('errors of merge', async (t) => {
  const store = await openStore(t);
  const name = storePath(t);
  const other = await Store.open(name);
  await fill(other);
  for (const wrong of [undefined, null, 5, {}, name]) {
    assert.equal((await rejection(store.merge(wrong))).code, 'WAL_EINVAL');
  }
  assert.equal((await rejection(store.merge(store))).code, 'WAL_EINVAL');
  for (const wrong of [
    { sessions: 'a' },
    { sessions: [5] },
    { sessions: [undefined] },
    { sessions: ['\ud800'] },
    { directory: 5 },
    { directory: 'a\0b' },
    { onProgress: 'x' },
    { signal: 1 },
  ]) {
    assert.equal(
      (await rejection(store.merge(other, wrong))).code,
      'WAL_EINVAL',
      JSON.stringify(wrong),
    );
  }
  const reader = await Store.open(name, { readOnly: true });
  assert.equal((await rejection(reader.merge(store))).code, 'WAL_EREADONLY');
  assert.equal((await store.merge(reader)).created, 2);
  await reader.close();
  await other.close();
  assert.equal((await rejection(store.merge(other))).code, 'WAL_ECLOSED');
  assert.equal((await rejection(other.merge(store))).code, 'WAL_ECLOSED');
});

test('a bundle is written and read', async (t) => {
  const folder = temporaryFolder(t);
  const bundle = path.join(folder, 'b.bundle');
  const from = memoryStore(t);
  const session = await fill(from);
  session.append({ id: 'e3', payload: 'not waited for' });
  const written = await from.writeBundle(pathToFileURL(bundle));
  assert.equal(written.created, 2);
  assert.equal(written.entries, 3);
  assert.equal(written.bytes, readFileSync(bundle).length);
  assert.deepEqual(readdirSync(folder), ['b.bundle']);
  assert.equal(isBundle(bundle), true);
  assert.equal(isBundle(pathToFileURL(bundle)), true);

  const to = await openStore(t);
  const read = await to.readBundle(bundle, { directory: folder });
  assert.equal(read.created, 2);
  assert.deepEqual(ids(to, 'a'), ['e1', 'e2', 'e3']);
  assert.equal((await to.readBundle(bundle)).unchanged, 2);
  assert.equal(to.documents.get('shared'), null);

  const one = path.join(folder, 'one.bundle');
  await from.writeBundle(one, { sessions: ['f'], directory: pathToFileURL(folder) });
  const third = memoryStore(t);
  assert.deepEqual(
    (await third.readBundle(one)).reports.map((report) => report.sessionId),
    ['f'],
  );
  assert.deepEqual(ids(third, 'f'), ['e1']);
});

test('errors of bundles', async (t) => {
  const folder = temporaryFolder(t);
  const bundle = path.join(folder, 'b.bundle');
  const from = memoryStore(t);
  await fill(from);
  await from.writeBundle(bundle);
  const to = memoryStore(t);
  assert.equal((await rejection(from.writeBundle(bundle))).code, 'WAL_EEXISTS');
  assert.ok(
    (await rejection(from.writeBundle(path.join(folder, 'x'), { sessions: ['none'] }))) instanceof
      NotFoundError,
  );
  assert.equal(existsSync(path.join(folder, 'x')), false);
  assert.ok((await rejection(to.readBundle(path.join(folder, 'none')))) instanceof NotFoundError);
  assert.equal((await rejection(to.readBundle(folder))).code, 'WAL_ENOTFILE');
  const text = path.join(folder, 'text');
  writeFileSync(text, 'no bundle');
  assert.equal((await rejection(to.readBundle(text))).code, 'WAL_EINVAL');
  assert.equal(isBundle(text), false);
  assert.equal(isBundle(path.join(folder, 'none')), false);
  assert.equal(isBundle(folder), false);

  const bytes = readFileSync(bundle);
  const damaged = path.join(folder, 'damaged');
  bytes[bytes.length - 100] ^= 1;
  writeFileSync(damaged, bytes);
  const error = await rejection(to.readBundle(damaged));
  assert.equal(error.code, 'WAL_ECORRUPT');
  assert.equal(error.file, damaged);
  truncateSync(bundle, bytes.length - 1);
  assert.equal((await rejection(to.readBundle(bundle))).code, 'WAL_ECORRUPT');
  assert.equal(to.list().length, 0);
});

test('hostile paths of bundles', async (t) => {
  const store = memoryStore(t);
  for (const wrong of wrongPaths) {
    assert.equal((await rejection(store.writeBundle(wrong))).code, 'WAL_EINVAL');
    assert.equal((await rejection(store.readBundle(wrong))).code, 'WAL_EINVAL');
    assert.equal(thrown(() => isBundle(wrong)).code, 'WAL_EINVAL');
  }
  const long = `/${'x'.repeat(5000)}`;
  assert.equal(isBundle(long), false);
  for (const error of [
    await rejection(store.writeBundle(long)),
    await rejection(store.readBundle(long)),
  ]) {
    assert.ok(error instanceof WalError, error);
  }
});

// ----------------------------------------------------------- stopping it ---

// A store with a session of many entries.
async function fillMany(store, count) {
  const session = await store.create({ id: 'many' });
  const payload = { text: 'x'.repeat(100) };
  for (let done = 0; done < count; done += 1000) {
    const entries = Array.from({ length: 1000 }, () => ({ payload }));
    await session.append(entries, { durability: 'written' });
  }
}

async function waitForEntries(store) {
  while (!store.list().some((info) => info.entries > 0)) {
    await delay(1);
  }
}

test('a merge is stopped in the middle, and completed by the next', async (t) => {
  const from = memoryStore(t);
  const to = memoryStore(t);
  const count = 100_000;
  await fillMany(from, count);
  const controller = new AbortController();
  const reason = new Error('mine');
  const stopped = to.merge(from, { signal: controller.signal });
  await waitForEntries(to);
  controller.abort(reason);
  assert.equal(await rejection(stopped), reason);
  const { entries } = to.session('many').info();
  assert.ok(entries > 0 && entries < count, `${entries} entries`);
  const seen = [];
  const result = await to.merge(from, { onProgress: (done, total) => seen.push(done / total) });
  assert.equal(to.session('many').info().entries, count);
  assert.equal(result.refused, 0);
  assert.equal(seen[seen.length - 1], 1);
});

test('closing either store stops a merge', async (t) => {
  for (const which of ['from', 'to']) {
    const stores = { from: memoryStore(t), to: memoryStore(t) };
    await fillMany(stores.from, 50_000);
    const outcome = rejection(stores.to.merge(stores.from));
    await waitForEntries(stores.to);
    await stores[which].close();
    assert.equal((await outcome).code, 'WAL_ECLOSED');
    await Promise.all([stores.from.close(), stores.to.close()]);
  }
});

test('a bundle that is stopped leaves no file', async (t) => {
  const folder = temporaryFolder(t);
  const store = memoryStore(t);
  await fillMany(store, 50_000);
  const reason = new Error('mine');
  assert.equal(
    await rejection(
      store.writeBundle(path.join(folder, 'b'), { signal: AbortSignal.abort(reason) }),
    ),
    reason,
  );
  const controller = new AbortController();
  const stopped = store.writeBundle(path.join(folder, 'b'), { signal: controller.signal });
  await delay(20);
  controller.abort(reason);
  assert.equal(await rejection(stopped), reason);
  assert.deepEqual(readdirSync(folder), []);

  const outcome = rejection(store.writeBundle(path.join(folder, 'b')));
  await delay(20);
  await store.close();
  assert.equal((await outcome).code, 'WAL_ECLOSED');
  assert.deepEqual(readdirSync(folder), []);
});

test('reading a bundle is stopped by a close', async (t) => {
  const folder = temporaryFolder(t);
  const from = memoryStore(t);
  await fillMany(from, 50_000);
  mkdirSync(path.join(folder, 'temporary'));
  await from.writeBundle(path.join(folder, 'b'));
  const to = await openStore(t);
  const outcome = rejection(to.readBundle(path.join(folder, 'b')));
  await waitForEntries(to);
  to.closeSync();
  assert.equal((await outcome).code, 'WAL_ECLOSED');
});

test('many calls at the same time', async (t) => {
  const folder = temporaryFolder(t);
  const from = memoryStore(t);
  await fill(from);
  const stores = Array.from({ length: 6 }, () => memoryStore(t));
  const results = await Promise.all([
    ...stores.map((store) => store.merge(from)),
    ...stores.map((_, i) => from.writeBundle(path.join(folder, `${i}`))),
  ]);
  assert.ok(results.every((result) => result.created === 2));
});
