// What is written comes back, field by field, from a store that was closed and
// opened again.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';

import { Store } from '../index.mjs';
import { atEnd, storePath } from './lib/store.mjs';

const SESSION = {
  id: 'session-1', cwd: '/work/ü', project: 'project', title: 'A title', parentId: 'parent',
  source: 'test', metadata: { a: [1, { b: 'ö' }] }, schemaVersion: 3,
  created: new Date('2026-01-02T03:04:05.678Z'),
};

const ENTRY = {
  id: 'entry-1', parentId: null, type: 'custom-type', timestamp: '2026-01-02T03:04:06Z',
  runId: 'run-1', payload: { text: 'ä€😀', list: [1, 2.5, null, true], none: undefined },
  meta: { tokens: 7 },
};

async function reopened(t, write) {
  const name = storePath(t);
  const store = await Store.open(name);
  await write(store);
  await store.close();
  const again = await Store.open(name, { readOnly: true });
  atEnd(t, () => again.close());
  return again;
}

test('a session has every field that it was created with', async (t) => {
  const store = await reopened(t, (first) => first.create(SESSION));
  const info = store.session('session-1').info();
  for (const [name, value] of Object.entries(SESSION)) {
    assert.deepEqual(info[name], name === 'created' ? value.getTime() : value, name);
  }
  assert.equal(info.number, 1);
  assert.equal(info.head, null);
  assert.equal(info.entries, 0);
  assert.equal(info.inherited, 0);
  assert.equal(info.documents, 0);
  assert.equal(info.updated, info.created);
  assert.ok(info.bytes > 0);
  assert.ok(info.metadataVersion > 0);
  assert.ok(info.lastSequence > 0);
  for (const name of ['isFork', 'isDamaged', 'isDeleted', 'isTrashed', 'isMoved']) {
    assert.equal(info[name], false, name);
  }
  assert.equal(info.firstText, '');
});

test('an entry has every field that it was appended with', async (t) => {
  const store = await reopened(t, async (first) => {
    const session = await first.create({ id: 's' });
    await session.append([ENTRY, { payload: 'second', stream: 0 }]);
    await session.append({ id: 't', stream: 1, payload: 1, moveHead: false });
  });
  const session = store.session('s');
  const [entry, second] = session.entries().toArray();
  assert.equal(entry.id, 'entry-1');
  assert.equal(entry.parentId, null);
  assert.equal(entry.isRoot, true);
  assert.equal(entry.type, 'custom-type');
  assert.equal(entry.timestamp, '2026-01-02T03:04:06Z');
  assert.equal(entry.runId, 'run-1');
  assert.equal(entry.stream, 0);
  assert.deepEqual(entry.payload, { text: 'ä€😀', list: [1, 2.5, null, true] });
  assert.equal(entry.payload, entry.payload, 'it is parsed once');
  assert.equal(entry.text, JSON.stringify(ENTRY.payload));
  assert.deepEqual(entry.bytes, Buffer.from(JSON.stringify(ENTRY.payload)));
  assert.equal(entry.payloadSize, entry.bytes.length);
  assert.deepEqual(entry.meta, { tokens: 7 });
  assert.equal(entry.depth, 0);
  assert.equal(entry.digest, null);
  for (const name of ['isLine', 'isRedacted', 'isOutOfLine']) {
    assert.equal(entry[name], false, name);
  }
  assert.equal(second.parentId, 'entry-1');
  assert.equal(second.type, 'message');
  assert.equal(second.runId, null);
  assert.equal(second.meta, null);
  assert.equal(second.depth, 1);
  assert.ok(second.sequence > entry.sequence);
  assert.match(second.timestamp, /^\d{4}-\d\d-\d\dT/);
  assert.equal(session.entry('t').stream, 1);
  assert.equal(session.head('main', { stream: 1 }), null, 'moveHead false keeps the head');
  assert.equal(session.entry('none'), null);
});

test('lines keep their bytes', async (t) => {
  const bad = Uint8Array.from([0x61, 0xff, 0x62]);
  const store = await reopened(t, async (first) => {
    const session = await first.create({ id: 's' });
    await session.append([
      { line: '{"a": 1}' }, { line: 'no json' }, { line: bad }, { line: '' },
      { text: Buffer.from('{"b": 2}') }, { text: ' [1, 2] ' },
    ]);
  });
  const [json, plain, bytes, empty, buffer, text] = store.session('s').entries().toArray();
  assert.equal(json.isLine, true);
  assert.deepEqual(json.payload, { a: 1 });
  assert.equal(plain.payload, undefined);
  assert.equal(plain.text, 'no json');
  assert.deepEqual(bytes.bytes, Buffer.from(bad));
  assert.equal(bytes.payload, undefined);
  assert.equal(bytes.text, 'a\ufffdb');
  assert.equal(empty.text, '');
  assert.equal(buffer.isLine, false);
  assert.deepEqual(buffer.payload, { b: 2 });
  assert.deepEqual(text.payload, [1, 2]);
});

