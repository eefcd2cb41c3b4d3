// Appends that race: nothing acknowledged is lost, order is kept, and summaries
// cover what they say.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import path from 'node:path';
import test from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { AgentwalSessionStore } from '../../claude-session-store.mjs';
import { Session, Store, WalError } from '../../index.mjs';
import { readSummary } from '../../lib/claude/summary.js';
import { MAIN, message, PROJECT, row, withStore } from '../lib/claude.mjs';

const SECONDS = process.env.AGENTWAL_LONG === '1' ? 60 : 4;
const WRITERS = 4;
const { foldSessionSummary } = await import('@anthropic-ai/claude-agent-sdk');

/** Each summary that was ever stored is the fold of the rows that it covers. */
function checkHistory(session, rows) {
  const documents = session.documents.list({ prefix: 'claude/', history: true })
    .filter((document) => !document.deleted)
    .sort((a, b) => a.version - b.version);
  let summary;
  let covered = 0;
  let data = null;
  let folds = 0;

  const check = () => {
    if (folds > 0) {
      assert.deepEqual(data, summary.data, `the summary of ${covered} entries`);
    }
  };
  for (const document of documents) {
    if (document.key === 'claude/summary') {
      data = document.value;
      continue;
    }
    check();
    const { entries } = document.value;
    assert.ok(entries > covered, `${entries} entries after ${covered}`);
    summary = foldSessionSummary(summary, MAIN, rows.slice(covered, entries), { mtime: 0 });
    covered = entries;
    folds++;
  }
  check();
  assert.equal(covered, rows.length);
  return folds;
}

async function checkSummary(adapter, rows) {
  const [listed] = await adapter.listSessionSummaries(PROJECT);
  const [{ mtime }] = await adapter.listSessions(PROJECT);
  assert.deepEqual(listed, foldSessionSummary(undefined, MAIN, rows, { mtime }));
}

test('appends of one object that are not awaited keep their order', () =>
  withStore(async (adapter, store) => {
    const appends = [];
    for (let n = 0; n < 500; n++) {
      appends.push(adapter.append(MAIN, [row('tag', { n, tag: `${n}` })]));
      if (n % 50 === 0) {
        await sleep(1);
      }
    }
    await Promise.all(appends);
    const rows = await adapter.load(MAIN);
    assert.deepEqual(rows.map((entry) => entry.n), appends.map((_, n) => n));
    await checkSummary(adapter, rows);
    assert.ok(checkHistory(store.session(MAIN.sessionId), rows) < 500);
  }));

test('an append that comes in any microtask after another one is settled', () =>
  withStore(async (adapter, store) => {
    const other = await store.create({ id: 'other' });
    let expected = 0;
    for (let ticks = 0; ticks < 24; ticks++) {
      for (let i = 0; i < 10; i++) {
        const first = adapter.append(MAIN, [row('tag', { n: ticks })]);
        const written = other.append({ payload: i }, { durability: 'written' });
        for (let j = 0; j < i; j++) {
          await null;
        }
        await written;
        for (let j = 0; j < ticks; j++) {
          await null;
        }
        const second = adapter.append(MAIN, [row('tag', { n: ticks })]);
        const isSettled = await Promise.race([second.then(() => true),
          sleep(10_000, false, { ref: false })]);
        assert.ok(isSettled, `after ${ticks} microtasks`);
        await first;
        expected += 2;
      }
    }
    assert.equal((await adapter.load(MAIN)).length, expected);
  }, { durability: 'written' }));

test('a refused append does not affect those that wait with it', async (t) => {
  const { commit } = Session.prototype;
  t.after(() => { Session.prototype.commit = commit; });
  await withStore(async (adapter, store) => {
    await adapter.append(MAIN, [message(1)]);
    Session.prototype.commit = function refuse(batch, options) {
      return batch.entries.some((entry) => entry.type === 'refused')
        ? Promise.reject(new WalError('refused', { code: 'WAL_ETOOBIG' }))
        : commit.call(this, batch, options);
    };
    const results = await Promise.allSettled([[message(2)], [message(3), row('refused')],
      [message(4)]].map((rows) => adapter.append(MAIN, rows)));
    assert.deepEqual(results.map(({ reason }) => reason?.code),
      [undefined, 'WAL_ETOOBIG', undefined]);
    const rows = await adapter.load(MAIN);
    assert.deepEqual(rows, [1, 2, 4].map((n) => message(n)));
    await checkSummary(adapter, rows);
    checkHistory(store.session(MAIN.sessionId), rows);
  });
});

