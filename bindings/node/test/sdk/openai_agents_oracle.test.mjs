// Random calls have the results that MemorySession of the SDK has.
// AGENTWAL_SEED repeats a run.
import assert from 'node:assert/strict';
import test from 'node:test';

import { MemorySession } from '@openai/agents-core';

import { AgentwalSession } from '../../lib/openai-agents/index.mjs';
import { makeRandom, takeSeed } from '../lib/random.mjs';
import { openStore } from '../lib/store.mjs';

const seed = takeSeed();
const random = makeRandom(seed);
const pick = (list) => list[random(list.length)];

function makeItem() {
  const text = `text ${random(4)}`;

  return pick([
    () => ({ role: 'user', content: text }),
    () => ({ type: 'message', role: 'user',
      content: [{ type: 'input_text', text, providerData: { n: undefined, z: -0 } }] }),
    () => ({ type: 'message', role: 'assistant', status: 'completed',
      content: [{ type: 'output_text', text }] }),
    () => ({ type: 'function_call', callId: `call ${random(3)}`, name: 'f',
      arguments: '{}', status: 'completed' }),
    () => ({ type: 'function_call_result', callId: `call ${random(3)}`, name: 'f',
      status: 'completed', output: { type: 'image', image: {
        data: new Uint8Array([random(256), 0]), mediaType: 'image/png' } } }),
  ])();
}

const makeItems = (limit) => Array.from({ length: random(limit) }, makeItem);

async function makeTransaction(oracle) {
  const stored = await oracle.getItems();

  if (random(2) === 0) {
    return { type: 'append_items', items: makeItems(3) };
  }
  const suffix = random(4) === 0 ? makeItems(3)
    : stored.slice(Math.max(0, stored.length - random(4)));

  return { type: 'replace_suffix', expectedSuffix: suffix, replacement: makeItems(3) };
}

/** A call of both, and how often it is chosen. */
const calls = [
  [4, () => ['addItems', makeItems(4)]],
  [3, () => ['popItem']],
  [1, () => ['clearSession']],
  [4, () => ['getItems', pick([undefined, 0, 1, 2, 5, 100])]],
  [2, () => ['applyHistoryMutations', { mutations: Array.from({ length: random(3) },
    () => ({ type: 'replace_function_call', callId: `call ${random(4)}`,
      replacement: { type: 'function_call', callId: `call ${random(3)}`, name: 'g',
        arguments: '{}', status: 'completed' } })) }]],
].flatMap(([weight, make]) => Array(weight).fill(make));

async function resultOf(session, [name, ...args]) {
  try {
    return { value: await session[name](...args) };
  } catch (error) {
    return { failed: /already applied|was applied/.test(error.message)
      ? 'reused' : /suffix/.test(error.message) ? 'suffix' : error };
  }
}

test(`random calls have the results of MemorySession (seed ${seed})`, async (t) => {
  const store = await openStore(t);
  const transactions = [];

  for (let round = 0; round < 6; round++) {
    const oracle = new MemorySession({ sessionId: `s ${round}` });
    const session = new AgentwalSession(store,
      { sessionId: `s ${round}`, durability: 'written' });

    for (let step = 0; step < 250; step++) {
      let call = pick(calls)();

      if (random(3) === 0) {
        // Repeated, or with the name of another one, or new.
        const transaction = random(3) === 0 && transactions.length > 0
          ? pick(transactions) : await makeTransaction(oracle);

        transactions.push(transaction);
        call = ['applyHistoryTransaction',
          { operationId: `o ${random(40)}`, transaction }];
      }
      const where = `seed ${seed}, round ${round}, step ${step}, ${call[0]}`;

      assert.deepEqual(await resultOf(session, call), await resultOf(oracle, call),
        where);
      assert.deepEqual(await session.getItems(), await oracle.getItems(), where);
    }
  }
});
