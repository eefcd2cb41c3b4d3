// long STORE MODE: begins a compaction that would take long, and ends in the
// middle of it. MODE: exit, throw, terminate (of a Worker).
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

import { Store } from '../../index.mjs';

const [name, mode] = workerData ?? process.argv.slice(2);

if (isMainThread && mode === 'terminate') {
  const worker = new Worker(new URL(import.meta.url), { workerData: [name, 'wait'] });
  worker.on('message', () => worker.terminate());
} else {
  const store = await Store.open(name);
  store.compact({ rate: 2 ** 14 }).catch(() => {});
  setTimeout(() => {
    if (mode === 'exit') {
      process.exit(7);
    } else if (mode === 'throw') {
      throw new Error('nobody catches it');
    }
    parentPort.postMessage('ready');
  }, 300);
}
