// Checkpoints of files, differences, and rewinding.

import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import test from 'node:test';

import { NotFoundError, Store, WalError } from '../index.mjs';
import { memoryStore, openStore, rejection, temporaryFolder, thrown } from './lib/store.mjs';

// A session whose directory is a temporary folder with files.
async function makeFolder(t, store, files = {}) {
  const root = temporaryFolder(t);
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    writeFileSync(path.join(root, name), content);
  }
  return { root, session: await store.create({ cwd: root }) };
}

test('a checkpoint records files, links and absence', async (t) => {
  const store = memoryStore(t);
  const { root, session } = await makeFolder(t, store, { 'a.txt': 'one\n', 'sub/b': 'x' });
  chmodSync(path.join(root, 'sub/b'), 0o755);
  symlinkSync('a.txt', path.join(root, 'link'));
  await session.append({ id: 'e', payload: 1 });
  const before = Date.now();
  const info = await session.checkpoints.create(['a.txt', 'sub/b', 'link', 'gone', 'a.txt'], {
    id: 'c',
  });
  assert.equal(info.id, 'c');
  assert.equal(info.root, root);
  assert.equal(info.files, 4);
  assert.equal(info.bytes, 4 + 1 + 5);
  assert.equal(info.newBlobs, 3);
  assert.ok(info.newBytes > 0 && info.version > 0);
  assert.ok(info.created >= before - 1 && info.created <= Date.now() + 1);
  assert.equal(info.entryId, 'e');

  const files = session.checkpoints.files('c');
  assert.deepEqual(
    files.map(({ path: name, kind, mode, size }) => [name, kind, mode, size]),
    [
      ['a.txt', 'file', lstatSync(path.join(root, 'a.txt')).mode & 0o7777, 4],
      ['gone', 'absent', 0, 0],
      ['link', 'symlink', files[2].mode, 5],
      ['sub/b', 'file', 0o755, 1],
    ],
  );
  assert.ok(Math.abs(files[0].mtime - lstatSync(path.join(root, 'a.txt')).mtimeMs) < 0.01);
  assert.equal(files[1].digest, null);
  assert.equal((await store.blobs.get(files[0].digest)).toString(), 'one\n');
  assert.equal((await store.blobs.get(files[2].digest)).toString(), 'a.txt');

  assert.deepEqual(session.checkpoints.get('c'), info);
  assert.deepEqual(
    session.checkpoints.list().map(({ id }) => id),
    ['c'],
  );
});

test('options: id, root, time, entry', async (t) => {
  const store = memoryStore(t);
  const { root, session } = await makeFolder(t, store, { 'sub/a': '1' });
  await session.append([
    { id: 'e1', payload: 1 },
    { id: 'e2', payload: 2 },
  ]);
  const when = new Date('2024-02-03T04:05:06.789Z');
  const one = await session.checkpoints.create('a', {
    root: pathToFileURL(path.join(root, 'sub')),
    created: when,
    entryId: 'e1',
    threads: 1,
  });
  assert.match(one.id, /^[0-9a-f-]{36}$/);
  assert.equal(one.root, path.join(root, 'sub'));
  assert.equal(one.created, when.getTime());
  assert.equal(one.entryId, 'e1');
  const two = await session.checkpoints.create([], { entryId: null, created: 5 });
  assert.equal(two.entryId, null);
  assert.equal(two.created, 5);
  assert.equal(two.files, 0);
  const three = await session.checkpoints.create(path.join(root, 'sub/a'));
  assert.equal(three.entryId, 'e2');
  assert.deepEqual(
    session.checkpoints.files(three.id).map((file) => file.path),
    ['sub/a'],
  );
  assert.deepEqual(
    session.checkpoints.list().map(({ id }) => id),
    [one.id, two.id, three.id],
  );
});

