// The binary: finding it, what it needs and what it exports.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';

import { temporaryFolder } from './lib/store.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const built = path.join(root, 'build', 'agentwal.node');
const binary = process.env.AGENTWAL_NODE_BINARY ??
  (existsSync(built) ? built : path.join(root, 'prebuilds', `linux-${process.arch}.node`));
// A sanitizer's runtime is a library more.
const isSanitized = (process.env.LD_PRELOAD ?? '').includes('asan');

// A copy of the package without a binary.
function copyPackage(t) {
  const folder = path.join(temporaryFolder(t), 'agentwal');
  for (const name of ['lib', 'index.mjs', 'package.json', 'build.sh']) {
    cpSync(path.join(root, name), path.join(folder, name), { recursive: true });
  }
  return folder;
}

function run(folder, code, options = {}) {
  const env = { ...process.env, ...options.env };
  if (options.env?.AGENTWAL_NODE_BINARY === undefined) {
    delete env.AGENTWAL_NODE_BINARY;
  }
  return spawnSync(process.execPath, ['-e', `process.chdir(${JSON.stringify(folder)}); ${code}`],
    { encoding: 'utf8', env });
}

const REQUIRE = 'console.log(require(process.cwd()).version)';

test('without a binary the error names the command that builds it', (t) => {
  const { status, stderr } = run(copyPackage(t), REQUIRE);
  assert.equal(status, 1);
  assert.match(stderr, new RegExp(`agentwal has no binary for linux-${process.arch}`));
  assert.match(stderr, /build\.sh/);
});

test('a package that was installed names no script that it does not have', (t) => {
  const folder = copyPackage(t);
  rmSync(path.join(folder, 'build.sh'));
  const { stderr } = run(folder, REQUIRE);
  assert.match(stderr, /there is no file .*Install agentwal again/);
  assert.doesNotMatch(stderr, /build\.sh/);
});

test('a runtime that loads no addons is named as the reason', (t) => {
  const code = `require(${JSON.stringify(root)})`;
  const { stderr } = spawnSync(process.execPath, ['--no-addons', '-e', code],
    { encoding: 'utf8', env: { ...process.env, AGENTWAL_NODE_BINARY: binary } });
  if (process.versions.bun === undefined) {
    assert.match(stderr, /agentwal cannot load .*disabled/);
  }
  assert.doesNotMatch(stderr, /another processor/);
});

test('a binary of another kind is refused with a sentence', (t) => {
  const folder = copyPackage(t);
  mkdirSync(path.join(folder, 'build'));
  writeFileSync(path.join(folder, 'build', 'agentwal.node'), 'no binary');
  const { status, stderr } = run(folder, REQUIRE);
  assert.equal(status, 1);
  assert.match(stderr, /agentwal cannot load .*build\/agentwal\.node: .*build\.sh/s);
});

test('a binary of another version is refused', (t) => {
  const folder = copyPackage(t);
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ version: '99.0.0' }));
  const { status, stderr } = run(folder, REQUIRE.replace('cwd()', 'cwd() + "/lib/index.js"'),
    { env: { AGENTWAL_NODE_BINARY: binary } });
  assert.equal(status, 1);
  assert.match(stderr, /has version \d+\.\d+\.\d+, and the package 99\.0\.0/);
});

test('musl has a binary for itself', (t) => {
  const fake = `process.report.getReport = () => ({ header: {} }); ${REQUIRE}`;
  const folder = copyPackage(t);
  const prebuilds = path.join(folder, 'prebuilds');
  mkdirSync(prebuilds);
  cpSync(binary, path.join(prebuilds, `linux-${process.arch}.node`));
  const { status, stderr } = run(folder, fake);
  assert.equal(status, 1);
  assert.match(stderr, /agentwal has no binary for linux-[a-z0-9]+-musl: there is no file/);
  cpSync(binary, path.join(prebuilds, `linux-${process.arch}-musl.node`));
  assert.match(run(folder, fake).stdout, /^\d+\.\d+\.\d+\n$/);
});

