import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import test from 'node:test';

import { Store } from '../index.mjs';

test('what was appended is read after the store was closed', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'agentwal-'));
  t.after(() => rmSync(folder, { recursive: true }));

  let store = await Store.open(path.join(folder, 'store'));
  let session = await store.create({ id: 's', cwd: '/work' });
  const append = session.append({ payload: { role: 'user', content: 'hello' } });
  const result = await append;
  assert.equal(result.appended, 1);
  assert.equal(result.lastId, append.lastId);
  await store.close();

  store = await Store.open(path.join(folder, 'store'));
  session = store.session('s');
  const [entry] = session.entries().toArray();
  assert.equal(entry.id, result.lastId);
  assert.deepEqual(entry.payload, { role: 'user', content: 'hello' });
  await store.close();
});
