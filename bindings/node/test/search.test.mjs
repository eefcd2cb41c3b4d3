// Full-text search.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, existsSync, readdirSync } from 'node:fs';
import test from 'node:test';
import { Worker } from 'node:worker_threads';

import { Store } from '../index.mjs';
import {
  atEnd, memoryStore, openStore, rejection, startChild, storePath, thrown,
} from './lib/store.mjs';

const say = (session, role, content, options) =>
  session.append({ ...options, payload: { role, content } });

// An open search, closed at the end of the test.
function openSearch(t, store, options) {
  const search = store.openSearch(options);
  atEnd(t, () => search.close());
  return search;
}

// The hits of a result as 'session:entry'; '-' for a title.
const idsOf = (sessions) => sessions.flatMap(
  ({ sessionId, hits }) => hits.map(({ entryId }) => `${sessionId}:${entryId ?? '-'}`));

const idsFound = async (search, text, options) => idsOf(await search.find(text, options));

const marked = ({ snippet, matches }) => matches.map(([start, end]) => snippet.slice(start, end));

// A store on disk, a search on it and a session that has many messages.
async function makeLarge(t, options) {
  const store = await openStore(t, options);
  const session = await store.create({ id: 'large' });
  for (let i = 0; i < 40; i++) {
    await session.append(Array.from({ length: 500 }, (_, j) => ({
      payload: { role: 'user', content: `number ${i * 500 + j} of many words that are indexed` },
    })), { durability: 'written' });
  }
  return store;
}

test('words, phrases, beginnings and exclusions are found', async (t) => {
  const store = memoryStore(t);
  const session = await store.create({ id: 's', title: 'Totals', cwd: '/srv', project: 'tax' });
  await say(session, 'user', 'The invoice total is wrong', { id: 'a' });
  await say(session, 'assistant', 'The total invoice was rounded', { id: 'b' });
  const search = openSearch(t, store);
  const [found, ...rest] = await search.find('INVOICE total');
  assert.deepEqual(rest, []);
  const { hits, updated, ...about } = found;
  assert.deepEqual(about, {
    sessionId: 's', title: 'Totals', cwd: '/srv', projectId: 'tax', matches: 2,
  });
  assert.equal(updated, session.info().updated);
  assert.deepEqual(hits.map((hit) => hit.entryId), ['a', 'b']);
  const [{ score, time, timestamp, sequence, ...hit }] = hits;
  assert.deepEqual(hit, {
    entryId: 'a', role: 'user', tool: null, snippet: 'The invoice total is wrong',
    matches: [[4, 11], [12, 17]],
  });
  assert.ok(score > hits[1].score && hits[1].score > 0);
  assert.equal(time, Date.parse(timestamp));
  assert.equal(sequence, session.entry('a').sequence);
  assert.deepEqual(await idsFound(search, '"total invoice"'), ['s:b']);
  assert.deepEqual(await idsFound(search, 'round*'), ['s:b']);
  assert.deepEqual(await idsFound(search, 'invoice -wrong'), ['s:b']);
  assert.deepEqual(await idsFound(search, 'absent'), []);
});

test('scripts without spaces are found by a part', async (t) => {
  const store = memoryStore(t);
  const session = await store.create({ id: 's' });
  await say(session, 'user', '全文検索機能を作る', { id: 'a' });
  const search = openSearch(t, store);
  for (const part of ['検索', '検索機', '機能']) {
    const [{ hits: [hit] }] = await search.find(part);
    assert.deepEqual(marked(hit), [part]);
  }
  assert.deepEqual(await idsFound(search, '文'), ['s:a']);
  assert.deepEqual(await idsFound(search, '索検'), []);
});

test('offsets are units of UTF-16', async (t) => {
  const store = memoryStore(t);
  const session = await store.create({ id: 's' });
  await say(session, 'user', '😀 é 𝒳𝒴 needle ü 😀 needle 検', { id: 'a' });
  const search = openSearch(t, store);
  const [{ hits: [hit] }] = await search.find('needle');
  assert.deepEqual(marked(hit), ['needle', 'needle']);
  assert.deepEqual(hit.matches, [[10, 16], [22, 28]]);
  const [{ hits: [last] }] = await search.find('検');
  assert.deepEqual(marked(last), ['検']);
});

