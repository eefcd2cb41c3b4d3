// held STORE: begins calls that run for long on stores that nothing else refers to,
// collects garbage, and prints how they end. Run with --expose-gc.
import { mkdirSync } from 'node:fs';

import { Store } from '../../index.mjs';

const [, , name] = process.argv;
const folder = `${name}-import`;
mkdirSync(folder);
const warnings = [];
process.on('warning', (warning) => warnings.push(warning.name));

const controller = new AbortController();
const { signal } = controller;
const calls = [
  (await Store.open(name)).compact({ rate: 2 ** 14, signal }),
  (await Store.open(name)).followImport(folder, { signal }).next(),
].map((call) => call.catch((error) => error.message));
for (let i = 0; i < 10; i++) {
  global.gc();
  await new Promise((resolve) => {
    setTimeout(resolve, 20);
  });
}
controller.abort(new Error('stopped'));
const outcomes = await Promise.all(calls);
console.log(JSON.stringify({ outcomes, warnings }));
