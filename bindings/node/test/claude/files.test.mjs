// Transcripts and Claude Code's files: imports, conversions and compaction.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import test from 'node:test';

import { forkSession } from '../../claude-session-store.mjs';
import { AGENT, MAIN, message, messages, PROJECT, row, SESSION, uuid, withStore }
  from '../lib/claude.mjs';

const { foldSessionSummary } = await import('@anthropic-ai/claude-agent-sdk');
const SAMPLE = new URL('../../../../tools/example/session.jsonl', import.meta.url);
const lines = (rows) => rows.map((entry) => `${JSON.stringify(entry)}\n`).join('');
const parse = (text) => text.split('\n').filter(Boolean).map((line) => JSON.parse(line));
const entriesOf = (session) => session.entries({ mode: 'all' }).toArray();

/** Writes transcripts where Claude Code has them; returns its folder. */
function writeFiles(folder, main, agent) {
  const client = path.join(folder, '.claude');
  const project = path.join(client, 'projects', PROJECT);
  mkdirSync(path.join(project, SESSION, 'subagents'), { recursive: true });
  writeFileSync(path.join(project, `${SESSION}.jsonl`), lines(main));
  if (agent !== undefined) {
    writeFileSync(path.join(project, SESSION, `${AGENT.subpath}.jsonl`), lines(agent));
  }
  return client;
}

async function checkSummary(adapter, rows) {
  const [{ mtime }] = await adapter.listSessions(PROJECT);
  assert.deepEqual(await adapter.listSessionSummaries(PROJECT),
    [foldSessionSummary(undefined, MAIN, rows, { mtime })]);
}

test('a session that was imported from Claude Code\'s files continues', () =>
  withStore(async (adapter, store, folder) => {
    const main = [message(1), row('custom-title', { customTitle: 'Cents' }), message(2)];
    const agent = messages(2, { isSidechain: true, agentId: '77' });
    await store.import(writeFiles(folder, main, agent));
    assert.deepEqual(await adapter.load(MAIN), main);
    assert.deepEqual(await adapter.load(AGENT), agent);
    assert.deepEqual(await adapter.listSubkeys(MAIN), [AGENT.subpath]);
    assert.deepEqual(await adapter.listSessions(PROJECT),
      [{ sessionId: SESSION, mtime: Date.parse(message(2).timestamp) }]);
    assert.deepEqual(await adapter.listSessions('-srv'), []);
    // The SDK loads what has no summary.
    assert.deepEqual(await adapter.listSessionSummaries(PROJECT), []);

    await adapter.append(MAIN, [message(2), message(3)]);
    await adapter.append(AGENT, [message(2, { isSidechain: true, agentId: '77' })]);
    assert.deepEqual(await adapter.load(MAIN), [...main, message(3)]);
    assert.equal(adapter.stats.duplicates, 2);
    assert.equal(store.list().length, 2);
    await checkSummary(adapter, [...main, message(3)]);
    await adapter.delete(MAIN);
    assert.equal(store.list().length, 0);
  }));

test('a session that was mirrored is the one that an import of its file finds', () =>
  withStore(async (adapter, store, folder) => {
    const main = [message(1), row('custom-title', { customTitle: 'Cents' }), message(2)];
    const agent = messages(2, { isSidechain: true, agentId: '77' });
    await adapter.append(MAIN, main);
    await adapter.append(AGENT, agent);
    const first = await store.import(writeFiles(folder, main, agent));
    assert.equal(first.appended, 0);
    assert.equal(first.duplicates, 5);
    // The client went on without the SDK.
    const second = await store.import(writeFiles(folder, [...main, message(3)], agent));
    assert.equal(second.appended, 1);
    assert.equal(store.list().length, 2);
    assert.deepEqual(await adapter.load(MAIN), [...main, message(3)]);
    assert.deepEqual(await adapter.listSessionSummaries(PROJECT), []);
    await adapter.append(MAIN, [message(4)]);
    await checkSummary(adapter, await adapter.load(MAIN));
  }));

