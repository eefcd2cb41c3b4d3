// The declarations compile, and declare what there is.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import test from 'node:test';
import { fileURLToPath } from 'node:url';

import * as agentwal from '../index.mjs';
import { memoryStore } from './lib/store.mjs';

const require = createRequire(import.meta.url);
const local = (name) => fileURLToPath(new URL(name, import.meta.url));

// Declared, and to be added by their modules: remove a name with its module.
const NOT_YET_ADDED = {
  exports: ['importClients', 'importDialects', 'isBundle', 'scanImport', 'viewDialects'],
  Store: ['acceptDamage', 'addViewRoot', 'backup', 'blobs', 'claims', 'compact', 'findView',
    'followImport', 'import', 'merge', 'migrate', 'readBundle', 'salvage', 'updateView', 'views',
    'writeBundle'],
  Session: ['acceptDamage', 'checkpoints', 'diff', 'export', 'rewind', 'view'],
};

function typescript() {
  assert.ok(existsSync(local('../node_modules/typescript')),
    'typescript is missing: run `npm ci` in bindings/node');
  return require('typescript');
}

// Names that the declarations have: of exported values, of members of classes and
// of properties of interfaces.
function readDeclarations() {
  const ts = typescript();
  const file = local('../index.d.ts');
  const source = ts.createSourceFile(file, ts.sys.readFile(file), ts.ScriptTarget.ES2022, true);
  const found = { values: new Set(), classes: {}, interfaces: {} };
  const isPrivate = (node) => (node.modifiers ?? []).some(
    (one) => one.kind === ts.SyntaxKind.PrivateKeyword);
  const namesOf = (node) => node.members
    .filter((member) => member.name !== undefined && !isPrivate(member))
    .map((member) => member.name.getText(source));
  for (const node of source.statements) {
    if (ts.isClassDeclaration(node)) {
      found.values.add(node.name.text);
      found.classes[node.name.text] = new Set(namesOf(node));
    } else if (ts.isFunctionDeclaration(node)) {
      found.values.add(node.name.text);
    } else if (ts.isVariableStatement(node)) {
      for (const one of node.declarationList.declarations) {
        found.values.add(one.name.getText(source));
      }
    } else if (ts.isInterfaceDeclaration(node)) {
      found.interfaces[node.name.text] = new Set(namesOf(node));
    }
  }
  return found;
}

const sorted = (names) => [...names].sort();

const SYMBOLS = new Map([[Symbol.iterator, '[Symbol.iterator]'],
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

test('each export has a declaration, and each declaration an export', () => {
  const { values } = readDeclarations();
  const there = sorted([...Object.keys(agentwal), ...NOT_YET_ADDED.exports]);
  assert.deepEqual(there, sorted(values));
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
    assert.deepEqual(sorted([...there, ...NOT_YET_ADDED[name]]), sorted(declared));
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
