// Imports of the session files of other programs.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { setTimeout as delay } from 'node:timers/promises';
import test from 'node:test';

import {
  importClients,
  importDialects,
  NotFoundError,
  scanImport,
  Store,
  WalError,
} from '../index.mjs';
import {
  memoryStore,
  openStore,
  rejection,
  storePath,
  temporaryFolder,
  thrown,
  wrongPaths,
} from './lib/store.mjs';

// Lines as Claude Code writes them.
function claudeLines(id, count, first = 0) {
  const uuid = (i) => `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`;
  let text = '';
  for (let i = first; i < first + count; i++) {
    text += `${JSON.stringify({
      parentUuid: i === 0 ? null : uuid(i - 1),
      isSidechain: false,
      userType: 'external',
      cwd: '/work',
      sessionId: id,
      version: '2.0.0',
      type: 'user',
      message: { role: 'user', content: `message ${i}` },
      uuid: uuid(i),
      timestamp: '2025-01-02T03:04:05.678Z',
    })}\n`;
  }
  return text;
}

const ID = '11111111-2222-4333-8444-555555555555';

// A folder as Claude Code keeps it, with one session.
function claudeFolder(t, count = 3) {
  const folder = path.join(temporaryFolder(t), '.claude');
  const project = path.join(folder, 'projects', '-work');
  mkdirSync(project, { recursive: true });
  const file = path.join(project, `${ID}.jsonl`);
  writeFileSync(file, claudeLines(ID, count));
  return { folder, file, project };
}

test('dialects and clients are known', () => {
  assert.ok(importDialects.includes('claude') && importDialects.includes('lines'));
  assert.throws(() => {
    importDialects.push('x');
  }, TypeError);
  const clients = importClients();
  assert.ok(clients.length >= 3);
  for (const { name, dialect, folder } of clients) {
    // A client that is known and not read has none.
    assert.ok(name.length > 0 && (dialect === '' || importDialects.includes(dialect)));
    assert.ok(folder === null || path.isAbsolute(folder));
  }
});

test('without a home directory the folders of clients are unknown', () => {
  // In another process: Bun has its own copy of the environment.
  const { HOME, ...env } = process.env;
  const module = JSON.stringify(new URL('../index.mjs', import.meta.url));
  const { stdout } = spawnSync(process.execPath, ['-e', `import(${module}).then((agentwal) =>
    console.log(JSON.stringify(agentwal.importClients())))`], { env, encoding: 'utf8' });
  const clients = JSON.parse(stdout);
  assert.ok(clients.some(({ name, folder }) => name === 'Claude Code' && folder === null));
});

test('a folder is imported; a repeated import adds nothing', async (t) => {
  const store = memoryStore(t);
  const { folder, file } = claudeFolder(t);
  writeFileSync(path.join(folder, '.credentials.json'), '{}');
  writeFileSync(path.join(folder, 'settings.json'), '{}');
  const first = await store.import(folder);
  assert.deepEqual(
    [first.sources, first.sessions, first.appended, first.duplicates, first.failed],
    [1, 1, 3, 0, 0],
  );
  assert.ok(first.bytes > 0);
  assert.equal(first.leftOut.credentials, 1);
  assert.equal(first.reports.length, 1);
  const [report] = first.reports;
  assert.equal(report.kind, 'file');
  assert.equal(report.path, file);
  assert.equal(report.dialect, 'claude');
  assert.equal(report.sessionId, ID);
  assert.deepEqual([report.lines, report.appended, report.duplicates], [3, 3, 0]);
  assert.deepEqual([report.changedView, report.otherId, report.viewSession], [false, false, '']);
  assert.deepEqual(report.issues, []);
  assert.equal(report.error, null);
  assert.equal(store.session(ID).entries().toArray()[1].payload.message.content, 'message 1');

  appendFileSync(file, claudeLines(ID, 2, 3));
  const second = await store.import([pathToFileURL(folder)]);
  assert.deepEqual([second.appended, second.duplicates], [2, 3]);
  const third = await store.import(folder, {});
  assert.deepEqual([third.appended, third.duplicates], [0, 5]);
});

