// The declarations compile, and declare what there is.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import test from 'node:test';
import { fileURLToPath } from 'node:url';

import * as agentwal from '../index.mjs';
import { root, sections } from './lib/pages.mjs';
import { memoryStore, openStore, temporaryFolder } from './lib/store.mjs';

const require = createRequire(import.meta.url);
const local = (name) => fileURLToPath(new URL(name, import.meta.url));

function typescript() {
  assert.ok(existsSync(local('../node_modules/typescript')),
    'typescript is missing: run `npm ci` in bindings/node');
  return require('typescript');
}

// Names that the declarations have: of exported values, of members of classes and
// of properties of interfaces.
function readDeclarations() {
  const ts = typescript();
  const [source, records] = ['../index.d.ts', '../records.d.ts'].map((name) =>
    ts.createSourceFile(name, ts.sys.readFile(local(name)), ts.ScriptTarget.ES2022, true));
  const found = { values: new Set(), classes: {}, interfaces: {} };
  const isPrivate = (node) => (node.modifiers ?? []).some(
    (one) => one.kind === ts.SyntaxKind.PrivateKeyword);
  const namesOf = (node) => node.members
    .filter((member) => member.name !== undefined && !isPrivate(member))
    .map((member) => member.name.getText());
  for (const node of [...source.statements, ...records.statements]) {
    if (ts.isClassDeclaration(node)) {
      found.values.add(node.name.text);
      found.classes[node.name.text] = new Set(namesOf(node));
    } else if (ts.isFunctionDeclaration(node)) {
      found.values.add(node.name.text);
    } else if (ts.isVariableStatement(node)) {
      for (const one of node.declarationList.declarations) {
        found.values.add(one.name.getText());
      }
    } else if (ts.isInterfaceDeclaration(node)) {
      found.interfaces[node.name.text] = new Set(namesOf(node));
    }
  }
  return found;
}

const sorted = (names) => [...names].sort();

const SYMBOLS = new Map([[Symbol.iterator, '[Symbol.iterator]'],
  [Symbol.asyncIterator, '[Symbol.asyncIterator]'],
  [Symbol.dispose, '[Symbol.dispose]'], [Symbol.asyncDispose, '[Symbol.asyncDispose]']]);

// Names of the members of a class that callers see.
function membersOf(type, instance) {
  const names = new Set();
  const add = (owner, leftOut) => Reflect.ownKeys(owner)
    .filter((name) => !leftOut.includes(name))
    .forEach((name) => names.add(SYMBOLS.get(name) ?? String(name)));
  add(type, ['length', 'name', 'prototype']);
  add(type.prototype, ['constructor']);
  add(instance, []);
  return names;
}

test('the declarations compile', () => {
  typescript();
  execFileSync(process.execPath, [local('../node_modules/typescript/lib/tsc.js'), '--project',
    local('./tsconfig.json')], { stdio: ['ignore', 'inherit', 'inherit'] });
});

// The pages are JavaScript: without checks for null.
test('what docs/api.md shows has the types that are declared', (t) => {
  const folder = temporaryFolder(t);
  const [, beginning, ...rest] = sections('docs/api.md');
  mkdirSync(`${folder}/node_modules`);
  symlinkSync(root, `${folder}/node_modules/agentwal`);
  symlinkSync(`${root}/node_modules/@types`, `${folder}/node_modules/@types`);
  const files = rest.map(({ title, blocks }) => {
    const file = `${folder}/${title.replaceAll(' ', '-')}.mts`;
    writeFileSync(file, [...beginning.blocks, ...blocks].map(({ text }) => text).join('\n'));
    return file;
  });
  const compiler = local('../node_modules/typescript/lib/tsc.js');
  const options = ['--noEmit', '--strict', '--strictNullChecks', 'false', '--noImplicitAny',
    'false', '--useUnknownInCatchVariables', 'false', '--target', 'es2022', '--module', 'node16',
    '--typeRoots', `${root}/node_modules/@types`, '--types', 'node'];
  execFileSync(process.execPath, [compiler, ...options, ...files],
    { stdio: ['ignore', 'inherit', 'inherit'] });
});

test('each export has a declaration, and each declaration an export', () => {
  const { values } = readDeclarations();
  assert.deepEqual(sorted(Object.keys(agentwal)), sorted(values));
  assert.deepEqual(sorted(Object.keys(require('../lib/index.js'))), sorted(Object.keys(agentwal)),
    'import and require have the same names');
});

