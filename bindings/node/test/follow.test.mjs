// Following a store and a session.

import assert from 'node:assert/strict';
import test from 'node:test';

import { Store } from '../index.mjs';
import {
  atEnd, memoryStore, openStore, rejection, storePath, temporaryFolder, thrown,
} from './lib/store.mjs';

const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

async function take(iterator, count) {
  const taken = [];
  while (taken.length < count) {
    const { done, value } = await iterator.next();
    assert.equal(done, false);
    taken.push(value);
  }
  return taken;
}

test('a store is followed by sequence numbers', async (t) => {
  const store = await openStore(t);
  const session = await store.create();
  const following = store.follow();
  const all = store.follow({ after: 0, durability: 'durable' });
  assert.deepEqual(await take(all, 1), [store.info().lastSequence]);
  const next = following.next();
  const { sequence } = await session.append({ payload: 1 });
  assert.deepEqual(await next, { done: false, value: sequence });
  assert.deepEqual(await take(all, 1), [sequence]);
  await following.return();
  assert.deepEqual(await following.next(), { done: true, value: undefined });
  await all.return();
  assert.equal((await rejection(Promise.resolve().then(
    () => store.follow({ durability: 'queued' })))).code, 'WAL_EINVAL');
});

test('a session that is closed ends the followers that wait', async (t) => {
  const store = await openStore(t);
  const session = await store.create();
  const followers = Array.from({ length: 3 }, () => session.follow());
  const waiting = followers.map((follower) => follower.next());
  await pause(20);
  session.close();
  assert.deepEqual(await Promise.all(waiting),
    followers.map(() => ({ done: true, value: undefined })));
});

test('one signal ends any number of followers, without a warning', async (t) => {
  const store = await openStore(t);
  const session = await store.create();
  const abort = new AbortController();
  const warnings = [];
  const warn = (warning) => { warnings.push(warning); };
  process.on('warning', warn);
  const waiting = Array.from({ length: 30 },
    () => rejection(session.follow({ signal: abort.signal }).next()));
  await pause(20);
  abort.abort(new Error('enough'));
  assert.deepEqual((await Promise.all(waiting)).map((error) => error.message),
    Array(30).fill('enough'));
  await pause(20);
  process.off('warning', warn);
  assert.deepEqual(warnings, []);
});

test('a session is followed from the tail, the start and a number', async (t) => {
  const store = await openStore(t);
  const session = await store.create();
  const first = await session.append([{ payload: 0 }, { payload: 1 }]);
  const followers = [session.follow(), session.follow({ from: 'start' }),
    session.follow({ from: first.sequence }), session.follow({ from: first.sequence - 1 })];
  const writing = (async () => {
    for (let i = 2; i < 40; i++) {
      await session.append({ payload: i }, { durability: 'written' });
      if (i % 10 === 0) {
        await pause(5);
      }
    }
  })();
  for (const [i, begin] of [2, 0, 2, 1].entries()) {
    const entries = await take(followers[i], 40 - begin);
    assert.deepEqual(entries.map((entry) => entry.payload),
      Array.from({ length: 40 - begin }, (_, at) => at + begin));
    await followers[i].return();
  }
  await writing;
});

test('only the session that is followed is yielded, from any branch', async (t) => {
  const store = memoryStore(t);
  const session = store.createSync();
  const other = store.createSync();
  const following = session.follow();
  await session.append([{ id: 'a', payload: 1 }, { id: 'b', payload: 2 }]);
  await other.append({ payload: 'other' });
  await session.append({ id: 'c', parentId: 'a', payload: 3 });
  assert.deepEqual((await take(following, 3)).map((entry) => entry.id), ['a', 'b', 'c']);
  await following.return();
});

test('a fork is followed with what it shares', async (t) => {
  const store = memoryStore(t);
  const session = store.createSync();
  await session.append([{ id: 'a', payload: 1 }, { id: 'b', payload: 2 }]);
  const fork = await session.fork({ at: 'a' });
  const following = fork.follow({ from: 'start' });
  await fork.append({ id: 'c', payload: 3 });
  assert.deepEqual((await take(following, 2)).map((entry) => entry.id), ['a', 'c']);
  await following.return();
});

test('a durable follower sees what is durable', async (t) => {
  const store = await openStore(t);
  const session = await store.create();
  const following = session.follow({ durability: 'durable' });
  const { syncs } = store.info();
  await session.append({ id: 'a', payload: 1 }, { durability: 'written' });
  const next = following.next();
  if (await Promise.race([next, pause(100)]) !== undefined) {
    // On a slow machine the mark of the group before is written, and synced, after it.
    assert.ok(store.info().syncs > syncs);
  }
  await store.sync();
  assert.equal((await next).value.id, 'a');
  await following.return();
});

