// The declarations compile, and fit those of the SDK.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import test from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');

test('the adapter is a SessionStore of the SDK for the compiler', () => {
  const { stdout, status } = spawnSync(process.execPath, [tsc, '--strict', '--noEmit',
    '--skipLibCheck', '--module', 'nodenext', '--target', 'es2022', '--types', 'node',
    'test/types/claude.ts'], { cwd: root, encoding: 'utf8' });
  assert.equal(stdout, '');
  assert.equal(status, 0);
});
