// Durability 'cluster': appends that wait until the remote has them, with a process
// that ships the store.

import assert from 'node:assert/strict';
import { rename } from 'node:fs/promises';
import test from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { Store } from '../index.mjs';
import { AgentwalSessionStore } from '../claude-session-store.mjs';
import { hasRemotes, Remote } from './lib/remote.mjs';
import {
  atEnd, memoryStore, openStore, rejection, startChild, storePath, thrown,
} from './lib/store.mjs';

const cluster = { durability: 'cluster' };
const options = { skip: hasRemotes() ? false : 'the tool has no remotes' };

async function openSession(t, remote, openOptions) {
  const store = await Store.open(remote.store, openOptions);
  atEnd(t, () => store.close());
  return store.session('s');
}

async function shipped(t) {
  const remote = new Remote(t);
  await remote.start();
  return remote;
}

function payloads(session) {
  return [...session].map((entry) => entry.payload);
}

// An append that is durable, and waits for the remote.
async function appendWaiting(session, payload) {
  const append = session.append({ payload }, cluster);
  append.catch(() => {});
  await session.append({ payload: 'after' });
  await sleep(200); // until it waits: only later failures are its own
  return { append };
}

function assertDurableHere(error, code, append) {
  assert.equal(error.code, code);
  assert.deepEqual({ ...error.result, sequence: 0 },
    { appended: 1, duplicates: 0, sequence: 0, lastId: append.lastId });
  assert.ok(error.result.sequence > 0);
}

test('without a process that ships nothing is written', options, async (t) => {
  const session = await openSession(t, new Remote(t));
  const calls = [
    session.append({ payload: 1 }, cluster),
    session.append([{ payload: 1 }, { payload: 2 }], cluster),
    session.commit({ entries: [{ payload: 1 }], documents: [{ key: 'k', value: 1 }] }, cluster),
    session.commit({ change: { title: 'new' } }, cluster),
  ];
  for (const call of calls) {
    const error = await rejection(call);
    assert.equal(error.code, 'WAL_EREMOTE');
    assert.match(error.message, /no process ships the store/);
    assert.equal(error.result, null);
    assert.equal((await rejection(call.durable)).code, 'WAL_EREMOTE');
  }
  assert.equal(thrown(() => session.appendSync({ payload: 1 }, cluster)).code, 'WAL_EREMOTE');
  assert.deepEqual(payloads(session), []);
  assert.notEqual(session.info().title, 'new');
  assert.equal(session.documents.get('k'), null);
});

test('a store in memory refuses it, one that keeps nothing takes it', async (t) => {
  const session = await memoryStore(t).create();
  assert.equal((await rejection(session.append({ payload: 1 }, cluster))).code, 'WAL_EREMOTE');
  assert.deepEqual(payloads(session), []);
  const noop = await openStore(t, { noop: true });
  const other = await noop.create();
  assert.equal((await other.append({ payload: 1 }, cluster)).appended, 1);
  assert.equal(other.appendSync({ payload: 1 }, cluster).appended, 1);
});

test('each call fulfils once the remote has it', options, async (t) => {
  const remote = await shipped(t);
  const session = await openSession(t, remote);
  assert.equal((await session.append({ payload: 1 }, cluster)).appended, 1);
  assert.deepEqual(await remote.pull(), [1]);
  const result = await session.append([{ payload: 2 }, { payload: 3, id: 'three' }], cluster);
  assert.deepEqual({ ...result, sequence: 0 },
    { appended: 2, duplicates: 0, sequence: 0, lastId: 'three' });
  assert.deepEqual(await remote.pull(), [1, 2, 3]);
  await session.commit({ entries: [{ payload: 4 }], documents: [{ key: 'k', value: 1 }],
    change: { title: 'new' } }, cluster);
  assert.deepEqual(await remote.pull(), [1, 2, 3, 4]);
  assert.equal(session.appendSync({ payload: 5 }, cluster).appended, 1);
  assert.deepEqual(await remote.pull(), [1, 2, 3, 4, 5]);
  const append = session.append({ payload: 6 }, cluster);
  await append.durable;
  await append;
  assert.equal(session.info().title, 'new');
});

test('what exists waits, too', options, async (t) => {
  const remote = await shipped(t);
  const session = await openSession(t, remote);
  const entry = { id: 'a', timestamp: 't', payload: 1 };
  await remote.stop();
  await session.append(entry);
  let isDone = false;
  const again = session.append(entry, cluster).then((result) => {
    isDone = true;
    return result;
  });
  await sleep(200);
  assert.equal(isDone, false);
  remote.goOn();
  assert.equal((await again).duplicates, 1);
  assert.deepEqual(await remote.pull(), [1]);
});

