// The contract of a Session of the OpenAI Agents SDK, without that package.
import assert from 'node:assert/strict';
import test from 'node:test';

import { Store, WalError } from '../index.mjs';
import {
  AgentwalSession, HistoryConflictError,
} from '../lib/openai-agents/index.mjs';
import { memoryStore, openStore, rejection, storePath } from './lib/store.mjs';

const message = (content) => ({ role: 'user', content });
const call = (callId, name = 'f') =>
  ({ type: 'function_call', callId, name, arguments: '{}', status: 'completed' });

async function openSession(t, options = {}) {
  const store = await openStore(t);

  return { store, session: new AgentwalSession(store,
    { sessionId: 'conversation', ...options }) };
}

const append = (operationId, ...items) =>
  ({ operationId, transaction: { type: 'append_items', items } });

const replace = (operationId, expectedSuffix, replacement) => ({ operationId,
  transaction: { type: 'replace_suffix', expectedSuffix, replacement } });

const contents = async (session) =>
  (await session.getItems()).map(({ content }) => content);

test('a session that nobody wrote is empty and does not exist', async (t) => {
  const { store, session } = await openSession(t);

  assert.equal(await session.getSessionId(), 'conversation');
  assert.deepEqual(await session.getItems(), []);
  assert.equal(await session.popItem(), undefined);
  await session.clearSession();
  await session.addItems([]);
  assert.equal(store.info().sessions, 0);
});

test('items are returned in order, and the last ones by a limit', async (t) => {
  const { session } = await openSession(t);

  await session.addItems([message('a'), message('b')]);
  await session.addItems([message('c')]);
  assert.deepEqual(await contents(session), ['a', 'b', 'c']);
  assert.deepEqual(await session.getItems(2), [message('b'), message('c')]);
  assert.equal((await session.getItems(99)).length, 3);
  assert.deepEqual(await session.getItems(0), []);
  for (const [limit, count] of [[1.5, 2], [0.5, 1], [NaN, 3], [-1, 0], [-0.5, 0]]) {
    assert.equal((await session.getItems(limit)).length, count, String(limit));
  }
  assert.deepEqual(await session.getItems(-1), []);
});

test('what JSON does not have is returned as it was added', async (t) => {
  const { session } = await openSession(t);
  const item = {
    role: 'user', content: [{ type: 'input_image', image: new Uint8Array([0, 255]) }],
    providerData: { none: undefined, nan: NaN, low: -Infinity, zero: -0,
      half: '\ud800', list: [undefined, 1], ['__proto__']: 1 },
  };

  await session.addItems([item]);
  assert.deepEqual(await session.getItems(), [item]);
  const [read] = await session.getItems();
  assert.ok(Object.hasOwn(read.providerData, 'none'));
  assert.ok(Object.is(read.providerData.zero, -0));
  assert.equal(Object.getPrototypeOf(read.providerData), Object.prototype);
  await session.applyHistoryTransaction(replace('o', [item], [message('x')]));
  assert.deepEqual(await contents(session), ['x']);
});

test('what cannot be stored is refused, and nothing is written', async (t) => {
  const { store, session } = await openSession(t);
  const cycle = { role: 'user', content: [] };
  cycle.content.push(cycle);
  let deep = {};
  for (let i = 0; i < 5000; i++) {
    deep = { deep };
  }
  const bad = [cycle, { a: deep }, { a: 1n }, { a: new Date() }, { a: new Map() },
    { a: new ArrayBuffer(1) }, { a() {} }, { a: Symbol('a') }, { a: [, 1] }, null, 'text', []];

  for (const item of bad) {
    await assert.rejects(session.addItems([message('x'), item]), TypeError);
    await assert.rejects(session.applyHistoryTransaction(append('o', item)), TypeError);
    await assert.rejects(session.replaceHistoryWithCompaction([item]), TypeError);
  }
  await assert.rejects(session.addItems('x'), TypeError);
  assert.equal(store.info().sessions, 0);
});

test('an item that is changed later does not change in the history', async (t) => {
  const { session } = await openSession(t);
  const item = message('a');
  const added = session.addItems([item]);

  item.content = 'b';
  await added;
  (await session.getItems())[0].content = 'c';
  assert.deepEqual(await contents(session), ['a']);
});