test('a checkpoint is linked with the entry that was appended before it', async (t) => {
  const store = memoryStore(t);
  const { session } = await makeFolder(t, store, { a: '1' });
  session.append({ id: 'e1', payload: 1 });
  const checkpoint = session.checkpoints.create('a', { id: 'c' });
  session.append({ id: 'e2', payload: 2 });
  assert.equal((await checkpoint).entryId, 'e1');
  session.append({ id: 'e3', payload: 3 });
  const rewound = session.rewind('c', { head: true });
  session.append({ id: 'e4', payload: 4 });
  assert.equal((await rewound).previousHead, 'e3');
  await session.append({ id: 'e5', payload: 5 });
  assert.deepEqual(
    session
      .entries()
      .toArray()
      .map((entry) => entry.id),
    ['e1', 'e4', 'e5'],
  );
});

test('paths that cannot be recorded do not keep the others from it', async (t) => {
  const store = memoryStore(t);
  const { root, session } = await makeFolder(t, store, { a: '1' });
  mkdirSync(path.join(root, 'folder'));
  const info = await session.checkpoints.create(['folder', 'a', '../x'], { id: 'c' });
  assert.equal(info.files, 1);
  assert.deepEqual(info.unrecorded, [
    { path: '../x', code: 'WAL_EOUTSIDE', reason: 'the path contains ".."' },
    { path: 'folder', code: 'WAL_ENOTFILE', reason: 'is a directory' },
  ]);
  assert.deepEqual(session.checkpoints.get('c').unrecorded, []);
  const options = { id: 'none', allOrNone: true, entryId: null };
  const failed = await rejection(session.checkpoints.create(['a', 'folder'], options));
  assert.equal(failed.code, 'WAL_ENOTFILE');
  assert.equal(session.checkpoints.get('none'), null);
});

test('errors of making a checkpoint', async (t) => {
  const store = memoryStore(t);
  const { root, session } = await makeFolder(t, store, { a: '1' });
  mkdirSync(path.join(root, 'folder'));
  const none = await store.create();
  const create = (paths, options, of = session) => rejection(of.checkpoints.create(paths, options));
  assert.equal((await create('folder')).code, 'WAL_ENOTFILE');
  const outside = await create('../x');
  assert.equal(outside.code, 'WAL_EOUTSIDE');
  assert.match(outside.file, /x$/);
  assert.equal((await create('a', { entryId: 'none' })).code, 'WAL_ENOTFOUND');
  assert.equal((await create('a', undefined, none)).code, 'WAL_EINVAL');
  await session.checkpoints.create('a', { id: 'c' });
  const exists = await create('a', { id: 'c', root: path.join(root, 'folder') });
  assert.equal(exists.code, 'WAL_EEXISTS');
  for (const wrong of [
    undefined,
    null,
    5,
    {},
    '',
    'a\0b',
    '\ud800',
    [undefined],
    [['a']],
    [5],
    'x'.repeat(5000),
  ]) {
    const error = await create(wrong);
    assert.ok(error instanceof WalError, String(wrong).slice(0, 9));
    assert.ok(['WAL_EINVAL', 'WAL_ETOOBIG'].includes(error.code), error.code);
  }
  for (const wrong of [
    { id: 5 },
    { id: 'x'.repeat(256) },
    { root: 'relative' },
    { root: '/a\0b' },
    { root: 5 },
    { created: 'soon' },
    { entryId: 5 },
    { threads: -1 },
    { threads: 1.5 },
  ]) {
    const error = await create('a', wrong);
    assert.ok(
      ['WAL_EINVAL', 'WAL_ETOOBIG'].includes(error.code),
      `${JSON.stringify(wrong)}: ${error}`,
    );
  }
  assert.deepEqual(
    session.checkpoints.list().map(({ id }) => id),
    ['c'],
  );
});