test('redactions and dropped deltas do not repeat or lose entries', async (t) => {
  const store = await openStore(t);
  const session = await store.create();
  const following = session.follow({ deltas: true });
  await session.append([{ id: 'a', payload: 'a' }, { id: 'b', payload: 'b' }]);
  await session.append({ type: 'message_delta_batch', payload: 'delta' });
  assert.deepEqual((await take(following, 3)).map((entry) => entry.payload), ['a', 'b', 'delta']);
  await session.redact('a', 'secret');
  await session.append({ id: 'c', payload: 'c' });
  const [redaction, c] = await take(following, 2);
  assert.equal(redaction.type, 'redaction');
  assert.equal(c.id, 'c');
  await following.return();
});

test('a signal ends a follower that waits, and one that reads', async (t) => {
  const store = await openStore(t);
  const session = await store.create();
  const waiting = new AbortController();
  const following = session.follow({ signal: waiting.signal });
  const next = following.next();
  setTimeout(() => waiting.abort(), 10);
  assert.equal((await rejection(next)).name, 'AbortError');
  assert.deepEqual(await following.next(), { done: true, value: undefined });

  await session.append(Array.from({ length: 1000 }, (_, i) => ({ payload: i })));
  const reading = new AbortController();
  const reason = new Error('enough');
  let count = 0;
  const error = await rejection((async () => {
    for await (const entry of session.follow({ from: 'start', signal: reading.signal })) {
      assert.equal(entry.payload, count);
      count++;
      if (count === 500) {
        reading.abort(reason);
      }
    }
  })());
  assert.equal(error, reason);
  assert.equal(count, 500);

  const before = AbortSignal.abort(reason);
  assert.equal(await rejection(store.follow({ signal: before }).next()), reason);
  assert.equal(await rejection(session.follow({ from: 'start', signal: before }).next()), reason);
});

test('many followers of two stores on one path all wake', async (t) => {
  const name = storePath(t);
  const stores = await Promise.all([Store.open(name), Store.open(name)]);
  atEnd(t, () => Promise.all(stores.map((store) => store.close())));
  await stores[0].create({ id: 's' });
  const followers = [];
  for (let i = 0; i < 20; i++) {
    followers.push(stores[i % 2].session('s').follow({ from: 'start' }));
  }
  const taken = Promise.all(followers.map((follower) => take(follower, 10)));
  for (let i = 0; i < 10; i++) {
    await stores[i % 2].session('s').append({ payload: i });
  }
  for (const entries of await taken) {
    assert.deepEqual(entries.map((entry) => entry.payload), [...Array(10).keys()]);
  }
});

test('a follower ends with the session', async (t) => {
  const store = await openStore(t);
  const session = await store.create();
  const following = session.follow();
  const ended = rejection(following.next());
  await pause(10);
  await session.delete();
  assert.equal((await ended).code, 'WAL_ENOTFOUND');
});

test('return and throw end a follower that waits, at once', async (t) => {
  const store = await openStore(t);
  const session = await store.create();
  const folder = temporaryFolder(t);
  const { signal } = new AbortController();
  const follows = [() => store.follow(), () => session.follow(), () => store.followImport(folder),
    () => store.follow({ signal }), () => session.follow({ from: 'start', signal }),
    () => store.followImport(folder, { signal })];
  for (const follow of follows) {
    const returned = follow();
    const waiting = [returned.next(), returned.next()];
    await pause(10);
    assert.deepEqual(await returned.return(5), { done: true, value: 5 });
    assert.deepEqual(await Promise.all(waiting), Array(2).fill({ done: true, value: undefined }));
    assert.deepEqual(await returned.next(), { done: true, value: undefined });
    const failed = follow();
    const last = failed.next();
    const failure = new Error('of the caller');
    assert.equal(await rejection(failed.throw(failure)), failure);
    assert.deepEqual(await last, { done: true, value: undefined });
    const unused = follow();
    assert.deepEqual(await unused.return(), { done: true, value: undefined });
    assert.deepEqual(await unused.next(), { done: true, value: undefined });
  }
});

test('what is no signal is refused', async (t) => {
  const store = memoryStore(t);
  const session = store.createSync();
  for (const signal of [null, 5, {}, 'signal']) {
    for (const follow of [() => store.follow({ signal }), () => session.follow({ signal }),
      () => store.followImport('folder', { signal })]) {
      assert.equal(thrown(follow).code, 'WAL_EINVAL');
    }
  }
});
