// The examples of the pages on adapters run, and print what they say.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { fileURLToPath } from 'node:url';

import { storePath } from '../lib/store.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));

const pages = {
  langgraph: "[ 'hello', '1 before', 'again', '3 before' ]\n",
  'openai-agents': "[ { role: 'user', content: 'final' } ]\n",
};

for (const [name, output] of Object.entries(pages)) {
  test(`the example of ${name}.md runs`, (t) => {
    const page = readFileSync(`${root}/docs/${name}.md`, 'utf8');
    const [, code] = page.match(/^```js\n(.*?)^```/ms);

    assert.ok(page.includes(output.trim()));
    // In the folder of the package, where its name is found.
    assert.equal(execFileSync(process.execPath, ['--input-type=module', '--eval',
      code.replace('./sessions', storePath(t))], { cwd: root, encoding: 'utf8' }), output);
  });
}
