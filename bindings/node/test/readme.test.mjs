// The program in README.md runs.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';

import { temporaryFolder } from './lib/store.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

test('the first example prints the conversation', (t) => {
  const folder = temporaryFolder(t);
  const [, code] = /```js\n(.*?)```/s.exec(readFileSync(path.join(root, 'README.md'), 'utf8'));
  const file = path.join(folder, 'example.mjs');
  writeFileSync(file, code.replace("'agentwal'", JSON.stringify(path.join(root, 'index.mjs'))));
  const output = execFileSync(process.execPath, [file], { cwd: folder, encoding: 'utf8' });
  assert.equal(output, 'user Fix the test\nassistant I fixed it.\n');
});
