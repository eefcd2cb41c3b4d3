// Forks that share their rows.
import assert from 'node:assert/strict';
import test from 'node:test';

import { forkSession } from '../../claude-session-store.mjs';
import { AGENT, MAIN, message, messages, PROJECT, row, SESSION, uuid, withStore }
  from '../lib/claude.mjs';

const { foldSessionSummary } = await import('@anthropic-ai/claude-agent-sdk');
const keyOf = ({ sessionId }) => ({ projectKey: PROJECT, sessionId });
const snapshot = (n) => row('file-history-snapshot', { messageId: uuid(n), snapshot: {} });
const title = (customTitle, sessionId) => row('custom-title', { customTitle, sessionId });

/** A session with rows off its branch: titles, snapshots, parallel results. */
const rows = [
  row('mode', { mode: 'normal' }),
  message(1),
  snapshot(1),
  message(2),
  message(3, { parentUuid: uuid(2), toolUseResult: 'a' }),
  message(4, { parentUuid: uuid(2), toolUseResult: 'b' }),
  title('Cents', SESSION),
  message(5, { parentUuid: uuid(4) }),
  message(6, { parentUuid: uuid(5), isSidechain: true }),
  snapshot(5),
];

/** A row as a fork has it. */
const inFork = (entry, sessionId) => entry.sessionId === undefined ? entry : {
  ...entry, sessionId,
  ...entry.uuid && { forkedFrom: { sessionId: entry.sessionId, messageUuid: entry.uuid } },
};

async function checkSummaries(adapter) {
  for (const { sessionId, mtime, data } of await adapter.listSessionSummaries(PROJECT)) {
    const key = { projectKey: PROJECT, sessionId };
    const fold = foldSessionSummary(undefined, key, await adapter.load(key), { mtime });
    assert.deepEqual({ sessionId, mtime, data }, fold);
  }
}

test('a fork has all rows in their order, and shares those of the branch', () =>
  withStore(async (adapter, store) => {
    await adapter.append(MAIN, rows);
    await adapter.append(AGENT, messages(1));
    const fork = await forkSession(adapter, MAIN);
    const id = fork.sessionId;
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4/);
    const loaded = await adapter.load(keyOf(fork));
    // What came after the last row of the branch was copied.
    assert.deepEqual(loaded, [
      ...rows.slice(0, 8).map((entry) => inFork(entry, id)),
      { ...rows[8], sessionId: id }, rows[9], title('Cents (fork)', id),
    ]);
    const info = store.session(id).info();
    assert.ok(info.isFork);
    assert.equal(info.inherited, 4);
    assert.equal(info.head, uuid(5));
    assert.equal(info.metadata.claude, undefined);
    assert.deepEqual(await adapter.listSubkeys(keyOf(fork)), []);
    assert.equal((await adapter.listSessionSummaries(PROJECT)).length, 2);
    await checkSummaries(adapter);
  }));

test('a fork at a row has what was before it', () => withStore(async (adapter) => {
  await adapter.append(MAIN, rows);
  for (const [upToMessageId, count] of [[uuid(1), 2], [uuid(2), 4], [uuid(4), 6], [uuid(5), 8]]) {
    const fork = await forkSession(adapter, MAIN, { upToMessageId, title: 'Try' });
    assert.deepEqual(await adapter.load(keyOf(fork)), [
      ...rows.slice(0, count).map((entry) => inFork(entry, fork.sessionId)),
      title('Try', fork.sessionId)], upToMessageId);
    const { title: shown } = (await adapter.session(keyOf(fork))).info();
    assert.equal(shown, 'Try', 'lists of sessions name the fork');
  }
  assert.equal((await adapter.listSessionSummaries(PROJECT)).length, 5);
  await checkSummaries(adapter);
}));

