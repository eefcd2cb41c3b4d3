// A Worker that loads copies of the package, which write to one store.
import { parentPort, workerData } from 'node:worker_threads';

import { loadCopy } from '../lib/copies.mjs';

const { name, id, count } = workerData;
const sessions = [];
for (let i = 0; i < 3; i++) {
  const store = await loadCopy().Store.open(name);
  sessions.push((await store.openOrCreate({ id })).session);
}
parentPort.postMessage('open');
for (let i = 0; i < count; i++) {
  await sessions[i % sessions.length].append({ payload: i });
}
