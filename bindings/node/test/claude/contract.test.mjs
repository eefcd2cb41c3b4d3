// The contracts of the SDK's SessionStore, one test each.
import assert from 'node:assert/strict';
import test from 'node:test';

import { AGENT, MAIN, message, messages, PROJECT, row, SESSION, uuid, withStore }
  from '../lib/claude.mjs';

const OTHER = { projectKey: '-srv-other', sessionId: SESSION };

test('load returns what was appended, deep-equal and in order', () =>
  withStore(async (adapter) => {
    const entries = [
      ...messages(3),
      row('file-history-snapshot', { messageId: uuid(1), snapshot: { a: [1, null, { b: 'ü' }] } }),
      row('opaque', { z: 1, a: { '10': 'x', '9': 'y' }, text: '\u2028 \0 "\\', number: 1e21 }),
    ];
    await adapter.append(MAIN, entries);
    assert.deepEqual(await adapter.load(MAIN), entries);
    // More than the contract asks for: the same bytes.
    assert.equal(JSON.stringify(await adapter.load(MAIN)), JSON.stringify(entries));
  }));

test('load of an unknown key is null', () => withStore(async (adapter) => {
  assert.equal(await adapter.load(MAIN), null);
  await adapter.append(MAIN, messages(1));
  assert.equal(await adapter.load(AGENT), null);
  assert.equal(await adapter.load({ ...MAIN, sessionId: 'unknown' }), null);
}));

test('several appends keep the order of the calls', () => withStore(async (adapter) => {
  for (let i = 0; i < 20; i++) {
    await adapter.append(MAIN, [row('n', { i: 2 * i }), row('n', { i: 2 * i + 1 })]);
  }
  assert.deepEqual((await adapter.load(MAIN)).map((entry) => entry.i),
    Array.from({ length: 40 }, (_, i) => i));
}));

test('an append without entries touches nothing', () => withStore(async (adapter, store) => {
  const before = store.info().lastSequence;
  await adapter.append(MAIN, []);
  assert.equal(store.info().lastSequence, before);
  assert.equal(await adapter.load(MAIN), null);
  assert.deepEqual(await adapter.listSessions(PROJECT), []);
}));

test('a subpath is a transcript that the main one does not see', () =>
  withStore(async (adapter) => {
    await adapter.append(MAIN, messages(2));
    await adapter.append(AGENT, [message(1, { isSidechain: true })]);
    assert.equal((await adapter.load(MAIN)).length, 2);
    assert.deepEqual(await adapter.load(AGENT), [message(1, { isSidechain: true })]);
  }));

test('the same session id in two projects is two sessions', () => withStore(async (adapter) => {
  await adapter.append(MAIN, messages(1));
  await adapter.append(OTHER, messages(3));
  assert.equal((await adapter.load(MAIN)).length, 1);
  assert.equal((await adapter.load(OTHER)).length, 3);
  assert.deepEqual((await adapter.listSessions(OTHER.projectKey)).map((s) => s.sessionId),
    [SESSION]);
}));

test('listSessions returns ids and times of a project', () => withStore(async (adapter) => {
  const begin = Date.now();
  await adapter.append(MAIN, messages(1));
  await adapter.append({ ...MAIN, sessionId: 'second' }, messages(1));
  await adapter.append({ ...OTHER, sessionId: 'third' }, messages(1));

  const listed = await adapter.listSessions(PROJECT);
  assert.deepEqual(listed.map((s) => s.sessionId).sort(), [SESSION, 'second'].sort());
  for (const { mtime } of listed) {
    assert.ok(Number.isInteger(mtime) && mtime >= begin && mtime <= Date.now() + 1, `${mtime}`);
  }
  assert.deepEqual(await adapter.listSessions('-unknown'), []);
}));

test('listSessions leaves subpaths out, also without a main transcript', () =>
  withStore(async (adapter) => {
    await adapter.append(AGENT, messages(1));
    assert.deepEqual(await adapter.listSessions(PROJECT), []);
    await adapter.append(MAIN, messages(1));
    assert.equal((await adapter.listSessions(PROJECT)).length, 1);
  }));

