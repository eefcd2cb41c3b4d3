// A Worker that opens the store and writes; workerData says how it ends.
import { parentPort, workerData } from 'node:worker_threads';

import { Store } from '../../index.mjs';

const { name, id, mode } = workerData;
const store = await Store.open(name);
const { session } = await store.openOrCreate({ id });

if (mode === 'count') {
  const appends = [];
  for (let i = 0; i < 200; i++) {
    appends.push(session.append({ payload: i }));
  }
  const results = await Promise.all(appends);
  await store.close();
  parentPort.postMessage(results.length);
} else if (mode === 'leave') { // without a close
  for (let i = 0; i < 50; i++) {
    session.append({ payload: i });
  }
  await session.append({ payload: 'last' });
  parentPort.postMessage('left');
} else if (mode === 'calls') { // in the thread pool alone
  parentPort.postMessage('ready');
  for (;;) {
    session.moveHead(session.head());
    store.sync();
    await new Promise((resolve) => { setImmediate(resolve); });
  }
} else if (mode === 'search') { // with searches under way, some of a store that closes
  await session.append(Array.from({ length: 3000 }, (_, i) => ({
    payload: { role: 'user', content: `number ${i} of many words` },
  })));
  const held = [store.openSearch(), store.openSearch({ memory: true })];
  parentPort.postMessage('ready');
  for (;;) {
    const lost = store.openSearch({ memory: true });
    for (const search of [...held, lost]) {
      search.find('number 7').catch(() => {});
    }
    lost.close();
    await held[1].update({ deep: true });
  }
} else { // until it is terminated
  const following = session.follow();
  following.next().catch(() => {});
  parentPort.postMessage('ready');
  for (;;) {
    for (let i = 0; i < 20; i++) {
      session.append({ payload: i });
      session.append({ payload: i }, { durability: 'queued' }).catch(() => {});
    }
    session.documents.put('k', Math.random()).catch(() => {});
    session.moveHead(session.head());
    store.sync();
    await new Promise((resolve) => { setImmediate(resolve); });
  }
}