test('scanImport counts and imports nothing', async (t) => {
  const { folder } = claudeFolder(t);
  const result = await scanImport(folder);
  assert.deepEqual([result.sources, result.sessions, result.appended, result.failed], [1, 1, 0, 0]);
  assert.deepEqual(result.reports, []);
  const none = await scanImport(path.join(folder, 'none'));
  assert.equal(none.failed, 1);
  assert.ok(none.reports[0].error instanceof NotFoundError);
});

test('a scan shows its progress, and is stopped', async (t) => {
  const { folder, file } = claudeFolder(t);
  const seen = [];
  const { bytes } = await scanImport(folder, { onProgress: (...call) => seen.push(call) });
  assert.deepEqual(seen, [[bytes, bytes]]);
  const thrownHere = new Error('mine');
  const stopped = scanImport(file, {
    onProgress: () => {
      throw thrownHere;
    },
  });
  assert.equal(await rejection(stopped), thrownHere);
});

test('options: dialect, exclude, select', async (t) => {
  const store = memoryStore(t);
  const { folder } = claudeFolder(t);
  const other = path.join(folder, 'notes.txt');
  writeFileSync(other, 'one\ntwo\n');
  const excluded = await store.import(folder, { exclude: path.join(folder, 'projects') });
  assert.equal(excluded.sessions, 0);
  assert.equal((await scanImport(folder, { select: 'all' })).sources, 2);
  assert.equal((await scanImport(folder, { select: 'clients' })).sources, 1);
  const all = await store.import(folder, { select: 'all' });
  assert.equal(all.sessions, 2);
  assert.deepEqual(all.reports.map((report) => report.dialect).sort(), ['claude', 'lines']);
  const wrong = await store.import(other, { dialect: 'claude' });
  assert.ok(wrong.failed + wrong.reports.length > 0);
  assert.ok((await rejection(store.import(folder, { dialect: 'none' }))) instanceof NotFoundError);
});

test('failures and damage are reported, and do not end the import', async (t) => {
  const store = memoryStore(t);
  const { folder, project, file } = claudeFolder(t);
  appendFileSync(file, 'no JSON\n{"a":\n');
  const missing = path.join(folder, 'none.jsonl');
  const result = await store.import([missing, folder]);
  assert.equal(result.sessions, 1);
  assert.equal(result.failed, 1);
  const failed = result.reports.find((report) => report.error !== null);
  assert.ok(failed.error instanceof NotFoundError);
  assert.equal(failed.path, missing);
  assert.equal(failed.kind, 'none');
  const [first, second] = result.reports.find((report) => report.error === null).issues;
  assert.equal(first.path, file);
  assert.ok(first.reason.length > 0);
  assert.equal(first.line, 4);
  assert.equal(second.line, 5);
  assert.ok(second.offset > first.offset);
  if (process.getuid() !== 0) {
    chmodSync(project, 0);
    const denied = await store.import(folder);
    assert.equal(denied.failed, 1);
    chmodSync(project, 0o755);
  }
});

test('at most 1,000 issues of a source are kept', async (t) => {
  const store = memoryStore(t);
  const { folder, file } = claudeFolder(t, 0);
  let text = '';
  for (let i = 0; i < 1500; i++) {
    text += `no JSON ${i}\n${claudeLines(ID, 1, i)}`;
  }
  writeFileSync(file, text);
  const { reports } = await store.import(folder);
  assert.equal(reports[0].lines, 3000);
  assert.equal(reports[0].issues.length, 1000);
  assert.equal(reports[0].issues[999].line, 1999);
});

test('a view of the store is continued', async (t) => {
  const store = await openStore(t);
  const session = await store.create({ id: 's', cwd: '/work' });
  await session.append({ payload: { role: 'user', content: 'x' } });
  const root = temporaryFolder(t);
  const view = session.view({ dialect: 'claude', root });
  await view.flush();
  const result = await store.import(view.path());
  assert.equal(result.reports[0].kind, 'view');
  assert.equal(result.reports[0].sessionId, 's');
});