test('a fork and its session continue independently', () => withStore(async (adapter) => {
  await adapter.append(MAIN, rows);
  const fork = await forkSession(adapter, MAIN, { title: 'Try' });
  const before = await adapter.load(keyOf(fork));
  await adapter.append(MAIN, [message(7, { parentUuid: uuid(5), own: 'session' })]);
  const next = message(7, { parentUuid: uuid(5), own: 'fork', sessionId: fork.sessionId });
  await adapter.append(keyOf(fork), [rows[1], next]);
  assert.equal(adapter.stats.duplicates + adapter.stats.ignored, 1);
  assert.deepEqual(await adapter.load(keyOf(fork)), [...before, next]);
  assert.equal((await adapter.load(MAIN)).at(-1).own, 'session');
  await checkSummaries(adapter);
}));

test('a fork of a fork has the rows of both', () => withStore(async (adapter) => {
  await adapter.append(MAIN, rows);
  const first = await forkSession(adapter, MAIN, { title: 'One' });
  const next = message(7, { parentUuid: uuid(5), sessionId: first.sessionId });
  await adapter.append(keyOf(first), [next]);
  const second = await forkSession(adapter, keyOf(first), { title: 'Two' });
  const loaded = await adapter.load(keyOf(second));
  const id = second.sessionId;
  const shared = (await adapter.load(keyOf(first)))
    .map((entry) => entry.sessionId === undefined ? entry : { ...entry, sessionId: id });
  assert.deepEqual(
    loaded.map(({ forkedFrom, ...entry }) => entry),
    [...shared.map(({ forkedFrom, ...entry }) => entry), title('Two', id)]);
  assert.deepEqual(loaded.find((entry) => entry.uuid === uuid(7)).forkedFrom,
    { sessionId: first.sessionId, messageUuid: uuid(7) });
  // One that cuts off what the first fork added.
  const third = await forkSession(adapter, keyOf(second), { upToMessageId: uuid(2), title: 'X' });
  assert.deepEqual((await adapter.load(keyOf(third))).map((entry) => entry.type),
    ['mode', 'user', 'file-history-snapshot', 'assistant', 'custom-title']);
  await checkSummaries(adapter);
}));

test('a fork takes the same space, whatever the length of the session', () =>
  withStore(async (adapter, store) => {
    const sizes = [];
    for (const count of [10, 1000]) {
      const key = { projectKey: PROJECT, sessionId: `long ${count}` };
      await adapter.append(key, messages(count));
      const before = store.info().logBytes;
      await forkSession(adapter, key, { title: 'Try' });
      sizes.push(store.info().logBytes - before);
    }
    assert.ok(sizes[1] < sizes[0] + 512, `${sizes}`);
  }));

test('a fork outlives its session', () =>
  withStore(async (adapter) => {
    await adapter.append(MAIN, rows);
    const fork = await forkSession(adapter, MAIN, { title: 'Try' });
    const before = await adapter.load(keyOf(fork));
    await adapter.delete(MAIN);
    assert.deepEqual(await adapter.load(keyOf(fork)), before);
    assert.equal((await adapter.listSessions(PROJECT)).length, 1);
    await checkSummaries(adapter);
    await adapter.append(keyOf(fork), [message(9)]);
    assert.deepEqual(await adapter.load(keyOf(fork)), [...before, message(9)]);
  }));

test('a fork that was not completed is unknown', () => withStore(async (adapter, store) => {
  await adapter.append(MAIN, rows);
  const session = store.session(SESSION);
  // As a crash leaves it.
  const torn = await session.fork({ metadata: { claude: { fork: 'incomplete' } } });
  assert.equal(await adapter.load(keyOf({ sessionId: torn.id })), null);
  assert.deepEqual((await adapter.listSessions(PROJECT)).map((each) => each.sessionId), [SESSION]);
}));

test('a fork that an agent made is a session', () => withStore(async (adapter, store) => {
  await adapter.append(MAIN, rows);
  const fork = await store.session(SESSION).fork({ at: uuid(4) });
  const key = keyOf({ sessionId: fork.id });
  assert.deepEqual((await adapter.load(key)).map((entry) => entry.uuid), [1, 2, 4].map(uuid));
  assert.equal((await adapter.listSessions(PROJECT)).length, 2);
  await adapter.append(key, [message(9)]);
  assert.equal((await adapter.load(key)).length, 4);
  await checkSummaries(adapter);
}));

