// memory STORE COUNT: appends and reads COUNT entries, after some for warming up,
// and prints by how many bytes the memory of the process grew. Sessions and
// cursors are made and lost all the time. Run with --expose-gc.
//
// Appends go to a store that keeps nothing: one that does has some bytes of memory
// for each entry of the sessions that were used last, in C too.
import { readFileSync, rmSync } from 'node:fs';

import { Store } from '../../index.mjs';

const [, , name, count] = process.argv;
const text = JSON.stringify({ role: 'user', content: 'x'.repeat(200) });
const WARM = 100_000;
const STORED = 50_000;

async function append(store, total, durability) {
  for (let done = 0; done < total; done += 1000) {
    const session = await store.create();
    const appends = [];
    for (let i = 0; i < 1000; i++) {
      appends.push(session.append({ text }, { durability }));
    }
    await Promise.all(appends);
  }
}

function read(session, total) {
  let size = 0;
  for (let done = 0; done < total;) {
    for (const entry of session.entries({ last: 20_000 })) {
      size += entry.text.length;
      done++;
    }
    session.entries()[Symbol.iterator]().next(); // a cursor that is lost
  }
  return size;
}

// Bytes of memory that no file gives: maps of the log are not counted.
async function usedMemory() {
  for (let i = 0; i < 5; i++) {
    globalThis.gc();
    await new Promise((resolve) => { setImmediate(resolve); });
  }
  return 1024 * Number(/^RssAnon:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))[1]);
}

const total = Number(count);
const nothing = await Store.open(`${name}-nothing`, { noop: true });
const store = await Store.open(name);
const session = await store.create();
for (let done = 0; done < STORED; done += 1000) {
  session.appendSync(Array.from({ length: 1000 }, () => ({ text })), { durability: 'written' });
}
await append(nothing, WARM, 'durable');
read(session, WARM);

const before = await usedMemory();
await append(nothing, total / 2, 'durable');
await append(nothing, total / 2, 'queued');
const afterAppends = await usedMemory();
read(session, WARM); // the collector has adapted to appends
const beforeReads = await usedMemory();
read(session, total);
const afterReads = await usedMemory();
const heap = process.memoryUsage().heapUsed;
await append(store, STORED, 'written');
await usedMemory();
const heapGrowth = process.memoryUsage().heapUsed - heap;
await store.close();
await nothing.close();
rmSync(name, { recursive: true });
process.stdout.write(`${JSON.stringify({
  appends: afterAppends - before, reads: afterReads - beforeReads, heap: heapGrowth,
})}\n`);