test('appends in flight fulfil in their order, also from the backlog', options, async (t) => {
  const remote = await shipped(t);
  const session = await openSession(t, remote, { queueLimit: 4 });
  const order = [];
  const calls = [];
  for (let i = 0; i < 200; i++) {
    calls.push(session.append({ payload: i }, cluster).then(() => { order.push(i); }));
    if (i % 50 === 49) {
      await calls[i - 40];
    }
  }
  await Promise.all(calls);
  assert.deepEqual(order, Array.from({ length: 200 }, (_, i) => i));
  assert.deepEqual(await remote.pull(), order);
});

test('the shipping process is killed while appends wait', options, async (t) => {
  const remote = await shipped(t);
  const session = await openSession(t, remote);
  await remote.stop();
  const { append } = await appendWaiting(session, 1);
  const { append: second } = await appendWaiting(session, 2);
  const change = session.commit({ change: { title: 'new' } }, cluster);
  await session.append({ payload: 'not held up' });
  await remote.kill();
  assertDurableHere(await rejection(append), 'WAL_EREMOTE', append);
  assertDurableHere(await rejection(second), 'WAL_EREMOTE', second);
  assert.equal((await rejection(change)).result.appended, 0);
  await append.durable;
  assert.equal(session.info().title, 'new');
  assert.equal((await rejection(session.append({ payload: 3 }, cluster))).result, null);
  await remote.start();
  await session.append({ payload: 4 }, cluster);
  assert.deepEqual(await remote.pull(), [1, 'after', 2, 'after', 'not held up', 4]);
});

test('the remote fails while appends wait', options, async (t) => {
  const remote = await shipped(t);
  const session = await openSession(t, remote);
  await remote.stop();
  const { append } = await appendWaiting(session, 1);
  const { append: second } = await appendWaiting(session, 2);
  await rename(remote.bucket, `${remote.bucket}-away`);
  remote.goOn();
  for (const one of [append, second]) {
    const error = await rejection(one);
    assert.match(error.message, /it is durable here/);
    assertDurableHere(error, error.code, one);
  }
  await rename(`${remote.bucket}-away`, remote.bucket);
  await session.append({ payload: 3 }, cluster);
  assert.deepEqual(await remote.pull(), [1, 'after', 2, 'after', 3]);
});

test('another writer takes over while one waits', options, async (t) => {
  const remote = await shipped(t);
  const session = await openSession(t, remote);
  await session.append({ payload: 0 }, cluster);
  await remote.stop();
  assert.deepEqual(await remote.pull('--take-over'), [0]);
  const { append } = await appendWaiting(session, 1);
  remote.goOn();
  const error = await rejection(append);
  // WAL_EFENCED, but where it looked again only after the process had ended.
  assert.ok(['WAL_EFENCED', 'WAL_EREMOTE'].includes(error.code), error.code);
  assertDurableHere(error, error.code, append);
});

test('the store is closed while appends wait', options, async (t) => {
  const remote = await shipped(t);
  for (const isSync of [false, true]) {
    const session = await openSession(t, remote);
    await session.append({ payload: 1 }, cluster);
    await remote.stop();
    const { append: waiting } = await appendWaiting(session, isSync);
    const last = session.append({ payload: 'last' }, cluster);
    last.catch(() => {});
    if (isSync) {
      session.store.closeSync();
    } else {
      await session.store.close();
    }
    assertDurableHere(await rejection(waiting), 'WAL_ECLOSED', waiting);
    assertDurableHere(await rejection(last), 'WAL_ECLOSED', last);
    remote.goOn();
  }
  const again = await openSession(t, remote);
  assert.deepEqual(payloads(again),
    [1, false, 'after', 'last', 1, true, 'after', 'last']);
});

test('an append that waits keeps the process alive, and ends with it', options, async (t) => {
  const remote = await shipped(t);
  await remote.stop();
  for (const [how, lines] of [['exit', ['waits']], ['worker', ['terminated']]]) {
    const { code, lines: found, errors } = await startChild('shipping', [remote.store, how]).ended;
    assert.equal(code, 0, errors);
    assert.deepEqual(found, lines);
  }
  const child = startChild('shipping', [remote.store, 'wait']);
  assert.equal(await child.line(), 'waits');
  await sleep(200);
  remote.goOn();
  const { code, lines, errors } = await child.ended;
  assert.equal(code, 0, errors);
  assert.deepEqual(lines, ['stored']);
  assert.deepEqual(await remote.pull(), ['exit', 'worker', 'wait']);
});

test('nothing is followed with this durability, and adapters refuse it', async (t) => {
  const session = await memoryStore(t).create();
  assert.equal(thrown(() => session.follow(cluster)).code, 'WAL_EINVAL');
  assert.equal(thrown(() => new AgentwalSessionStore(storePath(t), cluster)).code, 'WAL_EINVAL');
});