test('a session of another client, exported for Claude Code, is one session either way', () =>
  withStore(async (adapter, store, folder) => {
    const { reports: [{ sessionId }] } = await store.import(SAMPLE);
    const { data } = await store.session(sessionId).export({ dialect: 'claude' });
    const rows = parse(data.toString());
    const key = { projectKey: '-srv-app-billing', sessionId: rows.find((r) => r.uuid).sessionId };
    assert.equal(await adapter.load(key), null, 'pi\'s session is not Claude Code\'s');

    await withStore(async (mirrored, other) => {
      await mirrored.append(key, rows);
      const file = path.join(folder, 'projects', key.projectKey, `${key.sessionId}.jsonl`);
      mkdirSync(path.dirname(file), { recursive: true });
      // The client writes a line as JSON.stringify does.
      writeFileSync(file, lines(rows));
      assert.equal((await other.import(path.join(folder, 'projects'))).appended, 0);
      const view = await other.session(key.sessionId).export({ dialect: 'claude' });
      assert.equal(view.data.toString(), readFileSync(file, 'utf8'));

      await withStore(async (adopting, imported) => {
        await imported.import(path.join(folder, 'projects'));
        assert.deepEqual(await adopting.load(key), await mirrored.load(key));
        const ids = (each) => entriesOf(each.session(key.sessionId))
          .map((entry) => entry.payload.uuid && entry.id);
        assert.deepEqual(ids(imported), ids(other));
      });
    });
  }));

test('lines of a file that are no rows are left out', () =>
  withStore(async (adapter, store, folder) => {
    const client = writeFiles(folder, [message(1)]);
    const file = path.join(client, 'projects', PROJECT, `${SESSION}.jsonl`);
    writeFileSync(file, `${lines([message(1)])}{"torn":\n\n[7]\n${lines([message(2)])}`);
    await store.import(client);
    assert.deepEqual(await adapter.load(MAIN), messages(2));
    assert.equal(adapter.stats.unreadable, 2);
  }));

test('what an agent appended through the store is loaded as rows of Claude Code', () =>
  withStore(async (adapter, store) => {
    await adapter.append(MAIN, messages(2));
    await store.session(SESSION).append({ payload: { role: 'user', content: 'by agentwal' } });
    const rows = await adapter.load(MAIN);
    assert.deepEqual(rows.slice(0, 2), messages(2));
    assert.equal(rows.length, 3);
    assert.equal(rows[2].type, 'user');
    assert.equal(rows[2].parentUuid, uuid(2));
    assert.match(JSON.stringify(rows[2].message), /by agentwal/);
  }));

test('a session is resumed where its head was moved to, and continues there', () =>
  withStore(async (adapter, store) => {
    const { getSessionMessages } = await import('@anthropic-ai/claude-agent-sdk');
    const read = async () =>
      (await getSessionMessages(SESSION, { dir: '/srv/app', sessionStore: adapter }))
        .map((each) => each.uuid);
    await adapter.append(MAIN, messages(4));
    await store.session(SESSION).moveHead(uuid(2));
    assert.deepEqual(await read(), [uuid(1), uuid(2)]);

    // The client continues under the last row that it was given.
    const rows = await adapter.load(MAIN);
    assert.deepEqual(rows.slice(0, 4), messages(4));
    assert.equal(rows.length, 5);
    await adapter.append(MAIN, [message(6, { parentUuid: rows[4].uuid }), message(7)]);
    assert.deepEqual(await adapter.load(MAIN),
      [...rows, message(6, { parentUuid: rows[4].uuid }), message(7)]);
    assert.deepEqual(await read(), [1, 2, 6, 7].map(uuid));
    assert.deepEqual([...store.session(SESSION)].map((entry) => entry.id),
      [uuid(1), uuid(2), rows[4].uuid, uuid(6), uuid(7)]);
    await checkSummary(adapter, await adapter.load(MAIN));
  }));

test('compaction of a deleted session leaves what its forks name', () =>
  withStore(async (adapter, store) => {
    const rows = [row('mode'), message(1), row('file-history-snapshot', { messageId: uuid(1) }),
      message(2), message(3, { parentUuid: uuid(2) }), message(4, { parentUuid: uuid(2) })];
    await adapter.append(MAIN, rows);
    const { sessionId } = await forkSession(adapter, MAIN, { title: 'Try' });
    const key = { projectKey: PROJECT, sessionId };
    const before = await adapter.load(key);
    assert.equal(before.length, rows.length + 1);
    await adapter.delete(MAIN);
    await store.compact({ erase: true });
    assert.deepEqual(await adapter.load(key), before);
  }));
