// Memory does not grow.

import assert from 'node:assert/strict';
import test from 'node:test';

import { isLong, startChild, storePath } from './lib/store.mjs';

const MIB = 1024 * 1024;

test('appends and reads leave no memory taken', async (t) => {
  const count = isLong ? 1_000_000 : 100_000;
  const child = startChild('memory', [storePath(t), String(count)], {
    execArgv: ['--expose-gc', '--max-semi-space-size=4'],
  });
  const { code, lines, errors } = await child.ended;
  assert.equal(code, 0, errors);
  t.diagnostic(JSON.stringify(lines[0]));
  assert.ok(lines[0].appends < 8 * MIB, `appends took ${lines[0].appends} bytes`);
  assert.ok(lines[0].reads < 8 * MIB, `reads took ${lines[0].reads} bytes`);
  assert.ok(lines[0].heap < MIB, `JavaScript kept ${lines[0].heap} bytes`);
});

// V8 collects what a reader returned once some tens of MiB are there: Node.js 24 and
// later wait until 80.
test('400 MB stream through a writer and a reader in bounded memory', async (t) => {
  const child = startChild('blob', [storePath(t), '400']);
  const { code, lines, errors } = await child.ended;
  assert.equal(code, 0, errors);
  t.diagnostic(JSON.stringify(lines[0]));
  assert.equal(lines[0].size, 400 * MIB);
  assert.equal(lines[0].read, lines[0].digest);
  assert.ok(lines[0].grown < 128 * MIB, `memory grew by ${lines[0].grown} bytes`);
});
