// Keys and entries that no store should have to expect, and closed or damaged
// stores.
import assert from 'node:assert/strict';
import { closeSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from 'node:fs';
import path from 'node:path';
import test from 'node:test';

import { AgentwalSessionStore, forkSession } from '../../claude-session-store.mjs';
import { Store } from '../../index.mjs';
import { AGENT, MAIN, message, messages, PROJECT, row, SESSION, uuid, withStore }
  from '../lib/claude.mjs';

test('entries that have no JSON are refused, and nothing is written', () =>
  withStore(async (adapter, store) => {
    const cycle = row('cycle');
    cycle.self = cycle;
    const bad = [cycle, row('big', { n: 1n }), undefined, null, 'text', 7, [], Symbol('s'),
      () => {}, { toJSON: () => 'text' }, { toJSON: () => undefined },
      { toJSON: () => { throw new Error('no'); } }];
    const before = store.info().lastSequence;
    for (const entry of bad) {
      await assert.rejects(adapter.append(MAIN, [message(1), entry]),
        { name: 'TypeError', message: /^entry 1 / });
    }
    for (const entries of [undefined, null, 'text', {}, message(1)]) {
      await assert.rejects(adapter.append(MAIN, entries), TypeError);
    }
    assert.equal(store.info().lastSequence, before);
    assert.equal(await adapter.load(MAIN), null);
  }));

test('entries are loaded as JSON has them', () => withStore(async (adapter) => {
  const entries = [
    { type: 'x', missing: undefined, nan: NaN, date: new Date(0), list: [undefined, () => {}] },
    { uuid: 'no type' },
    { type: 7, uuid: 7, parentUuid: {}, timestamp: [], message: null, cwd: 1 },
    { type: 'half', text: 'a\ud800b', uuid: '\udc00' },
    { type: '\ud800', timestamp: '\ud800', cwd: '\ud800', customTitle: '\ud800' },
    { type: 'custom-title', customTitle: 'x'.repeat(5000) },
    { type: 't'.repeat(300), timestamp: 't'.repeat(100), uuid: 'u'.repeat(300) },
    { type: '', uuid: '', parentUuid: '' },
    { type: 'self', uuid: 'self', parentUuid: 'self' },
    { type: 'nul\0\x7f', timestamp: 'a\0b', cwd: '/a\0b\n' },
    { type: 'custom-title', customTitle: 'a\0b\n\x1b[0m' },
    { type: 'control', uuid: 'a\0b\nc', parentUuid: 'u'.repeat(300) },
    { type: 'user', message: { role: 'user', content: null } },
    { type: 'toString', constructor: 1, ['__proto__']: { a: 1 } },
    JSON.parse('{"type":"proto","__proto__":{"a":1}}'),
    {},
  ];
  await adapter.append(MAIN, entries);
  const expected = JSON.parse(JSON.stringify(entries));
  assert.equal(JSON.stringify(await adapter.load(MAIN)), JSON.stringify(expected));
  // The uuids, however long, are idempotency keys.
  await adapter.append(MAIN, [entries[3], entries[6], entries[8], entries[11]]);
  assert.equal((await adapter.load(MAIN)).length, entries.length);
  assert.equal(adapter.stats.duplicates, 4);
}));

test('entries of types that the engine interprets are rows like any other', () =>
  withStore(async (adapter) => {
    await adapter.append(MAIN, messages(2));
    const rows = ['message_delta_batch', 'redaction', 'compaction_summary', 'branch_summary',
      'session_header', 'custom', 'walconv_copy'].map((type) =>
      row(type, { targetEntryId: uuid(1), firstKeptEntryId: uuid(2), summary: 's' }));
    await adapter.append(MAIN, rows);
    assert.deepEqual(await adapter.load(MAIN), [...messages(2), ...rows]);
  }));

test('entries are taken as they are when append is called', () => withStore(async (adapter) => {
  const entry = row('mutable', { list: [1] });
  const append = adapter.append(MAIN, [entry]);
  entry.list.push(2);
  await append;
  assert.deepEqual(await adapter.load(MAIN), [row('mutable', { list: [1] })]);
}));

test('an entry of some megabytes is kept', () => withStore(async (adapter) => {
  const rows = [message(1, { big: 'ä'.repeat(3 << 20) }), message(2)];
  await adapter.append(MAIN, rows);
  assert.deepEqual(await adapter.load(MAIN), rows);
}));

test('keys that are not valid are refused', () => withStore(async (adapter) => {
  const bad = [undefined, null, 'text', {}, { projectKey: PROJECT }, { sessionId: SESSION },
    { projectKey: PROJECT, sessionId: '' }, { projectKey: 1, sessionId: SESSION },
    { ...MAIN, subpath: '' }, { ...MAIN, subpath: null }, { ...MAIN, subpath: 1 }];
  for (const key of bad) {
    for (const call of [() => adapter.append(key, messages(1)), () => adapter.load(key),
      () => adapter.delete(key), () => forkSession(adapter, key)]) {
      await assert.rejects(call(), TypeError);
    }
  }
  await assert.rejects(adapter.listSessions(undefined), TypeError);
  await assert.rejects(adapter.listSessionSummaries(7), TypeError);
  await assert.rejects(adapter.listSubkeys({ projectKey: PROJECT }), TypeError);
}));

const HOSTILE = [
  '', '.', '..', '../../etc', '/', '//', 'a/b', 'a\\b', '%', '%2F', '%~', '~', 'é', '日本', '😀',
  '\ud800', 'a\udc00b', '\ud83d', '\0', 'a\nb', ' ', 'x.jsonl', 'projects', 'claude 0 x',
  'subagents', 'p'.repeat(255), 'p'.repeat(256), 'é'.repeat(200), 'q'.repeat(5000),
  `${'q'.repeat(4999)}r`, '\ud800'.repeat(2000), 'con', 'a'.repeat(160), 'a'.repeat(161),
];

test('no two keys share a transcript, whatever is in them', () => withStore(async (adapter) => {
  const keys = [];
  for (const text of HOSTILE) {
    keys.push({ projectKey: text, sessionId: SESSION });
    if (text !== '') {
      keys.push({ projectKey: PROJECT, sessionId: text },
        { projectKey: PROJECT, sessionId: SESSION, subpath: text },
        { projectKey: PROJECT, sessionId: text, subpath: 'subagents/agent-1' });
    }
  }
  for (const [n, key] of keys.entries()) {
    await adapter.append(key, [row('n', { n })]);
  }
  for (const [n, key] of keys.entries()) {
    assert.deepEqual(await adapter.load(key), [row('n', { n })], JSON.stringify(key));
  }
  for (const projectKey of HOSTILE) {
    assert.deepEqual((await adapter.listSessions(projectKey)).map((s) => s.sessionId), [SESSION],
      JSON.stringify(projectKey));
  }
  const named = HOSTILE.filter((text) => text !== '');
  assert.deepEqual((await adapter.listSessions(PROJECT)).map((s) => s.sessionId).sort(),
    [...named].sort());
  assert.equal((await adapter.listSessionSummaries(PROJECT)).length, named.length);
  assert.deepEqual((await adapter.listSubkeys(MAIN)).sort(), [...named].sort());

  for (const [n, key] of keys.entries()) {
    await adapter.delete(key);
    assert.equal(await adapter.load(key), null);
    if (n + 1 < keys.length) {
      const next = await adapter.load(keys[n + 1]);
      // A main transcript takes its subpaths with it.
      assert.ok(next !== null || keys[n + 1].subpath !== undefined);
    }
  }
}));

test('ids that other sessions have do not matter', () => withStore(async (adapter, store) => {
  await store.create({ id: SESSION, project: PROJECT, source: 'pi 0 session.jsonl' });
  await store.create({ id: `${SESSION}~agent-77` });
  await adapter.append(MAIN, messages(1));
  await adapter.append(AGENT, messages(2));
  assert.deepEqual(await adapter.load(MAIN), messages(1));
  assert.deepEqual(await adapter.load(AGENT), messages(2));
  assert.deepEqual((await adapter.listSessions(PROJECT)).map((s) => s.sessionId), [SESSION]);
  assert.equal(store.session(SESSION).info().entries, 0);
  await adapter.delete(MAIN);
  assert.equal(await adapter.load(MAIN), null);
  assert.equal(store.session(SESSION).info().entries, 0);
}));

test('calls after close are refused', async () => {
  await withStore(async (adapter, store) => {
    const append = adapter.append(MAIN, messages(3));
    const closing = adapter.close();
    await Promise.all([append, closing, adapter.close()]);
    const calls = [() => adapter.append(MAIN, messages(1)), () => adapter.load(MAIN),
      () => adapter.delete(MAIN), () => adapter.listSessions(PROJECT),
      () => adapter.listSessionSummaries(PROJECT), () => adapter.listSubkeys(MAIN),
      () => adapter.fork(MAIN), () => adapter.session(MAIN)];
    for (const call of calls) {
      await assert.rejects(call(), { code: 'WAL_ECLOSED' });
    }
    // The store is the caller's.
    assert.equal(store.session(SESSION).info().entries, 3);

    const other = new AgentwalSessionStore(store);
    await store.close();
    for (const call of [() => other.append(MAIN, messages(1)), () => other.load(MAIN)]) {
      await assert.rejects(call(), { code: 'WAL_ECLOSED' });
    }
  });
});

test('a path is opened when it is needed, and again when that failed', () =>
  withStore(async (adapter, store, folder) => {
    const unused = new AgentwalSessionStore(path.join(folder, 'unused'));
    await unused.close();
    assert.deepEqual(readdirSync(folder), ['store']);

    const late = new AgentwalSessionStore(path.join(folder, 'late'), { open: { create: false } });
    await assert.rejects(late.load(MAIN), { code: 'WAL_ENOTSTORE' });
    await (await Store.open(path.join(folder, 'late'))).close();
    assert.equal(await late.load(MAIN), null);
    await late.append(MAIN, messages(1));
    await late.close();

    const readOnly = new AgentwalSessionStore(path.join(folder, 'late'),
      { open: { readOnly: true } });
    assert.deepEqual(await readOnly.load(MAIN), messages(1));
    await assert.rejects(readOnly.append(MAIN, messages(2)), { code: 'WAL_EREADONLY' });
    await readOnly.close();
  }));

test('arguments of the constructor are checked', () => {
  for (const store of [undefined, null, 7, {}]) {
    assert.throws(() => new AgentwalSessionStore(store), { code: 'WAL_EINVAL' });
  }
  for (const options of [{ durability: 'maybe' }, { damaged: 'ignore' }]) {
    assert.throws(() => new AgentwalSessionStore('unused', options), { code: 'WAL_EINVAL' });
  }
});

/** Changes a byte of a text in the only log segment. */
function damage(storePath, text) {
  for (const name of readdirSync(storePath, { recursive: true })) {
    const file = path.join(storePath, name);
    let at = -1;
    try {
      at = readFileSync(file).indexOf(text);
    } catch (error) {
      assert.equal(error.code, 'EISDIR');
    }
    if (at >= 0) {
      const fd = openSync(file, 'r+');
      writeSync(fd, 'X', at + 2);
      closeSync(fd);
      return;
    }
  }
  assert.fail(`no file has ${text}`);
}

test('a damaged entry is reported, or left out when asked', () =>
  withStore(async (adapter, store) => {
    const rows = [...messages(2), message(3, { extra: 'NEEDLE' }), message(4)];
    for (const entry of rows) {
      await adapter.append(MAIN, [entry]);
    }
    damage(store.path, 'NEEDLE');
    await assert.rejects(adapter.load(MAIN), { code: 'WAL_ECORRUPT' });
    const skipping = new AgentwalSessionStore(store, { damaged: 'skip' });
    assert.deepEqual(await skipping.load(MAIN), [rows[0], rows[1], rows[3]]);
    assert.equal(skipping.stats.unreadable, 1);
  }));

test('a session that lost entries is not resumed and not continued, unless asked', () =>
  withStore(async (adapter, store, folder) => {
    const rows = [message(1), message(2, { extra: 'NEEDLE' }), message(3)];
    const place = path.join(folder, 'damaged');
    const writer = new AgentwalSessionStore(place);
    for (const entry of rows) {
      await writer.append(MAIN, [entry]);
    }
    await writer.close();
    damage(place, 'NEEDLE');
    // Without indexes, the store finds out what it lost when it is opened.
    rmSync(path.join(place, 'index'), { recursive: true });

    const reader = new AgentwalSessionStore(place);
    const skipping = new AgentwalSessionStore(place, { damaged: 'skip' });
    await assert.rejects(reader.load(MAIN), { code: 'WAL_EDAMAGED' });
    await assert.rejects(reader.append(MAIN, [message(4)]), { code: 'WAL_EDAMAGED' });
    assert.deepEqual(await skipping.load(MAIN), [rows[0], rows[2]]);
    assert.equal((await reader.listSessions(PROJECT)).length, 1);
    // Its summary would be that of other entries.
    assert.deepEqual(await reader.listSessionSummaries(PROJECT), []);
    await reader.delete(MAIN);
    assert.equal(await reader.load(MAIN), null);
    await reader.close();
    await skipping.close();
  }));