test('a pop takes the last item, and can be undone', async (t) => {
  const { store, session } = await openSession(t);

  await session.addItems([message('a'), message('b')]);
  const stored = store.session('openai/conversation');
  const head = stored.head();
  assert.deepEqual(await session.popItem(), message('b'));
  assert.deepEqual(await contents(session), ['a']);
  await stored.moveHead(head);
  assert.deepEqual(await contents(session), ['a', 'b']);
  assert.deepEqual(await session.popItem(), message('b'));
  assert.deepEqual(await session.popItem(), message('a'));
  assert.equal(await session.popItem(), undefined);
  await session.addItems([message('c')]);
  assert.deepEqual(await contents(session), ['c']);
});

test('a clear empties the history, and can be undone', async (t) => {
  const { store, session } = await openSession(t);

  await session.addItems([message('a')]);
  const stored = store.session('openai/conversation');
  const head = stored.head();
  await session.clearSession();
  assert.deepEqual(await session.getItems(), []);
  assert.equal(await session.popItem(), undefined);
  await session.addItems([message('b')]);
  assert.deepEqual(await contents(session), ['b']);
  await stored.moveHead(head);
  assert.deepEqual(await contents(session), ['a']);
});

test('a redacted item is left out, and a pop takes the one before', async (t) => {
  const { store, session } = await openSession(t);

  await session.addItems([message('a'), message('b'), message('secret')]);
  const stored = store.session('openai/conversation');
  await stored.redact(stored.head());
  assert.deepEqual(await contents(session), ['a', 'b']);
  assert.deepEqual(await session.getItems(1), [message('b')]);
  assert.deepEqual(await session.popItem(), message('b'));
  assert.deepEqual(await contents(session), ['a']);
});

test('a transaction is applied once', async (t) => {
  const { store, session } = await openSession(t);

  await session.applyHistoryTransaction(append('1', message('a'), message('b')));
  await session.applyHistoryTransaction(append('1', message('a'), message('b')));
  assert.deepEqual(await contents(session), ['a', 'b']);
  await session.applyHistoryTransaction(
    replace('2', [message('b')], [message('c'), message('d')]));
  await session.applyHistoryTransaction(
    replace('2', [message('b')], [message('c'), message('d')]));
  assert.deepEqual(await contents(session), ['a', 'c', 'd']);
  await session.applyHistoryTransaction(
    replace('3', [message('c'), message('d')], []));
  assert.deepEqual(await contents(session), ['a']);
  await session.applyHistoryTransaction(replace('4', [message('a')], []));
  assert.deepEqual(await contents(session), []);
  // Its entries have ids that are made of the operation's.
  const stored = store.session('openai/conversation');
  assert.deepEqual(stored.entry('op//2/1').payload, message('d'));
  assert.equal(stored.entry('op//2').payload.operationId, '2');
  // After all of that, the first one again.
  await session.applyHistoryTransaction(append('1', message('a'), message('b')));
  assert.deepEqual(await contents(session), []);
});

test('members in another order are the same transaction', async (t) => {
  const { session } = await openSession(t);

  await session.applyHistoryTransaction(append('1', { role: 'user', content: 'a' }));
  await session.applyHistoryTransaction(append('1', { content: 'a', role: 'user' }));
  await session.applyHistoryTransaction(
    replace('2', [{ content: 'a', role: 'user' }], [message('b')]));
  assert.deepEqual(await contents(session), ['b']);
});

test('an operation that is used again is refused', async (t) => {
  const { session } = await openSession(t);
  const reused = (error) => error instanceof HistoryConflictError &&
    error.code === 'OPERATION_REUSED';

  await session.applyHistoryTransaction(append('1', message('a')));
  for (const other of [append('1', message('b')), append('1'),
    append('1', message('a'), message('a')), replace('1', [], [message('a')])]) {
    await assert.rejects(session.applyHistoryTransaction(other), reused);
  }
  assert.deepEqual(await contents(session), ['a']);
});

