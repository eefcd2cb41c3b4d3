// The SDK's functions on an adapter, with the SDK's store in memory as oracle.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import test, { after } from 'node:test';

import { AGENT, message, messages, row, SESSION, uuid, withStore } from '../lib/claude.mjs';

const folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'agentwal-claude-sdk-')));
const dir = path.join(folder, 'work');
const projectKey = dir.replace(/[^A-Za-z0-9]/g, '-');
const key = { projectKey, sessionId: SESSION };
// The SDK reads it when it is loaded.
process.env.CLAUDE_CONFIG_DIR = path.join(folder, 'config');
const sdk = await import('@anthropic-ai/claude-agent-sdk');

after(() => rmSync(folder, { recursive: true }));

const mainRows = [
  row('queue-operation', { operation: 'enqueue', timestamp: message(1).timestamp }),
  ...messages(4, { cwd: dir }),
  row('custom-title', { customTitle: 'Cents', sessionId: SESSION }),
  row('file-history-snapshot', { messageId: uuid(3), snapshot: { trackedFileBackups: {} } }),
  message(5, { cwd: dir }),
];
const subRows = messages(2, { isSidechain: true, agentId: '77', cwd: dir });
const lines = (rows) => rows.map((entry) => `${JSON.stringify(entry)}\n`).join('');

function writeClaudeFiles() {
  const project = path.join(process.env.CLAUDE_CONFIG_DIR, 'projects', projectKey);
  mkdirSync(dir, { recursive: true });
  mkdirSync(path.join(project, SESSION, 'subagents'), { recursive: true });
  writeFileSync(path.join(project, `${SESSION}.jsonl`), lines(mainRows));
  const agent = path.join(project, SESSION, AGENT.subpath);
  writeFileSync(`${agent}.jsonl`, lines(subRows));
  writeFileSync(`${agent}.meta.json`, JSON.stringify({ agentType: 'explorer' }));
}

writeClaudeFiles();

/** Runs the same calls on an adapter and on the SDK's store. */
function withBoth(run) {
  return withStore(async (adapter, store) => {
    const memory = new sdk.InMemorySessionStore();
    for (const sessionStore of [adapter, memory]) {
      await sdk.importSessionToStore(SESSION, sessionStore, { dir, batchSize: 3 });
    }
    await run(adapter, memory, store);
  });
}

const withoutTime = ({ lastModified, ...info }) => info;