test('files are imported as they are described', async (t) => {
  const store = memoryStore(t);
  const session = await store.create({ cwd: '/work' });
  const digest = await store.blobs.put('content');
  const link = await store.blobs.put('target');
  const info = await session.checkpoints.import(
    [
      { path: 'a', kind: 'file', digest, mtime: 1700000000123.5, mode: 0o600 },
      { path: 'b', kind: 'symlink', digest: link },
      { path: 'c', kind: 'absent' },
      { path: 'd', kind: 'file', digest: digest.toUpperCase(), mtime: -5 },
    ],
    { id: 'c' },
  );
  assert.equal(info.files, 4);
  const files = session.checkpoints.files('c');
  assert.deepEqual(
    files.map((file) => [file.path, file.kind, file.digest, file.size]),
    [
      ['a', 'file', digest, 7],
      ['b', 'symlink', link, 6],
      ['c', 'absent', null, 0],
      ['d', 'file', digest, 7],
    ],
  );
  assert.equal(files[0].mode, 0o600);
  assert.ok(Math.abs(files[0].mtime - 1700000000123.5) < 0.001);
  assert.equal(files[3].mode, 0o644);
  assert.equal(files[3].mtime, -5);

  const fail = (list) => rejection(session.checkpoints.import(list, { id: 'x' }));
  const absent = await fail([{ path: 'a', kind: 'file', digest: 'f'.repeat(64) }]);
  assert.ok(absent instanceof NotFoundError);
  assert.match(absent.file, /a$/);
  assert.equal((await fail([{ path: '/etc/a', kind: 'file', digest }])).code, 'WAL_EOUTSIDE');
  for (const wrong of [
    undefined,
    {},
    [null],
    [5],
    [{ path: 'a' }],
    [{ path: 'a', kind: 'folder' }],
    [{ path: 'a', kind: 'file', digest: 'x' }],
    [{ kind: 'file', digest }],
    [{ path: 5, kind: 'absent' }],
    [{ path: 'a\0', kind: 'absent' }],
    [{ path: 'a', kind: 'file', digest, mode: -1 }],
    [{ path: 'a', kind: 'file', digest, mtime: 'x' }],
    [{ path: 'a', kind: 'file', digest, mtime: NaN }],
    [{ path: 'a', kind: 'file', digest, mtime: 1e300 }],
    [
      { path: 'a', kind: 'file', digest },
      { path: 'a', kind: 'absent' },
    ],
  ]) {
    assert.equal((await fail(wrong)).code, 'WAL_EINVAL', JSON.stringify(wrong));
  }
  assert.equal(session.checkpoints.get('x'), null);
});

test('reading what is not there', async (t) => {
  const store = memoryStore(t);
  const session = await store.create({ cwd: '/work' });
  assert.equal(session.checkpoints.get('c'), null);
  assert.deepEqual(session.checkpoints.list(), []);
  assert.ok(thrown(() => session.checkpoints.files('c')) instanceof NotFoundError);
  assert.ok((await rejection(session.checkpoints.delete('c'))) instanceof NotFoundError);
  assert.ok((await rejection(session.checkpoints.diff('c'))) instanceof NotFoundError);
  for (const wrong of [5, undefined, '', 'x'.repeat(300)]) {
    assert.ok(
      ['WAL_EINVAL', 'WAL_ETOOBIG'].includes(thrown(() => session.checkpoints.files(wrong)).code),
    );
  }
});

test('a checkpoint is deleted', async (t) => {
  const store = memoryStore(t);
  const { session } = await makeFolder(t, store, { a: '1' });
  await session.checkpoints.create('a', { id: 'c' });
  await session.checkpoints.delete('c');
  assert.equal(session.checkpoints.get('c'), null);
});

test('checkpoints are switched off and on', async (t) => {
  const store = memoryStore(t);
  const { session } = await makeFolder(t, store, { a: '1' });
  session.checkpoints.setEnabled(false);
  assert.equal(await session.checkpoints.create('a', { id: 'c' }), null);
  assert.equal(await session.checkpoints.import([], { id: 'c' }), null);
  const refused = await session.rewind('c');
  assert.equal(refused.canRewind, false);
  await session.checkpoints.setEnabled(true);
  assert.equal((await session.checkpoints.create('a', { id: 'c' })).id, 'c');
  assert.equal((await rejection(session.checkpoints.setEnabled('yes'))).code, 'WAL_EINVAL');
});