test('a suffix that is not the end is refused', async (t) => {
  const { session } = await openSession(t);
  const mismatch = (error) => error instanceof HistoryConflictError &&
    error.code === 'SUFFIX_MISMATCH';

  await assert.rejects(session.applyHistoryTransaction(
    replace('0', [message('a')], [])), mismatch);
  await session.addItems([message('a'), message('b')]);
  for (const suffix of [[message('a')], [message('b'), message('b')],
    [message('x'), message('a'), message('b')],
    [{ ...message('b'), extra: undefined }]]) {
    await assert.rejects(session.applyHistoryTransaction(
      replace('1', suffix, [message('c')])), mismatch);
  }
  assert.deepEqual(await contents(session), ['a', 'b']);
  // The refused operation is still free.
  await session.applyHistoryTransaction(replace('1', [message('b')], []));
  assert.deepEqual(await contents(session), ['a']);
});

test('of two removals of one item, one is applied', async (t) => {
  const { store, session } = await openSession(t);
  const other = new AgentwalSession(store, { sessionId: 'conversation' });

  await session.addItems([message('a'), message('a'), message('b')]);
  // Both read the history before one of them writes.
  const results = await Promise.allSettled([
    session.applyHistoryTransaction(replace('1', [message('b')], [])),
    other.applyHistoryTransaction(replace('2', [message('b')], []))]);
  assert.deepEqual(results.map(({ status }) => status).sort(),
    ['fulfilled', 'rejected']);
  assert.equal(results.find(({ status }) => status === 'rejected').reason.code,
    'SUFFIX_MISMATCH');
  assert.deepEqual(await contents(session), ['a', 'a']);
  const popped = await Promise.all([session.popItem(), other.popItem(),
    session.popItem()]);
  assert.deepEqual(popped.map((item) => item?.content).sort(), ['a', 'a', undefined]);
});

test('a removal that is sent twice keeps what was added in between', async (t) => {
  const { store, session } = await openSession(t, { durability: 'written' });
  const [other, third] = [1, 2].map(() =>
    new AgentwalSession(store, { sessionId: 'conversation', durability: 'written' }));

  for (let round = 0; round < 20; round++) {
    await session.addItems([message('b')]);
    const removal = replace(`${round}`, [message('b')], []);

    // All of them read the history before one of them writes.
    await Promise.all([session.applyHistoryTransaction(removal),
      third.addItems([message('c')]), other.applyHistoryTransaction(removal)]);
    const found = await contents(session);
    assert.equal(found.filter((text) => text === 'c').length, round + 1, found.join());
  }
});

test('a clear forgets operations, also of an empty history', async (t) => {
  const { session } = await openSession(t);

  await session.applyHistoryTransaction(append('1'));
  await session.clearSession();
  await session.applyHistoryTransaction(append('1', message('a')));
  assert.deepEqual(await contents(session), ['a']);
  await session.clearSession();
  await session.applyHistoryTransaction(append('1', message('b')));
  assert.deepEqual(await contents(session), ['b']);
});

test('arguments of a transaction are checked', async (t) => {
  const { session } = await openSession(t);
  const bad = [
    undefined, {}, append(''), append('  '), append(1),
    { operationId: 'o' }, { operationId: 'o', transaction: null },
    { operationId: 'o', transaction: { type: 'toString' } },
    { operationId: 'o', transaction: { type: 'append_items' } },
    { operationId: 'o', transaction: { type: 'append_items', items: {} } },
    { operationId: 'o', transaction: { type: 'append_items', items: [], more: 1 } },
    { operationId: 'o', transaction: { type: 'replace_suffix', replacement: [] } },
  ];

  for (const args of bad) {
    await assert.rejects(session.applyHistoryTransaction(args), TypeError);
  }
});

test('operations may have any name', async (t) => {
  const { session } = await openSession(t);
  const names = ['a/b', 'a', '/', '#', '%2F', 'a%2Fb', '\0', '\ud800', '\ud801',
    '__proto__', 'x'.repeat(5000), 'x'.repeat(5001), '🙂'.repeat(200)];

  for (const name of names) {
    await session.applyHistoryTransaction(append(name, message(name.slice(0, 9))));
  }
  for (const name of names) {
    await session.applyHistoryTransaction(append(name, message(name.slice(0, 9))));
  }
  assert.equal((await session.getItems()).length, names.length);
});