test('hostile paths and options', async (t) => {
  const store = memoryStore(t);
  for (const wrong of [...wrongPaths, [undefined], [['a']]]) {
    for (const call of [store.import(wrong), scanImport(wrong)]) {
      const error = await rejection(call);
      assert.ok(error instanceof WalError);
      assert.equal(error.code, 'WAL_EINVAL', String(wrong));
    }
    const follow = async () => {
      await store.followImport(wrong).next();
    };
    assert.equal((await rejection(follow())).code, 'WAL_EINVAL');
  }
  const long = await store.import(`/${'x'.repeat(5000)}`);
  assert.equal(long.failed, 1);
  assert.ok(long.reports[0].error instanceof WalError);
  const folder = temporaryFolder(t);
  for (const wrong of [
    { select: 'x' },
    { select: 'toString' },
    { select: 5 },
    { dialect: 5 },
    { exclude: 5 },
    { exclude: 'a\0' },
    { onProgress: 5 },
    { signal: 5 },
    { signal: {} },
    { signal: null },
  ]) {
    assert.equal(
      (await rejection(store.import(folder, wrong))).code,
      'WAL_EINVAL',
      JSON.stringify(wrong),
    );
  }
  assert.equal((await store.import([])).sources, 0);
  symlinkSync(folder, path.join(folder, 'loop'));
  assert.equal((await store.import(folder)).failed, 0);
});

// ----------------------------------------------------------- stopping it ---

test('a signal that was aborted before: nothing is done', async (t) => {
  const store = memoryStore(t);
  const { folder } = claudeFolder(t, 20_000);
  const reason = new Error('mine');
  assert.equal(
    await rejection(store.import(folder, { signal: AbortSignal.abort(reason) })),
    reason,
  );
  assert.equal(await rejection(scanImport(folder, { signal: AbortSignal.abort(reason) })), reason);
  const controller = new AbortController();
  const started = store.import(folder, { signal: controller.signal });
  controller.abort();
  assert.equal((await rejection(started)).name, 'AbortError');
  assert.ok(store.list().length <= 1);
});

// Waits until a session of the store has entries.
async function waitForEntries(store) {
  for (;;) {
    const [info] = store.list();
    if (info !== undefined && info.entries > 0) {
      return;
    }
    await delay(1);
  }
}

test('an import is stopped in the middle, and continued', async (t) => {
  const store = await openStore(t);
  const count = 100_000;
  const { folder } = claudeFolder(t, count);
  const controller = new AbortController();
  const reason = { any: 'value' };
  const stopped = store.import(folder, { signal: controller.signal });
  await waitForEntries(store);
  controller.abort(reason);
  assert.equal(await rejection(stopped), reason);
  const { entries } = store.session(ID).info();
  assert.ok(entries > 0 && entries < count, `${entries} entries`);

  const seen = [];
  const result = await store.import(folder, {
    onProgress: (done, total) => seen.push([done, total]),
  });
  assert.equal(result.appended + result.duplicates, count);
  assert.ok(result.duplicates >= entries);
  assert.equal(store.session(ID).info().entries, count);
  assert.ok(seen.length > 0 && seen.every(([done, total]) => done <= total), JSON.stringify(seen));
});

test('what onProgress throws stops the import and rejects it', async (t) => {
  const store = await openStore(t);
  const { folder } = claudeFolder(t, 100_000);
  const thrownHere = new Error('mine');
  let calls = 0;
  const error = await rejection(
    store.import(folder, {
      onProgress: () => {
        calls++;
        throw thrownHere;
      },
    }),
  );
  assert.equal(error, thrownHere);
  assert.equal(calls, 1);
});