/** Rows with the ids that the SDK makes at random numbered in their order. */
function numberIds(rows) {
  const numbers = new Map();
  return JSON.parse(JSON.stringify(rows).replace(
    /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, (id) => {
      numbers.set(id, numbers.get(id) ?? numbers.size);
      return `id ${numbers.get(id)}`;
    }).replace(/"timestamp":"[^"]*"/g, '"timestamp":""'));
}

test('importSessionToStore imports a transcript and those of its subagents', () =>
  withBoth(async (adapter, memory) => {
    const sub = { ...key, subpath: AGENT.subpath };
    assert.deepEqual(await adapter.load(key), mainRows);
    assert.deepEqual(await adapter.load(sub), await memory.load(sub));
    assert.ok((await adapter.load(sub)).some((entry) => entry.agentType === 'explorer'));
    assert.deepEqual(await adapter.listSubkeys(key), [AGENT.subpath]);
  }));

test('importSessionToStore again adds rows without a uuid only', () =>
  withBoth(async (adapter) => {
    await sdk.importSessionToStore(SESSION, adapter, { dir });
    const rows = await adapter.load(key);
    const plain = mainRows.filter((entry) => entry.uuid === undefined);
    assert.deepEqual(rows, [...mainRows, ...plain]);
    assert.equal(adapter.stats.duplicates, mainRows.length - plain.length + subRows.length);
    assert.equal(adapter.stats.ignored, 0);
  }));

test('listSessions and getSessionInfo are those of the SDK\'s store', () =>
  withBoth(async (adapter, memory) => {
    const list = async (sessionStore) =>
      (await sdk.listSessions({ dir, sessionStore })).map(withoutTime);
    assert.equal((await list(adapter)).length, 1);
    assert.deepEqual(await list(adapter), await list(memory));
    const [found] = await sdk.listSessions({ dir, sessionStore: adapter });
    assert.ok(Math.abs(found.lastModified - Date.now()) < 60_000);

    const info = async (sessionStore) => sdk.getSessionInfo(SESSION, { dir, sessionStore });
    assert.deepEqual(withoutTime(await info(adapter)), withoutTime(await info(memory)));
    assert.equal((await info(adapter)).customTitle, 'Cents');
  }));

test('getSessionMessages and those of subagents are those of the SDK\'s store', () =>
  withBoth(async (adapter, memory) => {
    const read = async (sessionStore) => [
      await sdk.getSessionMessages(SESSION, { dir, sessionStore }),
      await sdk.listSubagents(SESSION, { dir, sessionStore }),
      await sdk.getSubagentMessages(SESSION, '77', { dir, sessionStore }),
    ];
    const [found, agents, agentMessages] = await read(adapter);
    assert.equal(found.length, 5);
    assert.deepEqual(agents, ['77']);
    assert.equal(agentMessages.length, 2);
    assert.deepEqual([found, agents, agentMessages], await read(memory));
  }));

test('renameSession and tagSession change what is listed', () =>
  withBoth(async (adapter, memory, store) => {
    for (const sessionStore of [adapter, memory]) {
      await sdk.renameSession(SESSION, 'Dimes', { dir, sessionStore });
      await sdk.tagSession(SESSION, 'money', { dir, sessionStore });
    }
    const [listed] = await sdk.listSessions({ dir, sessionStore: adapter });
    assert.equal(listed.customTitle, 'Dimes');
    assert.equal(listed.tag, 'money');
    assert.deepEqual(withoutTime(listed),
      withoutTime((await sdk.listSessions({ dir, sessionStore: memory }))[0]));
    assert.equal(store.session(SESSION).info().title, 'Dimes');

    await sdk.tagSession(SESSION, null, { dir, sessionStore: adapter });
    assert.equal((await sdk.getSessionInfo(SESSION, { dir, sessionStore: adapter })).tag,
      undefined);
    assert.equal((await sdk.listSessions({ dir, sessionStore: adapter }))[0].tag, undefined);
  }));

test('forkSession copies the session as in the SDK\'s store', () =>
  withBoth(async (adapter, memory) => {
    const forked = [];
    for (const sessionStore of [adapter, memory]) {
      const { sessionId } = await sdk.forkSession(SESSION,
        { dir, sessionStore, upToMessageId: uuid(3), title: 'Try' });
      forked.push(numberIds(await sessionStore.load({ projectKey, sessionId })));
      assert.equal((await sdk.getSessionMessages(sessionId, { dir, sessionStore })).length, 3);
    }
    assert.deepEqual(forked[0], forked[1]);
    const listed = await sdk.listSessions({ dir, sessionStore: adapter });
    assert.deepEqual(listed.map((info) => info.customTitle).sort(), ['Cents', 'Try']);
  }));

test('deleteSession deletes it with its subagents', () => withBoth(async (adapter) => {
  await sdk.deleteSession(SESSION, { dir, sessionStore: adapter });
  assert.deepEqual(await sdk.listSessions({ dir, sessionStore: adapter }), []);
  assert.deepEqual(await sdk.listSubagents(SESSION, { dir, sessionStore: adapter }), []);
  assert.deepEqual(await sdk.getSessionMessages(SESSION, { dir, sessionStore: adapter }), []);
}));

test('the SDK reads a fork that shares its rows', () => withBoth(async (adapter) => {
  const { sessionId } = await adapter.fork(key, { upToMessageId: uuid(4) });
  const options = { dir, sessionStore: adapter };
  assert.deepEqual(
    (await sdk.getSessionMessages(sessionId, options)).map((found) => found.uuid),
    [1, 2, 3, 4].map(uuid));
  await sdk.renameSession(sessionId, 'Fork', options);
  const listed = await sdk.listSessions(options);
  assert.deepEqual(listed.map((info) => info.customTitle).sort(), ['Cents', 'Fork']);
  const again = await sdk.forkSession(sessionId, options);
  assert.equal((await sdk.getSessionMessages(again.sessionId, options)).length, 4);
}));