// A session with each role.
async function makeRoles(store) {
  const session = await store.create({ id: 's', title: 'needle title' });
  await say(session, 'user', 'needle', { id: 'user' });
  await session.append({
    id: 'call',
    payload: {
      role: 'assistant',
      content: [{ type: 'text', text: 'I read' },
        { type: 'toolCall', id: '1', name: 'Read', arguments: { path: '/src/needle.c' } }],
    },
  });
  await say(session, 'assistant', 'needle there', { id: 'assistant' });
  await say(session, 'tool', 'needle in a result', { id: 'result' });
  await session.append({
    id: 'summary', type: 'compaction_summary',
    payload: { summary: 'needle was sought', firstKeptEntryId: 'user' },
  });
  return session;
}

test('roles, tools and results are selected', async (t) => {
  const store = memoryStore(t);
  await makeRoles(store);
  const search = openSearch(t, store);
  const [{ hits }] = await search.find('needle', { hits: 10, deep: true });
  assert.deepEqual(Object.fromEntries(hits.map(({ role, entryId }) => [role, entryId])), {
    title: null, user: 'user', assistant: 'assistant', tool: 'call', result: 'result',
    summary: 'summary',
  });
  assert.equal((await idsFound(search, 'needle', { hits: 10 })).includes('s:result'), false);
  assert.equal((await idsFound(search, 'needle')).length, 3, 'the default is 3 hits');
  assert.deepEqual(await idsFound(search, 'needle', { roles: ['user', 'title'] }),
    ['s:-', 's:user']);
  assert.deepEqual(await idsFound(search, 'needle', { roles: ['result'] }), ['s:result']);
  const [{ hits: [call] }] = await search.find('needle', { tool: 'Read' });
  assert.deepEqual([call.entryId, call.role, call.tool], ['call', 'tool', 'Read']);
  assert.deepEqual(await idsFound(search, '', { tool: 'Read' }), ['s:call']);
});

test('sessions, projects, directories and times are selected', async (t) => {
  const store = memoryStore(t);
  for (const [id, day] of [['a', '01'], ['b', '02'], ['c', '03']]) {
    const session = await store.create({ id, cwd: `/srv/${id}`, project: `p-${id}` });
    await say(session, 'user', `${'long '.repeat(50)} word ${'text '.repeat(50)}`,
      { id: `${id}1`, timestamp: `2026-01-${day}T00:00:00.000Z` });
  }
  const search = openSearch(t, store);
  assert.deepEqual(await idsFound(search, 'word', { session: 'b' }), ['b:b1']);
  assert.deepEqual(await idsFound(search, 'word', { project: 'p-a' }), ['a:a1']);
  assert.deepEqual(await idsFound(search, 'word', { cwd: '/srv/c' }), ['c:c1']);
  assert.deepEqual(await idsFound(search, 'word', { since: new Date('2026-01-02') }),
    ['c:c1', 'b:b1']);
  assert.deepEqual(await idsFound(search, 'word', { until: Date.parse('2026-01-02') }), ['a:a1']);
  assert.deepEqual(await idsFound(search, 'word', { limit: 2 }), ['c:c1', 'b:b1']);
  const [{ hits: [short] }] = await search.find('word', { snippet: 10 });
  const [{ hits: [long] }] = await search.find('word', { snippet: 200 });
  assert.ok(short.snippet.length < 40 && long.snippet.length > 300);
  assert.deepEqual([marked(short), marked(long)], [['word'], ['word']]);
  const none = await rejection(search.find('word', { session: 'none' }));
  assert.equal(none.name, 'NotFoundError');
});