for (const name of ['Store', 'Session']) {
  test(`each member of ${name} has a declaration, and each declaration a member`, (t) => {
    const store = memoryStore(t);
    const instance = name === 'Store' ? store : store.createSync();
    const declared = readDeclarations().classes[name];
    if (Symbol.dispose === undefined) {
      declared.delete('[Symbol.dispose]');
      declared.delete('[Symbol.asyncDispose]');
    }
    const there = membersOf(agentwal[name], instance);
    assert.deepEqual(sorted(there), sorted(declared));
  });
}

test('what is returned has the properties that are declared', async (t) => {
  const { interfaces, classes } = readDeclarations();
  const store = memoryStore(t);
  const session = store.createSync();
  const result = await session.append({ id: 'a', payload: 1 });
  await session.documents.put('k', 1);
  const has = (object, declared) => assert.deepEqual(sorted(Object.keys(object)), sorted(declared));
  has(store.info(), interfaces.StoreInfo);
  has(session.info(), interfaces.SessionInfo);
  has(store.list()[0], interfaces.SessionInfo);
  has(result, interfaces.AppendResult);
  has(session.heads()[0], interfaces.Head);
  has(session.documents.get('k'), interfaces.Document);
  const entry = session.entry('a');
  for (const name of interfaces.Entry) {
    assert.notEqual(entry[name], undefined, name);
  }
  for (const name of [...interfaces.Documents]) {
    assert.equal(typeof session.documents[name], 'function', name);
  }
  try {
    store.session('none');
  } catch (error) {
    for (const name of classes.WalError) {
      assert.notEqual(error[name], undefined, name);
    }
  }
});

// Fails unless the object has the properties, or the methods, that are declared.
function hasProperties(object, declared) {
  assert.deepEqual(sorted(Object.keys(object)), sorted(declared));
}

function hasMembers(object, declared) {
  for (const name of declared) {
    const symbol = [...SYMBOLS].find(([, text]) => text === name)?.[0];
    assert.notEqual(object[symbol ?? name], undefined, name);
  }
}

test('what content returns has the properties that are declared', async (t) => {
  const { interfaces } = readDeclarations();
  const store = memoryStore(t);
  const root = temporaryFolder(t);
  const session = await store.create({ cwd: root });
  const info = await session.checkpoints.create('a', { id: 'c' });
  writeFileSync(`${root}/a`, 'x');
  hasProperties(info, interfaces.CheckpointInfo);
  hasProperties(session.checkpoints.files('c')[0], interfaces.FileState);
  hasMembers(session.checkpoints, interfaces.Checkpoints);
  const changes = await session.checkpoints.diff('c');
  hasProperties(changes, interfaces.FileChanges);
  hasProperties(changes.changes[0], interfaces.FileChange);
  hasProperties(await session.rewind('c'), interfaces.RewindResult);
  hasMembers(store.blobs, interfaces.Blobs);
  hasMembers(await store.blobs.create(), interfaces.BlobWriter);
  hasMembers(store.blobs.open(await store.blobs.put('x')), interfaces.BlobReader);
});

test('what exchange returns has the properties that are declared', async (t) => {
  const { interfaces } = readDeclarations();
  const store = await openStore(t);
  const session = await store.create({ id: 's', cwd: '/work' });
  await session.append({ payload: { role: 'user', content: 'x' } });
  const view = session.view({ dialect: 'claude', root: temporaryFolder(t) });
  hasMembers(view, interfaces.View);
  hasProperties(await view.flush(), interfaces.ViewFlushResult);
  hasProperties(await view.import(), interfaces.ViewImportResult);
  hasProperties(store.views()[0], interfaces.ViewInfo);
  const search = store.openSearch();
  hasMembers(search, interfaces.Search);
  const [found] = await search.find('x');
  hasProperties(found, interfaces.SearchSession);
  hasProperties(found.hits[0], interfaces.SearchHit);
  hasProperties(await search.update(), interfaces.SearchUpdate);
  search.close();
  const other = memoryStore(t);
  hasProperties(await other.import(view.path()), interfaces.ImportResult);
  hasProperties(await other.merge(store), interfaces.TransferResult);
});

test('what administration returns has the properties that are declared', async (t) => {
  const { interfaces } = readDeclarations();
  const store = await openStore(t);
  const session = await store.create({ id: 's' });
  await session.claim();
  hasProperties(store.claims()[0], interfaces.Claim);
  hasProperties(await store.compact({ dryRun: true }), interfaces.CompactStoreResult);
  const folder = temporaryFolder(t);
  hasProperties(await store.backup(`${folder}/copy`), interfaces.BackupResult);
  hasProperties(await agentwal.Store.salvage(`${folder}/copy`, `${folder}/out`),
    interfaces.SalvageResult);
});