test('differences with the disk, and between checkpoints', async (t) => {
  const store = memoryStore(t);
  const { root, session } = await makeFolder(t, store, {
    a: '1\n2\n3\n',
    b: Buffer.from([0, 1, 2]),
    c: 'same',
  });
  await session.checkpoints.create(['a', 'b', 'c', 'new'], { id: 'one' });
  writeFileSync(path.join(root, 'a'), '1\nzwei\n3\n4\n');
  writeFileSync(path.join(root, 'b'), Buffer.from([0, 9]));
  writeFileSync(path.join(root, 'new'), 'n\n');
  chmodSync(path.join(root, 'c'), 0o700);
  const disk = await session.checkpoints.diff('one');
  assert.deepEqual([disk.files, disk.insertions, disk.deletions, disk.binary], [4, 3, 1, 1]);
  assert.deepEqual(
    disk.changes.map((change) => change.path),
    ['a', 'b', 'c', 'new'],
  );
  const [a, b, c, added] = disk.changes;
  assert.deepEqual(
    [a.insertions, a.deletions, a.binary, a.contentChanged, a.modeChanged],
    [2, 1, false, true, false],
  );
  assert.deepEqual([b.binary, b.contentChanged], [true, true]);
  assert.deepEqual([c.contentChanged, c.modeChanged, c.modeAfter], [false, true, 0o700]);
  assert.deepEqual(
    [added.kindBefore, added.kindAfter, added.changedElsewhere],
    ['absent', 'file', false],
  );
  await session.checkpoints.create(['a', 'b', 'c', 'new'], { id: 'two' });
  assert.deepEqual(await session.checkpoints.diff('one', 'two'), disk);
  assert.deepEqual(await session.diff(), disk);
  const back = await session.checkpoints.diff('two', 'one');
  assert.deepEqual([back.insertions, back.deletions], [disk.deletions, disk.insertions]);
});

test('rewind restores files, links and absence', async (t) => {
  const store = memoryStore(t);
  const { root, session } = await makeFolder(t, store, { a: '1\n', b: 'gone soon' });
  symlinkSync('a', path.join(root, 'link'));
  await session.append({ id: 'e1', payload: 1 });
  await session.checkpoints.create(['a', 'b', 'link', 'new'], { id: 'c' });
  await session.append({ id: 'e2', payload: 2 });
  writeFileSync(path.join(root, 'a'), '1\n2\n');
  writeFileSync(path.join(root, 'new'), 'x');
  rmSync(path.join(root, 'b'));
  rmSync(path.join(root, 'link'));

  const dry = await session.rewind('c', { dryRun: true, head: true });
  assert.equal(dry.canRewind, true);
  assert.equal(dry.filesChanged, 4);
  assert.equal(dry.undo, null);
  assert.equal(dry.previousHead, 'e2');
  assert.equal(dry.newHead, 'e1');
  assert.equal(readFileSync(path.join(root, 'a'), 'utf8'), '1\n2\n');

  const done = await session.rewind('c', { head: true });
  assert.equal(done.canRewind, true);
  assert.equal(done.code, null);
  assert.equal(done.error, '');
  assert.deepEqual(
    done.changes.map((change) => change.path),
    ['a', 'b', 'link', 'new'],
  );
  assert.equal(readFileSync(path.join(root, 'a'), 'utf8'), '1\n');
  assert.equal(readFileSync(path.join(root, 'b'), 'utf8'), 'gone soon');
  assert.equal(readlinkSync(path.join(root, 'link')), 'a');
  assert.equal(existsSync(path.join(root, 'new')), false);
  assert.equal(session.head(), 'e1');

  const undone = await session.rewind(done.undo);
  assert.equal(undone.filesChanged, 4);
  assert.equal(undone.previousHead, null);
  assert.equal(readFileSync(path.join(root, 'new'), 'utf8'), 'x');
});

