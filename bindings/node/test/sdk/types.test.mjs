// The declarations of the adapters compile, with those of the SDKs, and declare
// the members that there are.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { readFileSync } from 'node:fs';

import { AgentwalSaver } from 'agentwal/langgraph';
import * as agents from 'agentwal/openai-agents';

const local = (name) => fileURLToPath(new URL(name, import.meta.url));

test('the declarations of the adapters compile', () => {
  execFileSync(process.execPath, [local('../../node_modules/typescript/lib/tsc.js'),
    '--project', local('tsconfig.json')], { stdio: ['ignore', 'inherit', 'inherit'] });
});

const classes = [['langgraph', AgentwalSaver], ['openai-agents', agents.AgentwalSession]];

for (const [folder, type] of classes) {
  test(`each member of ${type.name} is declared, and no other`, () => {
    const text = readFileSync(local(`../../lib/${folder}/index.d.ts`), 'utf8');
    const declared = [...text.slice(text.indexOf(`class ${type.name}`))
      .matchAll(/^ {2}(\w+)\(/gm)].map(([, name]) => name);
    const there = Object.getOwnPropertyNames(type.prototype);

    assert.deepEqual(declared.sort(), there.sort());
  });
}

test('the exports of the adapters are the ones that are declared', () => {
  assert.deepEqual(Object.keys(agents).sort(), ['AgentwalSession', 'HistoryConflictError']);
});