test('sessions may have any name', async (t) => {
  const store = await openStore(t);
  const names = ['a/b', 'a', '%', '%25', '\n', '\ud800', '\ud801', '../x',
    'y'.repeat(4096), 'y'.repeat(4095)];
  const sessions = names.map((sessionId) => new AgentwalSession(store, { sessionId }));

  for (const [i, session] of sessions.entries()) {
    await session.addItems([message(String(i))]);
  }
  for (const [i, session] of sessions.entries()) {
    assert.equal(await session.getSessionId(), names[i]);
    assert.deepEqual(await contents(session), [String(i)]);
  }
  for (const sessionId of ['', 1, null, 'y'.repeat(4097)]) {
    assert.throws(() => new AgentwalSession(store, { sessionId }));
  }
  assert.throws(() => new AgentwalSession({}, { sessionId: 'a' }), TypeError);
});

test('a call is replaced where it is first, and its repeats go', async (t) => {
  const { session } = await openSession(t);

  await session.addItems([message('a'), call('1'), message('b'), call('1'), call('2')]);
  await session.applyHistoryMutations({ mutations: [{
    type: 'replace_function_call', callId: '1', replacement: call('1', 'g') }] });
  const after = [message('a'), call('1', 'g'), message('b'), call('2')];
  assert.deepEqual(await session.getItems(), after);
  for (const mutations of [[], [{ type: 'unknown' }], [{
    type: 'replace_function_call', callId: '3', replacement: call('3') }]]) {
    await session.applyHistoryMutations({ mutations });
    assert.deepEqual(await session.getItems(), after);
  }
});

test('a compaction replaces the history, and keeps operations', async (t) => {
  const { session } = await openSession(t);

  await session.applyHistoryTransaction(append('1', message('a')));
  await session.replaceHistoryWithCompaction([message('summary')]);
  assert.deepEqual(await contents(session), ['summary']);
  await session.applyHistoryTransaction(append('1', message('a')));
  assert.deepEqual(await contents(session), ['summary']);
  await session.clearSession();
  await session.addItems([message('b')]);
  await session.replaceHistoryWithCompaction([]);
  assert.deepEqual(await session.getItems(), []);
  await session.replaceHistoryWithCompaction([message('c'), message('d')]);
  assert.deepEqual(await contents(session), ['c', 'd']);
});

test('an item of many megabytes is stored', async (t) => {
  const { session } = await openSession(t);
  const large = 'x'.repeat(4 << 20);

  await session.addItems([message(large), message('b')]);
  assert.equal((await session.getItems())[0].content.length, large.length);
  await session.applyHistoryTransaction(
    replace('1', [message(large), message('b')], [message('c')]));
  assert.deepEqual(await contents(session), ['c']);
});

test('the items are messages of a session for other programs', async (t) => {
  const { store, session } = await openSession(t);

  await session.addItems([message('the question'), call('1')]);
  const [info] = store.list({ source: 'openai-agents' });
  assert.equal(info.firstText, 'the question');
  assert.equal(info.id, 'openai/conversation');
  const other = new AgentwalSession(store, { id: info.id });
  assert.equal((await other.getItems()).length, 2);
});

test('a store that is closed fails, and so does what is in the trash', async (t) => {
  const path = storePath(t);
  const store = await Store.open(path);
  const session = new AgentwalSession(store, { sessionId: 'a' });

  await session.addItems([message('a')]);
  await session.close();
  assert.ok(store.isOpen, 'a store of the caller stays open');
  await store.session('openai/a').trash();
  await assert.rejects(session.getItems(), { code: 'WAL_ETRASHED' });
  await assert.rejects(session.addItems([message('b')]), { code: 'WAL_ETRASHED' });
  await store.undelete('openai/a');
  await store.close();
  await assert.rejects(session.getItems(), { code: 'WAL_ECLOSED' });
  await assert.rejects(session.applyHistoryTransaction(append('1')),
    { code: 'WAL_ECLOSED' });

  const own = new AgentwalSession(path, { sessionId: 'a' });
  assert.deepEqual(await contents(own), ['a']);
  await own.close();
  await assert.rejects(own.getItems(), { code: 'WAL_ECLOSED' });
});

