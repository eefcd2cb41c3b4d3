// A store that JavaScript lost.

import assert from 'node:assert/strict';
import test from 'node:test';

import { startChild, storePath } from './lib/store.mjs';

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
