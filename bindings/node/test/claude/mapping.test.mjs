// What a transcript is in the store.
import assert from 'node:assert/strict';
import test from 'node:test';

import { AgentwalSessionStore } from '../../claude-session-store.mjs';
import { AGENT, MAIN, message, messages, PROJECT, row, SESSION, uuid, withStore }
  from '../lib/claude.mjs';

const { foldSessionSummary } = await import('@anthropic-ai/claude-agent-sdk');
const entriesOf = (session) => session.entries({ mode: 'all' }).toArray();

async function checkSummary(adapter, rows) {
  const [{ mtime }] = await adapter.listSessions(PROJECT);
  assert.deepEqual(await adapter.listSessionSummaries(PROJECT),
    [foldSessionSummary(undefined, MAIN, rows, { mtime })]);
}

test('a transcript is a session, and an entry a line', () => withStore(async (adapter, store) => {
  const rows = [
    row('mode', { mode: 'normal' }),
    message(1),
    row('custom-title', { customTitle: 'Cents' }),
    message(2),
    message(3, { isSidechain: true }),
    message(4, { parentUuid: uuid(99) }),
    message(5, { parentUuid: null }),
    message(6, { parentUuid: uuid(2) }),
  ];
  await adapter.append(MAIN, rows.slice(0, 2));
  await adapter.append(MAIN, rows.slice(2));
  const session = store.session(SESSION);
  const info = session.info();
  assert.equal(info.project, PROJECT);
  assert.equal(info.cwd, '/srv/app');
  assert.equal(info.title, 'Cents');
  assert.equal(info.source, `claude 0 projects/${PROJECT}/${SESSION}.jsonl`);
  assert.equal(info.firstText, 'user 1');
  assert.equal(info.head, uuid(6));

  const entries = entriesOf(session);
  assert.deepEqual(entries.map((entry) => entry.text), rows.map((entry) => JSON.stringify(entry)));
  assert.ok(entries.every((entry) => entry.isLine));
  assert.deepEqual(entries.map((entry) => entry.type), rows.map((entry) => entry.type));
  assert.deepEqual(entries.filter((_, i) => rows[i].timestamp).map((entry) => entry.timestamp),
    rows.filter((entry) => entry.timestamp).map((entry) => entry.timestamp));
  assert.deepEqual(entries.map((entry) => entry.parentId), [
    null, null, uuid(1), uuid(1), uuid(2), uuid(2), null, uuid(2),
  ]);
  assert.deepEqual(entries.filter((_, i) => rows[i].uuid).map((entry) => entry.id),
    rows.filter((entry) => entry.uuid).map((entry) => entry.uuid));
  const made = entries.filter((_, i) => !rows[i].uuid).map((entry) => entry.id);
  assert.deepEqual(made, [...made].sort());
  assert.match(made[0], /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
}));

test('a subpath is a child of the session', () => withStore(async (adapter, store) => {
  await adapter.append(MAIN, messages(1));
  await adapter.append(AGENT, messages(2, { isSidechain: true }));
  await adapter.append({ ...MAIN, subpath: 'x/y' }, messages(1));
  const infos = store.list({ parent: SESSION });
  assert.deepEqual(infos.map((info) => info.id).sort(), [`${SESSION}/x/y`, `${SESSION}~agent-77`]);
  const agent = store.session(`${SESSION}~agent-77`).info();
  assert.equal(agent.source, `claude 0 projects/${PROJECT}/${SESSION}/${AGENT.subpath}.jsonl`);
  assert.equal(agent.head, uuid(2));
  assert.equal((await adapter.session(AGENT)).id, agent.id);
  assert.equal(await adapter.session({ ...MAIN, subpath: 'z' }), null);
}));

test('an entry whose uuid is taken by other content is ignored, the rest is not', () =>
  withStore(async (adapter, store) => {
    await adapter.append(MAIN, messages(2));
    const [{ mtime }] = await adapter.listSessions(PROJECT);
    const before = store.info().lastSequence;
    await adapter.append(MAIN, [message(1, { other: true }), message(2)]);
    // Nothing new: not even the summary is written.
    assert.equal(store.info().lastSequence, before);
    assert.equal((await adapter.listSessions(PROJECT))[0].mtime, mtime);
    await adapter.append(MAIN, [message(2, { other: true }), message(3), message(3),
      message(3, { other: true })]);
    assert.deepEqual(await adapter.load(MAIN), messages(3));
    assert.deepEqual(adapter.stats,
      { appended: 3, duplicates: 2, ignored: 3, retries: 0, unreadable: 0 });
    await checkSummary(adapter, messages(3));
  }));

test('entries and their summary are one batch', () => withStore(async (adapter, store) => {
  await adapter.append(MAIN, messages(2));
  const versions = store.session(SESSION).documents.list({ prefix: 'claude/' })
    .map((document) => document.version);
  const last = entriesOf(store.session(SESSION)).at(-1).sequence;
  // One after the other in the log.
  assert.deepEqual(versions.sort(), [last + 1, last + 2]);
}));

test('a summary that does not change is not written again', () =>
  withStore(async (adapter, store) => {
    await adapter.append(MAIN, messages(1));
    for (let i = 0; i < 5; i++) {
      await adapter.append(MAIN, [row('mode')]);
    }
    const documents = store.session(SESSION).documents.list({ prefix: 'claude/', history: true });
    assert.equal(documents.filter((document) => document.key === 'claude/summary').length, 1);
    assert.equal(documents.filter((document) => document.key === 'claude/fold').length, 6);
    await checkSummary(adapter, await adapter.load(MAIN));
  }));

test('a redacted entry is not loaded, and its text leaves the summary', () =>
  withStore(async (adapter, store) => {
    const rows = [message(1), message(2, { message: { role: 'assistant', content: 'SECRET' } }),
      message(3, { lastPrompt: 'SECRET' }), message(4)];
    await adapter.append(MAIN, rows);
    assert.match(JSON.stringify(await adapter.listSessionSummaries(PROJECT)), /SECRET/);
    const session = store.session(SESSION);
    await session.redact(uuid(2), 'a secret');
    // The row below it is under the row above it, so that the client finds both.
    assert.deepEqual(await adapter.load(MAIN),
      [rows[0], { ...rows[2], parentUuid: uuid(1) }, rows[3]]);
    await session.redact(uuid(3));
    assert.deepEqual(await adapter.listSessionSummaries(PROJECT), []);
    const left = [rows[0], { ...rows[3], parentUuid: uuid(1) }];
    assert.deepEqual(await adapter.load(MAIN), left);

    await adapter.append(MAIN, [rows[1], message(5)]);
    assert.equal(adapter.stats.ignored, 1);
    assert.deepEqual(await adapter.load(MAIN), [...left, message(5)]);
    await checkSummary(adapter, [...left, message(5)]);
    assert.doesNotMatch(JSON.stringify(await adapter.listSessionSummaries(PROJECT)), /SECRET/);

    await session.redact(uuid(5));
    assert.deepEqual(await adapter.load(MAIN), left);
    await session.redact(uuid(1));
    assert.deepEqual(await adapter.load(MAIN), [{ ...rows[3], parentUuid: null }]);
  }));

test('a session in the trash is unknown, refuses appends, and can be deleted', () =>
  withStore(async (adapter, store) => {
    for (const key of [MAIN, AGENT]) {
      await adapter.append(key, messages(1));
      await (await adapter.session(key)).trash();
      assert.equal(await adapter.load(key), null);
      for (const number of [2, 1]) {
        await assert.rejects(adapter.append(key, [message(number)]), { code: 'WAL_ETRASHED' });
      }
      await adapter.append(key, []);
    }
    assert.deepEqual(await adapter.listSessions(PROJECT), []);
    assert.deepEqual(await adapter.listSubkeys(MAIN), []);
    await adapter.delete(MAIN);
    assert.equal(store.list({ trash: true }).length, 0);
    await adapter.append(MAIN, [message(2)]);
    assert.deepEqual(await adapter.load(MAIN), [message(2)]);
  }));

test('without the SDK\'s function there are no summaries, and with it they return', () =>
  withStore(async (adapter, store) => {
    const failing = () => { throw new Error('no fold'); };
    const without = new AgentwalSessionStore(store, { foldSessionSummary: failing });
    await without.append(MAIN, messages(1));
    assert.deepEqual(await adapter.listSessionSummaries(PROJECT), []);
    assert.equal((await adapter.listSessions(PROJECT)).length, 1);
    await adapter.append(MAIN, [message(2)]);
    await checkSummary(adapter, messages(2));
    await without.append(MAIN, [message(3)]);
    assert.deepEqual(await adapter.listSessionSummaries(PROJECT), []);
    assert.deepEqual(await adapter.load(MAIN), messages(3));
  }));