test('text inside words is found with substring', async (t) => {
  const store = memoryStore(t);
  const session = await store.create({ id: 's' });
  await say(session, 'user', 'a misunderstanding', { id: 'a' });
  const search = openSearch(t, store);
  assert.deepEqual(await idsFound(search, 'understand'), []);
  const [{ hits: [hit] }] = await search.find('understand', { substring: true });
  assert.deepEqual(marked(hit), ['understand']);
  assert.equal((await rejection(search.find('un', { substring: true }))).code, 'WAL_EINVAL');
});

test('what was redacted or deleted is not found', async (t) => {
  const store = await openStore(t);
  const session = await store.create({ id: 'kept' });
  await say(session, 'user', 'secret password', { id: 'a' });
  await say(session, 'user', 'secret plan', { id: 'b' });
  const other = await store.create({ id: 'gone' });
  await say(other, 'user', 'secret plan too', { id: 'c' });
  const search = openSearch(t, store);
  assert.equal((await idsFound(search, 'secret')).length, 3);
  await session.redact('a');
  await other.delete();
  for (const update of [false, true]) {
    assert.deepEqual(await idsFound(search, 'secret', { update }), ['kept:b']);
  }
  await session.trash();
  assert.deepEqual(await idsFound(search, 'secret'), []);
  assert.equal((await rejection(search.find('secret', { session: 'kept' }))).code, 'WAL_ETRASHED');
});

test('arguments are checked', async (t) => {
  const store = memoryStore(t);
  const search = openSearch(t, store);
  const wrong = [
    [undefined], [null], [5], ['word', null], ['word', { roles: 'user' }],
    ['word', { roles: ['person'] }], ['word', { roles: [null] }], ['word', { limit: 0 }],
    ['word', { limit: 2 ** 32 }], ['word', { hits: -1 }], ['word', { snippet: 1.5 }],
    ['word', { since: 'today' }], ['word', { until: new Date(NaN) }], ['word', { session: 5 }],
    [''], ['-word'], ['\ud800'], ['x'.repeat(5000)],
  ];
  for (const given of wrong) {
    assert.equal((await rejection(search.find(...given))).code, 'WAL_EINVAL', String(given));
    assert.equal(thrown(() => search.findSync(...given)).code, 'WAL_EINVAL', String(given));
  }
  for (const given of [{ signal: 5 }, { onProgress: 5 }]) {
    assert.equal((await rejection(search.find('word', given))).code, 'WAL_EINVAL');
    assert.equal((await rejection(search.update(given))).code, 'WAL_EINVAL');
  }
  assert.equal(thrown(() => store.openSearch(null)).code, 'WAL_EINVAL');
});

test('what was asked for before is found, and what came after an update is not', async (t) => {
  const store = memoryStore(t);
  const session = store.createSync({ id: 's' });
  say(session, 'user', 'first word', { id: 'a' });
  const search = openSearch(t, store);
  assert.deepEqual(await idsFound(search, 'word'), ['s:a']);
  await say(session, 'user', 'second word', { id: 'b' });
  assert.deepEqual(await idsFound(search, 'word', { update: false }), ['s:a']);
  assert.deepEqual(idsOf(search.findSync('word', { update: false })), ['s:a']);
  assert.deepEqual(idsOf(search.findSync('word')).sort(), ['s:a', 's:b']);
});

test('finds of one search run one after the other, those of several together', async (t) => {
  const store = await makeLarge(t);
  const one = openSearch(t, store);
  const searches = Array.from({ length: 16 }, (_, i) => (i < 8 ? one : openSearch(t, store)));
  const found = searches.map((search, i) => idsFound(search, `number ${1000 + i}`));
  const busy = one.update({ deep: true });
  for (const ids of await Promise.all(found)) {
    assert.equal(ids.length, 1);
  }
  assert.equal((await busy).segments > 0, true);
  assert.equal(new Set((await Promise.all(found)).flat()).size, 16);
});

