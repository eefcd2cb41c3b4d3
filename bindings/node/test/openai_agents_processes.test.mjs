// Processes that share a history: transactions race, and are killed.
import assert from 'node:assert/strict';
import test from 'node:test';

import { AgentwalSession } from '../lib/openai-agents/index.mjs';
import { makeRandom, takeSeed } from './lib/random.mjs';
import { openStore, startChild } from './lib/store.mjs';

const sessionId = 'shared';
const message = (content) => ({ role: 'user', content });

const start = (path, ...args) =>
  startChild('openai_agents', [path, sessionId, ...args.map(String)]);

// The lines of a process, up to its end.
async function rest(child) {
  const { code, lines, errors } = await child.ended;

  assert.equal(code, 0, errors);
  return lines;
}

async function openShared(t) {
  const store = await openStore(t);

  return { path: store.path, session: new AgentwalSession(store, { sessionId }) };
}

const contents = async (session) =>
  (await session.getItems()).map(({ content }) => content);

test('of two replacements of one suffix, one wins each round', async (t) => {
  const { path, session } = await openShared(t);
  const racers = [start(path, 'race', 'a'), start(path, 'race', 'b')];
  const wins = { a: 0, b: 0 };

  await Promise.all(racers.map((racer) => racer.line()));
  for (let round = 0; round < 200; round++) {
    await session.addItems([message(`open ${round}`)]);
    racers.forEach((racer) => racer.stdin.write(`${round}\n`));
    const results = await Promise.all(racers.map((racer) => racer.line()));
    const winner = results.findIndex(([first]) => first === 'applied');

    assert.deepEqual(results[winner], ['applied', 'applied'], `round ${round}`);
    assert.deepEqual(results[1 - winner], ['SUFFIX_MISMATCH', 'SUFFIX_MISMATCH'],
      `round ${round}`);
    assert.deepEqual(await session.getItems(1),
      [message(`won ${round} by ${'ab'[winner]}`)]);
    wins['ab'[winner]]++;
  }
  racers.forEach((racer) => racer.stdin.end());
  await Promise.all(racers.map(rest));
  assert.equal((await session.getItems()).length, 200);
  t.diagnostic(`wins: ${JSON.stringify(wins)}`);
});

test('an operation of three processes is applied once', async (t) => {
  const { path, session } = await openShared(t);
  const all = [1, 2, 3].map(() => start(path, 'operation'));

  await Promise.all(all.map((one) => one.line()));
  for (let round = 0; round < 100; round++) {
    all.forEach((one) => one.stdin.write(`${round}\n`));
    assert.deepEqual(await Promise.all(all.map((one) => one.line())),
      Array(3).fill('applied'), `round ${round}`);
  }
  all.forEach((one) => one.stdin.end());
  await Promise.all(all.map(rest));
  assert.deepEqual(await contents(session),
    Array.from({ length: 100 }, (_, round) => `once ${round}`));
});

test('what two processes add is there, each pair together', async (t) => {
  const { path, session } = await openShared(t);
  const all = ['a', 'b'].map((name) => start(path, 'add', name, 100));

  await Promise.all(all.map(rest));
  const found = await contents(session);
  assert.equal(found.length, 400);
  for (let i = 0; i < found.length; i += 2) {
    assert.equal(found[i].replace(/a$/, 'b'), found[i + 1]);
  }
  for (const name of ['a', 'b']) {
    assert.deepEqual(found.filter((text) => text.startsWith(name)),
      Array.from({ length: 100 }, (_, i) => [`${name} ${i} a`, `${name} ${i} b`]).flat());
  }
});

test('two processes pop each item once', async (t) => {
  const { path, session } = await openShared(t);
  const items = Array.from({ length: 100 }, (_, i) => String(i));

  await session.addItems(items.map(message));
  const popped = await Promise.all(
    ['a', 'b'].map(() => rest(start(path, 'pop'))));
  assert.deepEqual(popped.flat().sort((a, b) => a - b), items);
  assert.deepEqual(await session.getItems(), []);
});

test('a process that is killed leaves whole transactions, all that were '
  + 'acknowledged, and repeats are not applied again', async (t) => {
  const seed = takeSeed();
  const random = makeRandom(seed);
  const { path, session } = await openShared(t);
  let next = 0;

  for (let round = 0; round < 5; round++) {
    const one = start(path, 'append', next);
    const until = next + 1 + random(40);

    for (let line = await one.line(); line !== undefined; line = await one.line()) {
      assert.deepEqual(line, [next, 'applied'], `seed ${seed}, round ${round}`);
      next = line[0] + 1;
      if (next === until) {
        one.kill('SIGKILL');
      }
    }
    await one.ended;
    const found = await contents(session);
    const whole = found.length / 2;
    assert.ok(whole === next || whole === next + 1, `seed ${seed}: ${whole}, ${next}`);
    assert.deepEqual(found, Array.from({ length: whole },
      (_, i) => [`${i} a`, `${i} b`]).flat(), `seed ${seed}`);
    // The next process begins one earlier than needed, or two.
    next = Math.max(0, next - random(2));
  }
});
