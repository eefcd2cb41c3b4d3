// The package as it is published: installed from its archive, without a network and
// without scripts.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';

import { temporaryFolder } from './lib/store.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const binary = process.env.AGENTWAL_NODE_BINARY ?? path.join(root, 'build', 'agentwal.node');

function run(program, args, folder) {
  const env = { ...process.env, npm_config_cache: path.join(folder, 'cache') };
  delete env.AGENTWAL_NODE_BINARY;
  return execFileSync(program, args, { cwd: folder, env, encoding: 'utf8' });
}

// Packs a copy of the package with the binary without symbols; returns the archive.
function pack(folder) {
  const source = path.join(folder, 'source');
  const { files } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  for (const name of ['package.json', 'README.md', 'build.sh', 'CMakeLists.txt', 'native',
    ...files]) {
    if (!['prebuilds/', 'LICENSE', 'NOTICE'].includes(name)) { // of build.sh --pack
      cpSync(path.join(root, name), path.join(source, name), { recursive: true });
    }
  }
  cpSync(path.join(root, '../../LICENSE'), path.join(source, 'LICENSE'));
  writeFileSync(path.join(source, 'NOTICE'), 'of the test');
  mkdirSync(path.join(source, 'prebuilds'));
  run('objcopy', ['--strip-all', binary,
    path.join(source, 'prebuilds', `linux-${process.arch}.node`)], folder);
  const [{ filename, files: packed }] =
    JSON.parse(run('npm', ['pack', '--json', '--pack-destination', folder, source], folder));
  return { archive: path.join(folder, filename), names: packed.map((one) => one.path) };
}

test('the archive is installed offline without scripts, and runs', (t) => {
  const folder = temporaryFolder(t);
  const { archive, names } = pack(folder);
  assert.ok(names.includes(`prebuilds/linux-${process.arch}.node`));
  assert.deepEqual(names.filter((name) => !/^(lib|prebuilds)\//.test(name)).sort(),
    ['LICENSE', 'NOTICE', 'README.md', 'index.d.ts', 'index.mjs', 'package.json']);
  assert.ok(!names.some((name) => name.endsWith('.gyp')));

  const user = path.join(folder, 'user');
  mkdirSync(user);
  writeFileSync(path.join(user, 'package.json'), '{"type": "module"}');
  run('npm', ['install', '--offline', '--ignore-scripts', '--no-audit', archive], user);
  writeFileSync(path.join(user, 'main.mjs'), `
    import { Store } from 'agentwal';
    import { createRequire } from 'node:module';
    const store = await Store.open('store');
    const { session } = await store.openOrCreate();
    await session.append({ payload: 'hello' });
    const same = createRequire(import.meta.url)('agentwal').Store === Store;
    console.log(session.entries().toArray()[0].payload, same);
    await store.close();`);
  assert.equal(run(process.execPath, ['main.mjs'], user), 'hello true\n');
});

test('nothing runs when it is installed', () => {
  const { scripts, dependencies, gypfile } =
    JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  for (const name of ['preinstall', 'install', 'postinstall', 'prepare', 'prepublish']) {
    assert.equal(scripts[name], undefined, name);
  }
  assert.equal(dependencies, undefined);
  assert.equal(gypfile, undefined);
});

test('the lockfile names no registry', () => {
  const lock = readFileSync(path.join(root, 'package-lock.json'), 'utf8');
  assert.doesNotMatch(lock, /https?:|resolved/);
});