test('a fork of another program\'s session is none of Claude Code', () =>
  withStore(async (adapter, store) => {
    const other = await store.create({ source: 'pi 0 x.jsonl', project: PROJECT, cwd: '/srv/app' });
    await other.append({ payload: { role: 'user', content: 'x' } });
    await other.fork();
    const native = await store.create({ project: PROJECT, cwd: '/srv/app' });
    await native.append({ payload: { role: 'user', content: 'x' } });
    await native.fork();
    assert.deepEqual(await adapter.listSessions(PROJECT), []);
  }));

test('what cannot be forked is reported, and nothing is made', () =>
  withStore(async (adapter, store) => {
    await assert.rejects(forkSession(adapter, MAIN), { code: 'WAL_ENOTFOUND' });
    await adapter.append(MAIN, [row('mode')]);
    await assert.rejects(forkSession(adapter, MAIN), { code: 'WAL_ENOTFOUND' });
    await adapter.append(MAIN, messages(2));
    for (const upToMessageId of [uuid(3), '', 'x'.repeat(300)]) {
      await assert.rejects(forkSession(adapter, MAIN, { upToMessageId }),
        { code: 'WAL_ENOTFOUND' });
    }
    await assert.rejects(forkSession(adapter, MAIN, { sessionId: SESSION }),
      { code: 'WAL_EEXISTS' });
    assert.equal(store.list().length, 1);
    await assert.rejects(forkSession(adapter, { ...MAIN, subpath: 'x' }), TypeError);
  }));

test('a fork has a session id that can be loaded, or is refused', () =>
  withStore(async (adapter, store) => {
    await adapter.append(MAIN, messages(2));
    for (const id of ['~x', 'a\0b', 'a\nb', '\ud800', 'x'.repeat(161), 'x'.repeat(300)]) {
      await assert.rejects(forkSession(adapter, MAIN, { sessionId: id }), { code: 'WAL_EINVAL' });
    }
    await assert.rejects(forkSession(adapter, MAIN, { sessionId: '' }), TypeError);
    assert.equal(store.list().length, 1);
    for (const id of ['..', 'a/b', '%', 'e\u0301', 'x'.repeat(160)]) {
      const fork = await forkSession(adapter, MAIN, { sessionId: id });
      assert.equal((await adapter.load(keyOf(fork))).length, 2);
    }
    assert.equal((await adapter.listSessions(PROJECT)).length, 6);
  }));

test('a fork of a session with a moved head begins there', () =>
  withStore(async (adapter, store) => {
    await adapter.append(MAIN, messages(4));
    await store.session(SESSION).moveHead(uuid(2));
    const fork = await forkSession(adapter, MAIN, { title: 'Try' });
    const loaded = await adapter.load(keyOf(fork));
    assert.deepEqual(loaded.filter((entry) => entry.uuid).map((entry) => entry.uuid),
      [1, 2].map(uuid));
    const { data } = (await adapter.listSessionSummaries(PROJECT))
      .find((each) => each.sessionId === fork.sessionId);
    assert.deepEqual(data, foldSessionSummary(undefined, keyOf(fork), loaded).data);
  }));

test('a fork belongs to its project key, and to no other one', () =>
  withStore(async (adapter) => {
    for (const cwd of ['/work/x', undefined]) {
      const key = { projectKey: 'tenant', sessionId: `s${cwd}` };
      await adapter.append(key, [message(1, { cwd })]);
      const fork = await forkSession(adapter, key);
      for (const projectKey of ['-work-x', '']) {
        assert.deepEqual(await adapter.listSessions(projectKey), []);
        assert.equal(await adapter.load({ ...fork, projectKey }), null);
        await adapter.delete({ ...fork, projectKey });
      }
      assert.equal((await adapter.load({ ...key, ...fork })).length, 1);
    }
  }, { foldSessionSummary }));