test('each system and processor has a binary of its name', (t) => {
  const folder = copyPackage(t);
  const prebuilds = path.join(folder, 'prebuilds');
  mkdirSync(prebuilds);
  for (const name of ['darwin-arm64', 'darwin-x64', 'linux-arm64', 'linux-x64']) {
    const [system, processor] = name.split('-');
    const there = `Object.defineProperty(process, 'platform', { value: '${system}' });
      Object.defineProperty(process, 'arch', { value: '${processor}' });
      process.report.getReport = () => ({ header: { glibcVersionRuntime: '2.28' } }); ${REQUIRE}`;
    assert.match(run(folder, there).stderr, new RegExp(`has no binary for ${name}: there is no`));
    cpSync(binary, path.join(prebuilds, `${name}.node`));
    assert.match(run(folder, there).stdout, /^\d+\.\d+\.\d+\n$/);
  }
  const { os, cpu } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  assert.deepEqual([os, cpu], [['linux', 'darwin'], ['x64', 'arm64']]);
});

test('the places are searched in order', (t) => {
  const folder = copyPackage(t);
  const prebuilds = path.join(folder, 'prebuilds');
  mkdirSync(prebuilds);
  cpSync(binary, path.join(prebuilds, `linux-${process.arch}.node`));
  assert.match(run(folder, REQUIRE).stdout, /^\d+\.\d+\.\d+\n$/);
  mkdirSync(path.join(folder, 'build'));
  writeFileSync(path.join(folder, 'build', 'agentwal.node'), 'no binary');
  assert.equal(run(folder, REQUIRE).status, 1);
  assert.equal(run(folder, REQUIRE, { env: { AGENTWAL_NODE_BINARY: binary } }).status, 0);
  const { stderr } = run(folder, REQUIRE, { env: { AGENTWAL_NODE_BINARY: '/none' } });
  assert.match(stderr, /there is no file \/none/);
});

test('the package is loaded once in a thread, by import and require', (t) => {
  const code = `const a = require(${JSON.stringify(root)}); ` +
    `import(${JSON.stringify(path.join(root, 'index.mjs'))}).then((b) => { ` +
    'console.log(a.Store === b.Store); });';
  const env = { AGENTWAL_NODE_BINARY: binary };
  assert.equal(run(temporaryFolder(t), code, { env }).stdout, 'true\n');
  const both = `const a = require(process.cwd()); const b = require(${JSON.stringify(root)}); ` +
    'a.Store.memory(); b.Store.memory(); console.log(a.Store === b.Store);';
  assert.equal(run(copyPackage(t), both, { env }).stdout, 'false\n', 'each copy has an instance');
});

test('it needs the C library alone, and exports two symbols', () => {
  const needed = execFileSync('ldd', [binary], { encoding: 'utf8' }).trim().split('\n')
    .map((line) => line.trim().split(' ')[0])
    .filter((name) => !/^(linux-vdso|linux-gate|.*\/ld-linux)/.test(name));
  if (!isSanitized) {
    assert.deepEqual(needed.sort(), ['libc.so.6', 'libm.so.6']);
  }
  const exported = execFileSync('nm', ['-D', '--defined-only', '--format=just-symbols', binary],
    { encoding: 'utf8' }).trim().split('\n').map((name) => name.replace(/@.*/, '')).sort();
  assert.deepEqual(exported, ['napi_register_module_v1', 'node_api_module_get_api_version_v1']);
});

test('it needs no symbol above GLIBC_2.34', () => {
  const table = execFileSync('objdump', ['-T', binary], { encoding: 'utf8', maxBuffer: 1e8 });
  const versions = [...table.matchAll(/GLIBC_(\d+)\.(\d+)/g)].map((one) => Number(one[2]));
  assert.ok(versions.length > 0);
  assert.ok(Math.max(...versions) <= 34, `GLIBC_2.${Math.max(...versions)}`);
});

test('it has its own OpenSSL next to that of Node.js', (t) => {
  const code = `const { createHash } = require('node:crypto');
    const { Store } = require(${JSON.stringify(root)});
    const text = JSON.stringify('x'.repeat(300_000));
    const session = Store.memory().createSync();
    session.appendSync({ text });
    const [entry] = session.entries({ outOfLine: true });
    console.log(entry.digest === createHash('sha256').update(text).digest('hex'));`;
  const env = { AGENTWAL_NODE_BINARY: binary };
  const { stdout, stderr } = run(temporaryFolder(t), code, { env });
  assert.equal(stdout, 'true\n', stderr);
});
