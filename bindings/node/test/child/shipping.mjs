// shipping STORE HOW: appends, waits for the remote, and prints how that ends.
// HOW: `wait`; `exit` ends the process meanwhile; `worker` a Worker that waits.
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

import { Store } from '../../index.mjs';

const [name, how] = workerData ?? process.argv.slice(2);

function print(value) {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

if (how === 'worker' && isMainThread) {
  const worker = new Worker(new URL(import.meta.url), { workerData: [name, how] });
  await new Promise((resolve) => { worker.on('message', resolve); });
  await worker.terminate();
  print('terminated');
} else {
  const store = await Store.open(name);
  store.session('s').append({ payload: how }, { durability: 'cluster' })
    .then(() => { print('stored'); }, (error) => { print(error.code); });
  await sleep(300);
  if (how === 'worker') {
    parentPort.postMessage('waits');
  } else {
    print('waits');
  }
  if (how === 'exit') {
    process.exit(0);
  }
}