test('a session that is deleted is empty, and is made again', async (t) => {
  const { store, session } = await openSession(t);

  await session.addItems([message('a')]);
  await store.session('openai/conversation').delete();
  assert.deepEqual(await session.getItems(), []);
  assert.equal(await session.popItem(), undefined);
  await session.addItems([message('b')]);
  assert.deepEqual(await contents(session), ['b']);
});

test('an item whose special values are not there is damaged', async (t) => {
  const { store, session } = await openSession(t);
  await session.addItems([message('a')]);
  const stored = store.session('openai/conversation');
  const head = stored.head();
  const wrong = [
    5, [5], [['nan']], [['nan', []]], [['nan', 'content']],
    [['bytes', ['none']]], [['nan', ['none', 'x']]], [['nan', ['content', 'x']]],
    [['bytes', ['list', 1]]], [['bytes', ['list']]], [['bytes', ['list', 0]]],
    [['undefined', ['__proto__', 'toString']]], [['nan', ['constructor', 'prototype']]],
  ];
  for (const special of wrong) {
    const { lastId } = await stored.append({ payload: { content: 'b', list: [null] },
      meta: { openai: { special } } });
    const error = await rejection(session.getItems());
    assert.ok(error instanceof WalError, JSON.stringify(special));
    assert.equal(error.code, 'WAL_ECORRUPT');
    assert.ok(error.message.includes(lastId));
    await stored.moveHead(head);
  }
  assert.equal({}.toString(), '[object Object]');
  assert.deepEqual(await contents(session), ['a']);
});

test('a refusal of items repeats none of their content', async (t) => {
  const session = new AgentwalSession(memoryStore(t));
  const items = [{ role: 'user', content: Symbol('a secret') }];
  const error = await session.addItems(items).catch((thrown) => thrown);
  assert.ok(error instanceof TypeError);
  assert.doesNotMatch(`${error.message} ${error.cause}`, /secret/);
});

test('a transaction with members that a copy would lose is refused', async (t) => {
  const { session } = await openSession(t);
  const hidden = (item, key, member) => Object.defineProperty(item, key, member);
  const cyclic = message('a');
  cyclic.self = cyclic;
  let deep = message('a');
  for (let i = 0; i < 20_000; i++) {
    deep = { deep };
  }
  const items = [
    hidden(message('a'), 'id', { value: 'secret' }),
    hidden(message('a'), 'id', { enumerable: true, get: () => 'secret' }),
    { ...message('a'), [Symbol('secret')]: 1 },
    { ...message('a'), inner: [hidden({}, 'x', { value: 'secret' })] },
    { ...message('a'), list: hidden([1], 'secret', { value: 1 }) },
    cyclic, deep,
  ];

  for (const [i, item] of items.entries()) {
    for (const change of [append(`a${i}`, item), replace(`r${i}`, [], [item])]) {
      const error = await rejection(session.applyHistoryTransaction(change));
      assert.ok(error instanceof TypeError, `${i}: ${error}`);
      assert.doesNotMatch(error.message, /secret/);
    }
  }
  assert.deepEqual(await session.getItems(), []);
});

test('what a getter or a proxy of a transaction throws is not repeated', async (t) => {
  const { session } = await openSession(t);
  const fail = () => {
    throw new Error('secret');
  };
  const { transaction } = append('a', message('a'));
  const changes = [
    { get operationId() { return fail(); }, transaction },
    { operationId: 'a', get transaction() { return fail(); } },
    { operationId: 'a', transaction: { ...transaction, get type() { return fail(); } } },
    { operationId: 'a', transaction: new Proxy(transaction, { get: fail }) },
    { operationId: 'a', transaction: new Proxy(transaction, { ownKeys: fail }) },
    append('a', new Proxy(message('a'), { get: fail })),
    new Proxy({ operationId: 'a', transaction }, { get: fail }),
  ];

  for (const [i, change] of changes.entries()) {
    const error = await rejection(session.applyHistoryTransaction(change));
    assert.ok(error instanceof TypeError, `${i}: ${error}`);
    assert.doesNotMatch(error.message, /secret/);
  }
  assert.deepEqual(await session.getItems(), []);
});