test('a rewind that is refused changes nothing', async (t) => {
  const store = memoryStore(t);
  const { root, session } = await makeFolder(t, store, { a: '1\n' });
  const none = await session.rewind('none');
  assert.equal(none.canRewind, false);
  assert.equal(none.code, 'WAL_ENOTFOUND');
  assert.ok(none.error.length > 0);

  await session.checkpoints.create('a', { id: 'before' });
  writeFileSync(path.join(root, 'a'), '2\n');
  await session.checkpoints.create('a', { id: 'mine' });
  writeFileSync(path.join(root, 'a'), '3\n');
  const changed = await session.rewind('before', { expected: 'mine' });
  assert.equal(changed.canRewind, false);
  assert.equal(changed.code, 'WAL_ECHANGED');
  assert.equal(changed.changedElsewhere, 1);
  assert.ok(changed.changes.some((change) => change.changedElsewhere));
  assert.equal(readFileSync(path.join(root, 'a'), 'utf8'), '3\n');
  const forced = await session.rewind('before', { expected: 'mine', force: true });
  assert.equal(forced.canRewind, true);
  assert.equal(readFileSync(path.join(root, 'a'), 'utf8'), '1\n');

  for (const wrong of [{ root: 'relative' }, { root: 5 }, { root: '/a\0b' }, { expected: 5 }]) {
    const outcome = await session.rewind('before', wrong).catch((error) => error);
    assert.ok(outcome.code === 'WAL_EINVAL', JSON.stringify(wrong));
  }
  assert.equal((await rejection(session.rewind(5))).code, 'WAL_EINVAL');
  assert.equal((await rejection(session.rewind(undefined))).code, 'WAL_EINVAL');
});

test('a store that is read only compares, and refuses the rest', async (t) => {
  const store = await openStore(t);
  const { root, session } = await makeFolder(t, store, { a: '1\n' });
  await session.checkpoints.create('a', { id: 'c' });
  writeFileSync(path.join(root, 'a'), '2\n');
  const reader = await Store.open(store.path, { readOnly: true });
  const same = reader.session(session.id);
  assert.equal((await same.checkpoints.diff('c')).files, 1);
  assert.equal((await rejection(same.rewind('c', { dryRun: true }))).code, 'WAL_EREADONLY');
  assert.equal((await rejection(same.rewind('c'))).code, 'WAL_EREADONLY');
  assert.equal((await rejection(same.checkpoints.create('a'))).code, 'WAL_EREADONLY');
  await reader.close();
});

test('a rewind to another root', async (t) => {
  const store = memoryStore(t);
  const { session } = await makeFolder(t, store, { a: '1\n' });
  const other = temporaryFolder(t);
  await session.checkpoints.create('a', { id: 'c' });
  await session.rewind('c', { root: pathToFileURL(other) });
  assert.equal(readFileSync(path.join(other, 'a'), 'utf8'), '1\n');
});

test('close completes checkpoints and rewinds; later calls fail', async (t) => {
  const store = await openStore(t);
  const { root, session } = await makeFolder(t, store, { a: '1\n' });
  const { checkpoints } = session;
  const calls = [
    checkpoints.create('a', { id: 'c' }),
    checkpoints.diff('c'),
    session.diff(),
    session.rewind('c'),
  ];
  await store.close();
  const [info, , , rewound] = await Promise.all(calls);
  assert.equal(info.id, 'c');
  assert.equal(rewound.canRewind, true);
  assert.equal(readFileSync(path.join(root, 'a'), 'utf8'), '1\n');
  for (const call of [
    checkpoints.create('a'),
    checkpoints.import([]),
    checkpoints.delete('c'),
    checkpoints.diff('c'),
    checkpoints.setEnabled(true),
    session.rewind('c'),
    session.diff(),
  ]) {
    assert.equal((await rejection(call)).code, 'WAL_ECLOSED');
  }
  for (const call of [
    () => checkpoints.get('c'),
    () => checkpoints.files('c'),
    () => checkpoints.list(),
  ]) {
    assert.equal(thrown(call).code, 'WAL_ECLOSED');
  }
});

test('a session that is closed refuses checkpoints', async (t) => {
  const store = memoryStore(t);
  const { session } = await makeFolder(t, store, { a: '1\n' });
  const { checkpoints } = session;
  const before = checkpoints.create('a', { id: 'c' });
  session.close();
  assert.equal((await before).id, 'c');
  assert.equal((await rejection(checkpoints.create('a'))).code, 'WAL_ECLOSED');
  assert.equal(thrown(() => checkpoints.list()).code, 'WAL_ECLOSED');
});