test('an update makes the files of the index', async (t) => {
  const store = await makeLarge(t);
  const search = openSearch(t, store);
  const calls = [];
  const result = await search.update({ onProgress: (...call) => { calls.push(call); } });
  assert.ok(result.built > 0 && result.segments >= result.built && result.unwritten === 0);
  assert.ok(result.readBytes > 0 && result.textBytes > 0 && result.indexBytes > 0);
  assert.ok(calls.length > 0 && calls.at(-1)[0] <= calls.at(-1)[1]);
  assert.equal((await search.update()).built, 0);
  assert.ok(readdirSync(`${store.path}/index`).some((name) => /\.fts$/.test(name)));
  assert.equal(readdirSync(`${store.path}/index`).some((name) => /\.deep\.fts$/.test(name)), false);
  await search.update({ deep: true });
  assert.ok(readdirSync(`${store.path}/index`).some((name) => /\.deep\.fts$/.test(name)));
});

test('a signal stops the update of a find', async (t) => {
  const store = await makeLarge(t);
  const search = openSearch(t, store);
  const aborted = AbortSignal.abort();
  assert.equal((await rejection(search.find('number', { signal: aborted }))).name, 'AbortError');
  const reason = new Error('enough');
  const throwing = { onProgress() { throw reason; } };
  // It may be over before it is looked at.
  await search.update(throwing).catch((error) => assert.equal(error, reason));
  const controller = new AbortController();
  const finding = search.find('number 7', { signal: controller.signal });
  const next = search.find('number 7');
  controller.abort();
  assert.equal((await rejection(finding)).name, 'AbortError');
  assert.equal((await next)[0].hits.length, 1, 'the next one is not stopped');
  const late = new AbortController();
  assert.equal((await search.find('number 7', { signal: late.signal }))[0].sessionId, 'large');
  late.abort();
});

test('a signal stops a find that runs', async (t) => {
  const store = await makeLarge(t);
  let stopped = 0;
  for (let ms = 0; ms < 6; ms++) {
    const search = store.openSearch({ memory: true });
    const controller = new AbortController();
    const finding = search.find('number 7', { signal: controller.signal });
    setTimeout(() => controller.abort(), ms);
    const error = await finding.catch((failure) => failure);
    stopped += error.name === 'AbortError';
    assert.deepEqual(await idsFound(search, '"number 7 of"'), ['large:' +
      store.session('large').entries().toArray()[7].id], 'it can be used again');
    search.close();
  }
  assert.ok(stopped > 0, 'none was stopped');
});

test('a search is closed before its store', async (t) => {
  const store = await openStore(t);
  const session = await store.create({ id: 's' });
  await say(session, 'user', 'a word', { id: 'a' });
  const search = store.openSearch();
  const pending = [search.find('word'), search.update(), search.find('word')];
  search.close();
  search.close();
  assert.equal((await rejection(search.find('word'))).code, 'WAL_ECLOSED');
  assert.equal((await rejection(search.update())).code, 'WAL_ECLOSED');
  assert.equal(thrown(() => search.findSync('word')).code, 'WAL_ECLOSED');
  const [first, , last] = await Promise.all(pending);
  assert.deepEqual([idsOf(first), idsOf(last)], [['s:a'], ['s:a']], 'calls before are completed');
  if (Symbol.dispose !== undefined) {
    const other = store.openSearch();
    other[Symbol.dispose]();
    assert.equal((await rejection(other.find('word'))).code, 'WAL_ECLOSED');
  }
});

test('a store is closed before its search', async (t) => {
  const store = await Store.open(storePath(t));
  const session = await store.create({ id: 's' });
  await say(session, 'user', 'a word', { id: 'a' });
  const idle = store.openSearch();
  const search = store.openSearch();
  assert.deepEqual(await idsFound(search, 'word', { deep: true }), ['s:a']);
  await store.close();
  for (const one of [idle, search]) {
    assert.equal((await rejection(one.find('word'))).code, 'WAL_ECLOSED');
    assert.equal((await rejection(one.update())).code, 'WAL_ECLOSED');
    assert.equal(thrown(() => one.findSync('word')).code, 'WAL_ECLOSED');
    one.close();
    one.close();
  }
  assert.equal(thrown(() => store.openSearch()).code, 'WAL_ECLOSED');
});