test('a batch whose outcome is unknown is sent again, once written', async (t) => {
  const { commit } = Session.prototype;
  t.after(() => { Session.prototype.commit = commit; });
  for (const [failures, isWritten] of [[1, true], [2, false], [3, true]]) {
    await withStore(async (adapter, store) => {
      await adapter.append(MAIN, [message(1)]);
      let left = failures;
      Session.prototype.commit = async function fail(batch, options) {
        if (left-- > 0) {
          if (isWritten) {
            await commit.call(this, batch, options);
          }
          throw new WalError('unknown', { code: 'WAL_EPOISONED' });
        }
        return commit.call(this, batch, options);
      };
      const append = adapter.append(MAIN, [message(2), row('mode')]);
      if (failures === 3) {
        await assert.rejects(append, { code: 'WAL_EPOISONED' });
      } else {
        await append;
      }
      Session.prototype.commit = commit;
      assert.deepEqual(await adapter.load(MAIN), [message(1), message(2), row('mode')]);
      await checkSummary(adapter, await adapter.load(MAIN));
      checkHistory(store.session(MAIN.sessionId), await adapter.load(MAIN));
    });
  }
});

test('delete and fork come after the appends that were called before', () =>
  withStore(async (adapter) => {
    await Promise.all([adapter.append(MAIN, [message(1)]),
      adapter.append({ ...MAIN, subpath: 'subagents/agent-1' }, [message(1)]),
      adapter.delete(MAIN)]);
    assert.equal(await adapter.load(MAIN), null);
    assert.deepEqual(await adapter.listSubkeys(MAIN), []);
    await Promise.all([adapter.append({ ...MAIN, subpath: 'subagents/agent-1' }, [message(1)]),
      adapter.delete(MAIN)]);
    assert.deepEqual(await adapter.listSubkeys(MAIN), []);
    const append = adapter.append(MAIN, [message(1)]);
    const { sessionId } = await adapter.fork(MAIN);
    assert.equal((await adapter.load({ ...MAIN, sessionId })).length, 1);
    await append;
  }));

test('close completes every append', () => withStore(async (adapter, store, folder) => {
  const place = path.join(folder, 'closed');
  const closing = new AgentwalSessionStore(place);
  let done = 0;
  for (let n = 0; n < 100; n++) {
    const key = { ...MAIN, sessionId: `session ${n % 7}` };
    closing.append(key, [row('n', { n })]).then(() => { done++; });
    if (n === 50) {
      await sleep(5);
    }
  }
  await closing.close();
  assert.equal(done, 100);
  const reader = new AgentwalSessionStore(place);
  assert.equal((await reader.listSessions(PROJECT)).length, 7);
  await reader.close();
}));

test('a summary is not read from between two batches', async () => {
  const documents = {
    1: { 'claude/fold': { version: 1, value: { entries: 1 }, modified: 1 },
      'claude/summary': { value: { of: 1 } } },
    2: { 'claude/fold': { version: 3, value: { entries: 2 }, modified: 3 },
      'claude/summary': { value: { of: 2 } } },
  };
  // Another process commits before the read with this number.
  for (let at = 0; at <= 4; at++) {
    let reads = 0;
    const now = () => (reads++ < at ? 1 : 2);
    const state = readSummary({
      documents: { get: (key) => documents[now()][key] },
      info: () => ({ entries: now(), updated: 0 }),
    });
    assert.equal(state.data?.of, state.info.entries, `before read ${at}`);
    assert.equal(state.version, 2 * state.info.entries - 1);
  }
});

test('objects and handles of one process race for a session', () =>
  withStore(async (adapter, store) => {
    const second = await Store.open(store.path);
    const adapters = [adapter, new AgentwalSessionStore(store), new AgentwalSessionStore(second),
      new AgentwalSessionStore(second)];
    await Promise.all(adapters.map(async (each, writer) => {
      for (let n = 0; n < 100; n++) {
        await each.append(MAIN, [row('tag', { writer, n, tag: `${writer} ${n}` })]);
      }
    }));
    const rows = await adapter.load(MAIN);
    assert.equal(rows.length, 400);
    for (let writer = 0; writer < adapters.length; writer++) {
      assert.deepEqual(rows.filter((entry) => entry.writer === writer).map((entry) => entry.n),
        Array.from({ length: 100 }, (_, n) => n));
    }
    await checkSummary(adapter, rows);
    checkHistory(store.session(MAIN.sessionId), rows);
    await second.close();
  }));

