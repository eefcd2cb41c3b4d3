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

test('a store is open as long as a part of it is held', async (t) => {
  const child = startChild('parts', [storePath(t)], { execArgv: ['--expose-gc'] });
  const { code, lines, errors } = await child.ended;
  assert.equal(code, 0, errors);
  const [{ results, lost }] = lines;
  assert.deepEqual(results, {
    documents: results.documents, blobs: results.blobs, reader: 'content', writer: null,
    sessions: 601, iteratedSessions: 600, turnedSessions: 601, session: 2000,
    sessionDocuments: results.sessionDocuments, checkpoints: 0, view: results.view,
    entries: 2000, iterator: 1999, turned: 2000, append: 'written', storeFollow: 'by the signal',
    sessionFollow: 'by the signal',
  });
  assert.ok(results.documents > 0 && results.sessionDocuments > results.documents);
  assert.match(results.blobs, /^[0-9a-f]{64}$/);
  assert.ok(results.view >= 2000);
  assert.equal(lost, Object.keys(results).length, 'and is closed when none is held any more');
});