test('close stops an import, and the store is whole', async (t) => {
  const name = storePath(t);
  const store = await Store.open(name);
  const { folder } = claudeFolder(t, 100_000);
  const stopped = store.import(folder);
  const outcome = rejection(stopped);
  await waitForEntries(store);
  await store.close();
  assert.equal((await outcome).code, 'WAL_ECLOSED');
  const again = await Store.open(name);
  const { entries } = again.session(ID).info();
  assert.ok(entries > 0 && entries < 100_000);
  assert.equal(again.session(ID).entries().toArray().length, entries);
  assert.equal((await again.import(folder)).failed, 0);
  assert.equal(again.session(ID).info().entries, 100_000);
  await again.close();
  assert.equal((await rejection(again.import(folder))).code, 'WAL_ECLOSED');
});

test('closeSync stops an import, too', async (t) => {
  const store = await openStore(t);
  const { folder } = claudeFolder(t, 100_000);
  const outcome = rejection(store.import(folder));
  await waitForEntries(store);
  store.closeSync();
  assert.equal((await outcome).code, 'WAL_ECLOSED');
});

// ---------------------------------------------------------- following it ---

test('followImport yields what is found, then what changes', async (t) => {
  const store = await openStore(t);
  const { folder, file, project } = claudeFolder(t);
  const controller = new AbortController();
  const follow = store.followImport(folder, { signal: controller.signal });
  const first = await follow.next();
  assert.equal(first.value.appended, 3);
  const second = follow.next();
  appendFileSync(file, claudeLines(ID, 2, 3));
  assert.equal((await second).value.appended, 2);
  const id = ID.replace('1', '9');
  writeFileSync(path.join(folder, 'x'), claudeLines(id, 1));
  renameSync(path.join(folder, 'x'), path.join(project, `${id}.jsonl`));
  const third = await follow.next();
  assert.equal(third.value.reports[0].sessionId, id);
  const waiting = follow.next();
  await delay(20);
  const reason = new Error('enough');
  controller.abort(reason);
  assert.equal(await rejection(waiting), reason);
  assert.equal((await follow.next()).done, true);
  assert.equal(
    await rejection(store.followImport(folder, { signal: controller.signal }).next()),
    reason,
  );
});

test('followImport waits for the first find, and a break ends it', async (t) => {
  const store = await openStore(t);
  const folder = path.join(temporaryFolder(t), '.claude');
  const project = path.join(folder, 'projects', '-work');
  mkdirSync(project, { recursive: true });
  const file = path.join(temporaryFolder(t), 'x');
  writeFileSync(file, claudeLines(ID, 1));
  setTimeout(() => renameSync(file, path.join(project, `${ID}.jsonl`)), 150);
  let rounds = 0;
  for await (const result of store.followImport(folder)) {
    assert.equal(result.appended, 1);
    rounds++;
    break;
  }
  assert.equal(rounds, 1);
});

test('followImport ends by WAL_ECLOSED when the store is closed', async (t) => {
  const store = await openStore(t);
  const { folder } = claudeFolder(t);
  const waiting = store.followImport(folder);
  const idle = store.followImport(folder);
  const fresh = store.followImport(folder);
  await waiting.next();
  await idle.next();
  const outcome = rejection(waiting.next());
  await delay(20);
  await store.close();
  assert.equal((await outcome).code, 'WAL_ECLOSED');
  assert.equal((await rejection(idle.next())).code, 'WAL_ECLOSED');
  assert.equal((await idle.next()).done, true);
  assert.equal((await rejection(fresh.next())).code, 'WAL_ECLOSED');
  assert.equal(thrown(() => store.followImport(folder)).code, 'WAL_ECLOSED');
});

test('followImport of what two stores import', async (t) => {
  const name = storePath(t);
  const stores = [await Store.open(name), await Store.open(name)];
  const { folder } = claudeFolder(t, 100);
  const follows = stores.map((store) => store.followImport(folder));
  const results = await Promise.all(follows.map((follow) => follow.next()));
  const appended = results.reduce((sum, result) => sum + result.value.appended, 0);
  assert.ok(appended <= 100);
  assert.equal(stores[0].session(ID).info().entries, 100);
  await Promise.all(follows.map((follow) => follow.return()));
  await Promise.all(stores.map((store) => store.close()));
});