test('a deleted session is unknown, and can begin again', () => withStore(async (adapter) => {
  await adapter.delete(MAIN);
  await adapter.append(MAIN, messages(2));
  await adapter.delete(MAIN);
  assert.equal(await adapter.load(MAIN), null);
  assert.deepEqual(await adapter.listSessions(PROJECT), []);
  await adapter.delete(MAIN);
  await adapter.append(MAIN, messages(1));
  assert.deepEqual(await adapter.load(MAIN), messages(1));
}));

test('deleting a session deletes its subpaths and nothing else', () =>
  withStore(async (adapter) => {
    const keys = [MAIN, AGENT, { ...MAIN, subpath: 'subagents/agent-78' },
      { ...MAIN, subpath: 'x/y' }];
    const others = [OTHER, { ...OTHER, subpath: AGENT.subpath }, { ...MAIN, sessionId: 'second' },
      { ...MAIN, sessionId: `${SESSION}0` },
      { ...MAIN, sessionId: `${SESSION}0`, subpath: AGENT.subpath }];
    for (const key of [...keys, ...others]) {
      await adapter.append(key, messages(1));
    }
    await adapter.delete(MAIN);
    for (const key of keys) {
      assert.equal(await adapter.load(key), null);
    }
    for (const key of others) {
      assert.equal((await adapter.load(key)).length, 1);
    }
    assert.deepEqual(await adapter.listSubkeys(MAIN), []);
  }));

test('deleting a subpath deletes that only', () => withStore(async (adapter) => {
  const second = { ...MAIN, subpath: 'subagents/agent-78' };
  for (const key of [MAIN, AGENT, second]) {
    await adapter.append(key, messages(1));
  }
  await adapter.delete(AGENT);
  assert.equal(await adapter.load(AGENT), null);
  assert.deepEqual(await adapter.listSubkeys(MAIN), [second.subpath]);
  assert.equal((await adapter.load(MAIN)).length, 1);
}));

test('listSubkeys returns the subpaths of one session', () => withStore(async (adapter) => {
  const subpaths = ['subagents/agent-1', 'subagents/agent-2', 'subagents/flow/agent-1', 'other'];
  await adapter.append(MAIN, messages(1));
  for (const subpath of subpaths) {
    await adapter.append({ ...MAIN, subpath }, [message(1, { subpath })]);
  }
  await adapter.append({ ...OTHER, subpath: 'subagents/agent-9' }, messages(1));
  assert.deepEqual((await adapter.listSubkeys(MAIN)).sort(), subpaths.sort());
  for (const subpath of subpaths) {
    assert.deepEqual(await adapter.load({ ...MAIN, subpath }), [message(1, { subpath })]);
  }
}));

test('listSubkeys works without a main transcript, and of an unknown session', () =>
  withStore(async (adapter) => {
    assert.deepEqual(await adapter.listSubkeys(MAIN), []);
    await adapter.append(AGENT, messages(1));
    assert.deepEqual(await adapter.listSubkeys(MAIN), [AGENT.subpath]);
  }));

test('summaries are folded, by project, and gone after delete', async () => {
  const { foldSessionSummary } = await import('@anthropic-ai/claude-agent-sdk');
  await withStore(async (adapter) => {
    const batches = [messages(2), [row('custom-title', { customTitle: 'First' })],
      [row('tag', { tag: 'x' })], [message(3), row('custom-title', { customTitle: 'Last' })]];
    for (const batch of batches) {
      await adapter.append(MAIN, batch);
    }
    await adapter.append(OTHER, messages(1));
    await adapter.append(AGENT, [row('custom-title', { customTitle: 'of the subpath' })]);

    const listed = await adapter.listSessionSummaries(PROJECT);
    const [{ mtime }] = await adapter.listSessions(PROJECT);
    const expected = foldSessionSummary(undefined, MAIN, batches.flat(), { mtime });
    assert.deepEqual(listed, [expected]);
    assert.equal(listed[0].data.customTitle, 'Last');

    await adapter.delete(MAIN);
    assert.deepEqual(await adapter.listSessionSummaries(PROJECT), []);
    assert.equal((await adapter.listSessionSummaries(OTHER.projectKey)).length, 1);
  });
});
