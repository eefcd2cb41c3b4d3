// The examples of the page on adapters run, and print what they say.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { fileURLToPath } from 'node:url';

import { storePath } from '../lib/store.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));

const page = readFileSync(`${root}/docs/adapters.md`, 'utf8');
const sections = {
  LangGraph: "[ 'hello', '1 before', 'again', '3 before' ]\n",
  'OpenAI Agents SDK': "[ { role: 'user', content: 'final' } ]\n",
};

for (const [name, output] of Object.entries(sections)) {
  test(`the example of ${name} runs`, (t) => {
    const section = page.slice(page.indexOf(`\n## ${name}\n`));
    const [, code] = section.match(/^```js\n(.*?)^```/ms);

    assert.ok(section.includes(output.trim()));
    // In the folder of the package, where its name is found.
    assert.equal(execFileSync(process.execPath, ['--input-type=module', '--eval',
      code.replace('./sessions', storePath(t))], { cwd: root, encoding: 'utf8' }), output);
  });
}