for (const how of ['close', 'closeSync']) {
  test(`Store.${how} while finds are pending`, async (t) => {
    const store = await makeLarge(t);
    const search = store.openSearch();
    const other = store.openSearch({ memory: true });
    const pending = [search.find('number 7'), search.find('number 8'),
      search.update({ deep: true }), other.find('number 9')]
      .map((call) => call.catch((error) => assert.equal(error.code, 'WAL_ECLOSED')));
    await new Promise((resolve) => { setTimeout(resolve, 5); });
    const closed = store[how]();
    await Promise.all(pending);
    await closed;
    assert.equal((await rejection(search.find('number'))).code, 'WAL_ECLOSED');
    search.close();
  });
}

test('a find is pending when its search is closed at once, and its store after it', async (t) => {
  const store = await makeLarge(t);
  const search = store.openSearch();
  const finding = search.find('number 7')
    .catch((error) => assert.equal(error.code, 'WAL_ECLOSED'));
  search.close();
  await store.close();
  await finding;
});

test('a Worker is terminated with searches under way', async (t) => {
  const name = storePath(t);
  for (let round = 0; round < 5; round++) {
    const worker = new Worker(new URL('./child/worker.mjs', import.meta.url), {
      workerData: { name, id: `s-${round}`, mode: 'search' },
    });
    await once(worker, 'message');
    await new Promise((resolve) => { setTimeout(resolve, 9 * round); });
    await worker.terminate();
  }
  const store = await Store.open(name);
  assert.equal((await openSearch(t, store).find('"number 7 of"')).length, 5);
  await store.close();
});

test('a process exits with searches under way', async (t) => {
  const { code, errors } = await startChild('search', [storePath(t), 'exit'],
    { execArgv: ['--expose-gc'] }).ended;
  assert.equal(code, 7, errors);
  assert.equal(errors, '');
});

test('searches that are lost are freed, their calls are completed', async (t) => {
  const child = startChild('search', [storePath(t)], { execArgv: ['--expose-gc'] });
  const { code, lines, errors } = await child.ended;
  assert.equal(code, 0, errors);
  assert.deepEqual(lines, [{ found: 50, held: 1 }]);
});

test('a store without files is searched in memory', async (t) => {
  const store = memoryStore(t);
  await makeRoles(store);
  const search = openSearch(t, store);
  assert.deepEqual(await idsFound(search, 'needle', { roles: ['user'] }), ['s:user']);
  assert.ok((await search.update()).unwritten > 0);
});

test('with memory no file is made', async (t) => {
  const store = await openStore(t);
  await makeRoles(store);
  const files = () => (existsSync(`${store.path}/index`) ? readdirSync(`${store.path}/index`) : [])
    .filter((name) => name.includes('.fts'));
  const search = openSearch(t, store, { memory: true });
  assert.deepEqual(await idsFound(search, 'needle', { roles: ['user'] }), ['s:user']);
  assert.deepEqual(files(), []);
  await openSearch(t, store).update();
  assert.ok(files().length > 0);
});

test('a read-only store is searched, and nothing is written', async (t) => {
  const path = storePath(t);
  const writer = await Store.open(path);
  await makeRoles(writer);
  await writer.close();
  chmodSync(path, 0o555);
  atEnd(t, () => chmodSync(path, 0o755));
  const store = await Store.open(path, { readOnly: true });
  atEnd(t, () => store.close());
  const search = openSearch(t, store);
  assert.deepEqual(await idsFound(search, 'needle', { roles: ['user'] }), ['s:user']);
  assert.deepEqual(idsOf(search.findSync('needle', { roles: ['assistant'] })), ['s:assistant']);
  assert.ok((await search.update()).unwritten > 0);
  assert.deepEqual(readdirSync(`${path}/index`).filter((name) => name.includes('.fts')), []);
});
