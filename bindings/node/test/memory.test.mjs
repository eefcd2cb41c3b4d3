// What is lost is freed, and memory does not grow.

import assert from 'node:assert/strict';
import test from 'node:test';

import { isLong, startChild, storePath } from './lib/store.mjs';

const MIB = 1024 * 1024;

test('a store that is lost is closed, with a warning', async (t) => {
  const child = startChild('lost', [storePath(t)], { execArgv: ['--expose-gc'] });
  const { code, lines, errors } = await child.ended;
  assert.equal(code, 0, errors);
  const [{ warnings, count }] = lines;
  assert.equal(count, 51, 'its appends are completed');
  assert.equal(warnings.length, 1, 'and the other one was closed');
  assert.equal(warnings[0][0], 'AgentwalLeak');
  assert.match(warnings[0][1], /store .* was lost without Store\.close/);
});

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
