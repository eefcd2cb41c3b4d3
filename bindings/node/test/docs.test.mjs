// What README.md and docs/api.md show is what happens.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import test from 'node:test';

import * as agentwal from '../index.mjs';
import { makeModule, root, runProgram, sections } from './lib/pages.mjs';
import { memoryStore, temporaryFolder } from './lib/store.mjs';

const [, beginning, ...api] = sections('docs/api.md');

for (const { title, blocks } of api) {
  test(`docs/api.md: ${title}`, (t) => {
    assert.ok(blocks.length > 0);
    assert.deepEqual(blocks.filter(({ language }) => language !== 'js'), []);
    const program = makeModule([...beginning.blocks, ...blocks]);
    const { status, stderr } = runProgram(temporaryFolder(t), 'page.mjs', program);
    assert.equal(status, 0, stderr);
    assert.equal(stderr, '');
  });
}

// The names of the methods and accessors of an object of a class.
function namesOf(object) {
  return Object.getOwnPropertyNames(Object.getPrototypeOf(object))
    .filter((name) => name !== 'constructor');
}

test('docs/api.md has every function and method', async (t) => {
  const store = memoryStore(t);
  const session = store.createSync();
  await session.append({ payload: 1 });
  const digest = await store.blobs.put('x');
  const objects = [store, session, session.entries(), store.documents, store.blobs,
    store.blobs.open(digest), await store.blobs.create(), session.checkpoints,
    session.view({ dialect: 'claude', root: temporaryFolder(t) })];
  const names = new Set(Object.keys(agentwal).filter((name) => name !== 'default'));
  Object.getOwnPropertyNames(agentwal.Store)
    .filter((name) => typeof agentwal.Store[name] === 'function').forEach((name) => names.add(name));
  objects.flatMap(namesOf).forEach((name) => names.add(name));
  const page = readFileSync(path.join(root, 'docs', 'api.md'), 'utf8');
  assert.ok(names.size > 70, `${names.size} names`);
  assert.deepEqual([...names].filter((name) => !new RegExp(`\\b${name}\\b`).test(page)), []);
});