test('the same rows from two objects are there once', () => withStore(async (adapter, store) => {
  const second = await Store.open(store.path);
  const other = new AgentwalSessionStore(second);
  const rows = Array.from({ length: 50 }, (_, i) => message(i + 1));
  for (const entry of rows) {
    await Promise.all([adapter.append(MAIN, [entry]), other.append(MAIN, [entry])]);
  }
  assert.deepEqual(await adapter.load(MAIN), rows);
  assert.equal(adapter.stats.appended + other.stats.appended, 50);
  assert.equal(adapter.stats.duplicates + other.stats.duplicates, 50);
  await checkSummary(adapter, rows);
  await second.close();
}));

class Writer {
  acknowledged = 0;
  isKilled = false;

  constructor(store, name) {
    this.name = `${name}`;
    this.errors = '';
    this.child = spawn(process.execPath,
      [fileURLToPath(new URL('../child/claude.mjs', import.meta.url)), store, this.name],
      { stdio: ['ignore', 'pipe', 'pipe'] });
    this.began = new Promise((resolve) => { this.begin = resolve; });
    let text = '';
    this.child.stdout.setEncoding('utf8').on('data', (data) => {
      const lines = (text + data).split('\n');
      text = lines.pop();
      this.acknowledged = Number(lines.at(-1) ?? this.acknowledged);
      this.begin();
    });
    this.child.stderr.setEncoding('utf8').on('data', (data) => { this.errors += data; });
    this.ended = new Promise((resolve) => { this.child.on('close', resolve); })
      .then(() => this.begin());
  }

  async kill() {
    this.isKilled = true;
    this.child.kill('SIGKILL');
    await this.ended;
  }
}

test(`${WRITERS} processes race, one is killed each second, for ${SECONDS} s`, () =>
  withStore(async (adapter, store, folder) => {
    const storePath = path.join(folder, 'store');
    const writers = [];
    const add = () => {
      writers.push(new Writer(storePath, writers.length + 1));
    };
    for (let i = 0; i < WRITERS; i++) {
      add();
    }
    await Promise.all(writers.map((writer) => writer.began));
    for (let second = 0; second < SECONDS; second++) {
      await sleep(1000);
      const running = writers.filter((writer) => !writer.isKilled);
      // Of those that append, the oldest.
      await Promise.race(running.map((writer) => writer.began));
      await running.find((writer) => writer.acknowledged > 0).kill();
      add();
      // A reader meets no summary that its rows contradict.
      for (const { mtime, data } of await adapter.listSessionSummaries(PROJECT)) {
        assert.ok(mtime > 0 && /^\d+-\d+$/.test(data.tag));
      }
    }
    await Promise.all(writers.map((writer) => writer.kill()));
    assert.equal(writers.map((writer) => writer.errors).join(''), '');

    const rows = await adapter.load(MAIN);
    for (const { name, acknowledged } of writers) {
      const own = rows.filter((entry) => entry.writer === name);
      assert.ok(own.length >= 2 * acknowledged, `writer ${name}: ${own.length} rows`);
      assert.ok(own.length <= 2 * (acknowledged + 1), `writer ${name}: ${own.length} rows`);
      // Both rows of an append, in the order of the calls.
      assert.deepEqual(own.map((entry) => [entry.type, entry.n]),
        own.map((_, i) => [i % 2 === 0 ? 'user' : 'tag', Math.floor(i / 2) + 1]));
    }
    const total = writers.reduce((sum, writer) => sum + writer.acknowledged, 0);
    assert.ok(total >= SECONDS, `${total} appends`);
    console.log(`# ${total} appends of ${writers.length} processes in ${SECONDS} s`);
    checkHistory(store.session(MAIN.sessionId), rows);
    await adapter.append(MAIN, [row('tag', { tag: 'last' })]);
    await checkSummary(adapter, await adapter.load(MAIN));
  }));