test('documents have keys, values and versions', async (t) => {
  let versions;
  const store = await reopened(t, async (first) => {
    const session = await first.create({ id: 's' });
    const { documents } = session;
    versions = [await documents.put('k', { v: 1 }), await documents.put('k', [2])];
    await documents.put('gone', 1);
    versions.push(await documents.delete('gone'));
    await first.documents.put('store/k', 'ö');
  });
  const { documents } = store.session('s');
  const now = documents.get('k');
  assert.deepEqual([now.key, now.value, now.version, now.deleted], ['k', [2], versions[1], false]);
  assert.ok(Math.abs(now.modified - Date.now()) < 60_000);
  assert.deepEqual(documents.get('k', { version: versions[0] }).value, { v: 1 });
  assert.equal(documents.get('gone'), null);
  assert.equal(documents.get('none'), null);
  assert.deepEqual(documents.list().map((one) => one.key), ['k']);
  assert.deepEqual(documents.list({ keys: true }).map((one) => one.value), [undefined]);
  assert.deepEqual(documents.list({ prefix: 'k', history: true }).map((one) => one.version),
    [versions[1], versions[0]]);
  const deletion = documents.list({ prefix: 'gone', history: true })[0];
  assert.deepEqual([deletion.deleted, deletion.value, deletion.version],
    [true, undefined, versions[2]]);
  assert.equal(store.documents.get('store/k').value, 'ö');
  assert.deepEqual(store.documents.list().map((one) => one.key), ['store/k']);
});

test('heads have names, streams and notes', async (t) => {
  const store = await reopened(t, async (first) => {
    const session = await first.create({ id: 's' });
    await session.append([{ id: 'a', payload: 1 }, { id: 'b', payload: 2 }]);
    assert.equal(await session.moveHead('a', { name: 'saved', note: 'a note' }), null);
    assert.equal(await session.moveHead('a'), 'b');
    assert.equal(await session.moveHead('b', { name: 'saved', expect: 'a' }), 'a');
    assert.equal(await session.moveHead('a', { name: 'other', expect: null }), null);
    assert.equal(await session.moveHead(null, { name: 'other' }), 'a');
  });
  const session = store.session('s');
  assert.equal(session.head(), 'a');
  assert.equal(session.head('saved'), 'b');
  assert.equal(session.head('other'), null);
  const heads = session.heads();
  assert.deepEqual(heads.map((head) => [head.name, head.stream, head.entryId]),
    [['main', 0, 'a'], ['saved', 0, 'b']]);
  assert.ok(heads.every((head) => head.version > 0));
  assert.deepEqual(session.entries({ head: 'saved' }).toArray().map((entry) => entry.id),
    ['a', 'b']);
});

test('the state of a store counts what it has', async (t) => {
  const store = await reopened(t, async (first) => {
    const session = await first.create({ id: 's' });
    await session.append({ payload: 1 });
    const info = first.info();
    assert.equal(info.acknowledged, 2);
    assert.ok(info.syncs >= 1);
    assert.ok(info.groups >= 2);
  });
  const info = store.info();
  assert.equal(info.status, 'WAL_EREADONLY');
  assert.equal(info.tail, 'clean');
  assert.match(info.uuid, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  assert.equal(info.sessions, 1);
  assert.equal(info.segments, 1);
  assert.ok(info.formatVersion >= 1);
  assert.ok(info.lastSequence >= 2);
  assert.ok(info.logBytes > 0);
  assert.ok(info.diskBytes >= info.logBytes);
  for (const name of ['tailSegment', 'tailOffset', 'tailSize', 'tailSequence', 'queued',
    'packSegments', 'packBytes', 'packDiskBytes']) {
    assert.equal(info[name], 0, name);
  }
  assert.equal(info.queueStatus, null);
});

// The names of the properties that records.d.ts has for an interface.
function declared(name) {
  const text = readFileSync(new URL('../records.d.ts', import.meta.url), 'utf8');
  const [, body] = new RegExp(`^export interface ${name} \\{\n(.*?)^\\}`, 'ms').exec(text);
  return [...body.matchAll(/^ {2}(\w+)\??:/gm)].map((match) => match[1]).sort();
}

test('the states of a store and of a session have the properties that are declared', async (t) => {
  const store = await Store.open(storePath(t));
  const session = await store.create({ id: 's' });
  assert.deepEqual(Object.keys(store.info()).sort(), declared('StoreInfo'));
  assert.deepEqual(Object.keys(session.info()).sort(), declared('SessionInfo'));
  await store.close();
});

test('a store is opened by a URL and by openSync, and its path is kept', async (t) => {
  const name = storePath(t);
  const store = Store.openSync(new URL(`file://${name}`), { exclusive: true });
  assert.equal(store.path, name);
  const session = store.createSync({ id: 's', cwd: '/w' });
  assert.equal(session.store, store);
  assert.equal(session.id, 's');
  store.closeSync();
  assert.throws(() => Store.openSync(name, { exclusive: true }), { code: 'WAL_EEXISTS' });
  assert.throws(() => Store.openSync(`${name}-none`, { create: false }), { code: 'WAL_ENOTSTORE' });
  const again = Store.openSync(name);
  assert.equal(again.latest({ cwd: '/w' }).id, 's');
  again.closeSync();
});
