// Views: sessions as files of other programs, and exports.

import assert from 'node:assert/strict';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import test from 'node:test';

import { NotFoundError, Store, viewDialects, WalError } from '../index.mjs';
import {
  memoryStore,
  openStore,
  rejection,
  storePath,
  temporaryFolder,
  thrown,
} from './lib/store.mjs';

const user = (text) => ({ payload: { role: 'user', content: text } });
const assistant = (text) => ({ payload: { role: 'assistant', content: [{ type: 'text', text }] } });

// A session with two messages, and a folder for views.
async function makeSession(t, store, id = 's') {
  const session = await store.create({ id, cwd: '/work' });
  await session.append([user('question'), assistant('answer')]);
  return { session, root: path.join(temporaryFolder(t), 'views') };
}

function linesOf(file) {
  return readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

test('the names of the dialects are constant', () => {
  assert.ok(viewDialects.includes('claude') && viewDialects.includes('codex'));
  assert.throws(() => {
    viewDialects.push('x');
  }, TypeError);
});

test('a view is written in every dialect, and only when it is flushed', async (t) => {
  const store = await openStore(t);
  const { session, root } = await makeSession(t, store);
  for (const dialect of viewDialects) {
    const folder = path.join(root, dialect);
    const view = session.view({ dialect, root: pathToFileURL(folder) });
    assert.equal(existsSync(folder), false);
    const result = await view.flush();
    assert.equal(result.replaced, true, dialect);
    assert.equal(result.unreadable, 0);
    assert.ok(result.entries === 2 && result.bytes > 0 && result.sequence > 0);
    assert.ok(view.path().startsWith(`${folder}/`));
    assert.ok(existsSync(view.path()), view.path());
    assert.equal(typeof view.losses(), 'object');
    assert.deepEqual(view.issues(), []);
    const again = await view.flush();
    assert.deepEqual([again.replaced, again.lines, again.bytes], [false, 0, 0]);
    view.close();
  }
});

test('a flush adds what is new, also what nobody waits for', async (t) => {
  const store = await openStore(t);
  const { session, root } = await makeSession(t, store);
  const view = session.view({ dialect: 'claude', root });
  await view.flush();
  session.append(user('more'));
  const result = await view.flush();
  assert.equal(result.replaced, false);
  assert.equal(result.lines, 1);
  assert.equal(result.entries, 3);
  const lines = linesOf(view.path());
  assert.equal(lines.length, 3);
  assert.equal(lines[2].message.content, 'more');
});

test('what another program adds becomes entries', async (t) => {
  const store = await openStore(t);
  const { session, root } = await makeSession(t, store);
  const view = session.view({ dialect: 'claude', root });
  await view.flush();
  const [, last] = linesOf(view.path());
  const line = {
    ...last,
    type: 'user',
    uuid: 'aaaaaaaa-0000-4000-8000-000000000001',
    parentUuid: last.uuid,
    message: { role: 'user', content: 'from outside' },
  };
  appendFileSync(view.path(), `${JSON.stringify(line)}\nno JSON\n`);
  assert.equal((await rejection(view.flush())).code, 'WAL_ECHANGED');
  const result = await view.import();
  assert.deepEqual([result.lines, result.appended, result.damaged], [2, 2, 1]);
  const issues = view.issues();
  assert.equal(issues.length, 1);
  assert.ok(issues[0].offset > 0 && issues[0].reason.length > 0);
  const entries = session.entries({ mode: 'all' }).toArray();
  assert.equal(entries.length, 4);
  assert.equal(entries[2].payload.message.content, 'from outside');
  assert.equal((await view.import()).appended, 0);
});

test('export gives one file, with its losses', async (t) => {
  const store = memoryStore(t);
  const { session } = await makeSession(t, store);
  session.append(user('not waited for'));
  for (const dialect of viewDialects) {
    const { data, losses } = await session.export({ dialect });
    assert.ok(Buffer.isBuffer(data) && data.length > 0, dialect);
    assert.match(data.toString(), /not waited for/);
    assert.equal(typeof losses, 'object');
  }
  const { data } = await session.export({ dialect: 'claude' });
  assert.equal(data.toString().trimEnd().split('\n').length, 3);
  const empty = await (await store.create()).export({ dialect: 'entries' });
  assert.ok(Buffer.isBuffer(empty.data));
});

test('an export of many MiB is whole', async (t) => {
  const store = memoryStore(t);
  const session = await store.create();
  const text = 'x'.repeat(100_000);
  for (let i = 0; i < 200; i++) {
    session.append(user(text), { durability: 'written' });
  }
  const { data } = await session.export({ dialect: 'claude' });
  const lines = data
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.equal(lines.filter((line) => line.message?.content === text).length, 200);
});

test('the store lists its views, and brings them up to date', async (t) => {
  const store = await openStore(t);
  const { session, root } = await makeSession(t, store);
  const other = (await makeSession(t, store, 'other')).session;
  const view = session.view({ dialect: 'claude', root });
  await view.flush();
  await other.view({ dialect: 'pi', root }).flush();
  const file = view.path();
  const listed = store.views();
  assert.deepEqual(listed.map((one) => [one.session, one.dialect, one.root]).sort(), [
    ['other', 'pi', root],
    ['s', 'claude', root],
  ]);
  assert.deepEqual(
    store.views({ session: 's' }).map((one) => one.session),
    ['s'],
  );
  assert.deepEqual(store.views({ stale: true }), []);
  assert.deepEqual(store.findView(file), { ...listed.find((one) => one.session === 's') });
  assert.deepEqual(store.findView(pathToFileURL(file)), store.findView(file));
  assert.equal(store.findView(path.join(root, 'none')), null);
  assert.equal(store.findView('relative/none'), null);

  await session.append(user('more'));
  const updated = await store.updateView(store.findView(file));
  assert.equal(updated.lines, 1);

  await session.redact(session.entries().toArray()[0].id);
  const [redacted] = store.views({ stale: true });
  assert.deepEqual([redacted.session, redacted.redacted, redacted.deleted], ['s', true, false]);
  await store.updateView(redacted);
  assert.doesNotMatch(readFileSync(file, 'utf8'), /question/);

  await session.delete();
  const [deleted] = store.views({ stale: true });
  assert.deepEqual([deleted.session, deleted.deleted], ['s', true]);
  const removed = await store.updateView(deleted);
  assert.deepEqual([removed.lines, removed.bytes], [0, 0]);
  assert.equal(existsSync(file), false);
});

test('a store that is read only notes roots of views', async (t) => {
  const name = storePath(t);
  const store = await Store.open(name);
  const { session, root } = await makeSession(t, store);
  await session.append(user('x'));
  await store.close();
  const reader = await Store.open(name, { readOnly: true });
  const view = reader.session('s').view({ dialect: 'claude', root });
  await view.flush();
  await reader.addViewRoot('claude', root);
  assert.deepEqual(
    reader.views().map((one) => one.session),
    ['s'],
  );
  assert.ok((await rejection(reader.addViewRoot('none', root))) instanceof NotFoundError);
  assert.ok(
    (await rejection(reader.addViewRoot('claude', path.join(root, 'none')))) instanceof
      NotFoundError,
  );
  await reader.close();
});

test('errors of views', async (t) => {
  const store = await openStore(t);
  const { session, root } = await makeSession(t, store);
  assert.ok(thrown(() => session.view({ dialect: 'none', root })) instanceof NotFoundError);
  assert.ok((await rejection(session.export({ dialect: 'none' }))) instanceof NotFoundError);
  for (const wrong of [
    undefined,
    null,
    5,
    {},
    { dialect: 'claude' },
    { dialect: 5, root },
    { dialect: 'claude', root: 5 },
    { dialect: 'claude', root: '' },
    { dialect: 'claude', root: 'a\0b' },
    { dialect: 'claude', root: '\udc00' },
    { dialect: 'claude', root: new URL('http://x/y') },
    { dialect: 'claude', root: new URL('file:///a%00b') },
  ]) {
    const error = thrown(() => session.view(wrong));
    assert.ok(error instanceof WalError);
    assert.equal(error.code, 'WAL_EINVAL', JSON.stringify(wrong));
  }
  for (const wrong of [undefined, null, 5, {}, { dialect: 5 }, { dialect: '\udc00' }]) {
    const error = await rejection(session.export(wrong));
    assert.ok(
      ['WAL_EINVAL', 'WAL_ENOTFOUND'].includes(error.code),
      `${JSON.stringify(wrong)}: ${error}`,
    );
  }
  const view = session.view({ dialect: 'claude', root });
  assert.ok((await rejection(view.import())) instanceof NotFoundError);
  assert.equal(view.path(1), view.path());
  assert.equal(thrown(() => view.path('x')).code, 'WAL_EINVAL');
  const long = session.view({ dialect: 'claude', root: `/${'x'.repeat(5000)}` });
  assert.ok((await rejection(long.flush())) instanceof WalError);
  writeFileSync(`${root}-file`, '');
  const inFile = session.view({ dialect: 'claude', root: path.join(`${root}-file`, 'x') });
  assert.ok((await rejection(inFile.flush())) instanceof WalError);
});

test('errors of the list of views', async (t) => {
  const store = await openStore(t);
  for (const wrong of [
    undefined,
    null,
    5,
    {},
    { session: 5, dialect: 'claude', root: '/' },
    { session: 'x'.repeat(300), dialect: 'claude', root: '/' },
    { session: 's', dialect: 'x'.repeat(40), root: '/' },
    { session: 's', dialect: 'claude', root: `/${'x'.repeat(5000)}` },
    { session: 's\0', dialect: 'claude', root: '/' },
  ]) {
    const error = await rejection(store.updateView(wrong));
    assert.ok(
      ['WAL_EINVAL', 'WAL_ENOTFOUND'].includes(error.code),
      `${JSON.stringify(wrong)}: ${error}`,
    );
  }
  const none = path.join(temporaryFolder(t), 'none');
  assert.ok(
    (await rejection(store.updateView({ session: 's', dialect: 'claude', root: none }))) instanceof
      NotFoundError,
  );
  for (const wrong of [undefined, 5, '', 'a\0b', '\ud800']) {
    assert.equal(thrown(() => store.findView(wrong)).code, 'WAL_EINVAL');
    assert.equal((await rejection(store.addViewRoot('claude', wrong))).code, 'WAL_EINVAL');
  }
  assert.equal(thrown(() => store.views({ session: 5 })).code, 'WAL_EINVAL');
});

test('calls on one view are made one after another', async (t) => {
  const store = await openStore(t);
  const { session, root } = await makeSession(t, store);
  const view = session.view({ dialect: 'claude', root });
  const calls = [];
  for (let i = 0; i < 5; i++) {
    session.append(user(`${i}`));
    calls.push(view.flush(), view.import());
  }
  const results = await Promise.all(calls);
  assert.equal(
    results.reduce((sum, one) => sum + (one.entries === undefined ? 0 : one.lines), 0),
    7,
  );
  assert.equal(linesOf(view.path()).length, 7);
});

test('close completes flushes and exports; later calls fail', async (t) => {
  const store = await openStore(t);
  const { session, root } = await makeSession(t, store);
  const view = session.view({ dialect: 'claude', root });
  const file = view.path();
  const calls = [view.flush(), session.export({ dialect: 'claude' }), view.flush()];
  view.close();
  view.close();
  await store.close();
  const [flushed, exported] = await Promise.all(calls);
  assert.equal(flushed.lines, 2);
  assert.equal(exported.data.toString(), readFileSync(file, 'utf8'));
  for (const call of [
    view.flush(),
    view.import(),
    session.export({ dialect: 'claude' }),
    store.updateView({ session: 's', dialect: 'claude', root }),
    store.addViewRoot('claude', root),
  ]) {
    assert.equal((await rejection(call)).code, 'WAL_ECLOSED');
  }
  for (const call of [
    () => view.path(),
    () => view.losses(),
    () => view.issues(),
    () => store.views(),
    () => store.findView(file),
    () => session.view({ dialect: 'claude', root }),
  ]) {
    assert.equal(thrown(call).code, 'WAL_ECLOSED');
  }
});

test("a view outlives its session's handle", async (t) => {
  const store = await openStore(t);
  const { session, root } = await makeSession(t, store);
  const view = session.view({ dialect: 'claude', root });
  session.close();
  assert.equal((await view.flush()).lines, 2);
  assert.equal((await rejection(session.export({ dialect: 'claude' }))).code, 'WAL_ECLOSED');
  view.close();
  assert.equal((await rejection(view.flush())).code, 'WAL_ECLOSED');
});

test('a root that vanishes is made again', async (t) => {
  const store = await openStore(t);
  const { session, root } = await makeSession(t, store);
  const view = session.view({ dialect: 'claude', root });
  await view.flush();
  rmSync(root, { recursive: true });
  mkdirSync(root);
  assert.equal((await view.flush()).lines, 2);
  assert.equal(linesOf(view.path()).length, 2);
});
