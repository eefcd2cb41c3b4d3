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
    // The page shows calls, not how a program ends: one that loses its store is warned.
    const program = `${makeModule([...beginning.blocks, ...blocks])}\nawait store.close();\n`;
    const { status, stderr } = runProgram(temporaryFolder(t), 'page.mjs', program);
    assert.equal(status, 0, stderr);
    assert.equal(stderr, '');
  });
}

test('README.md: the example prints what is shown', (t) => {
  const { blocks } = sections('README.md').find(({ title }) => title === 'Example');
  const page = readFileSync(path.join(root, 'README.md'), 'utf8');
  const [, shown] = /It prints:\n\n((?: {4}.*\n)+)/.exec(page);
  const { stdout, stderr } = runProgram(temporaryFolder(t), 'example.mjs', blocks[0].text);
  assert.equal(stderr, '');
  assert.equal(stdout, shown.replace(/^ {4}/gm, ''));
});

test('README.md has the ratios of bench/results.json', () => {
  const { node, rows } = JSON.parse(readFileSync(path.join(root, 'bench', 'results.json'), 'utf8'));
  const peers = [...new Set(rows.map(({ peer }) => peer))];
  const page = readFileSync(path.join(root, 'README.md'), 'utf8');
  assert.equal(peers.length, 2);
  for (const writers of new Set(rows.map((row) => row.writers))) {
    const ratios = peers.map((peer) =>
      rows.find((row) => row.writers === writers && row.peer === peer).ratio.toFixed(1));
    const row = `| ${writers} | ${ratios.join(' | ')} |`;
    assert.ok(page.includes(row), `README.md has no row ${row}`);
  }
  assert.ok(page.includes(`Node.js ${node.split('.')[0]}`));
});

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
    session.view({ dialect: 'claude', root: temporaryFolder(t) }), store.openSearch()];
  const names = new Set(Object.keys(agentwal).filter((name) => name !== 'default'));
  for (const name of Object.getOwnPropertyNames(agentwal.Store)) {
    if (typeof agentwal.Store[name] === 'function') {
      names.add(name);
    }
  }
  for (const object of objects) {
    namesOf(object).forEach((name) => names.add(name));
  }
  const page = readFileSync(path.join(root, 'docs', 'api.md'), 'utf8');
  assert.ok(names.size > 70, `${names.size} names`);
  assert.deepEqual([...names].filter((name) => !new RegExp(`\\b${name}\\b`).test(page)), []);
});
