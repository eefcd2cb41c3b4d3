// copies FOLDER: loads copies of the package, uses each and drops it, and prints
// what is left of them. Run with --expose-gc.
import { readdirSync, readlinkSync } from 'node:fs';
import path from 'node:path';

import { loadCopy, ownProcess } from '../lib/copies.mjs';

const [, , folder] = process.argv;
const COPIES = 15;
// A collector that looks for references in the stack may find one that is none.
const SEEN_IN_STACK = 2;

let left = 0;
const collected = new FinalizationRegistry(() => { left--; });

function watch(copy) {
  collected.register(copy.globals);
  left++;
}

async function closedCopy(i) {
  const copy = loadCopy();
  watch(copy);
  const store = await copy.Store.open(path.join(folder, `closed-${i}`));
  const session = await store.create();
  await session.append({ payload: i });
  await store.compact();
  try {
    store.session('none');
  } catch (error) {
    if (!(error instanceof copy.NotFoundError)) {
      throw error;
    }
  }
  await store.close();
  // A program may keep what it has closed.
  copy.globals.kept = [store, session];
}

async function openCopy(i) {
  const copy = loadCopy({ process: ownProcess() });
  watch(copy);
  const store = await copy.Store.open(path.join(folder, `open-${i}`));
  const session = await store.create({ id: 's' });
  session.append({ payload: i }, { durability: 'queued' });
}

function openFiles() {
  return readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return '';
    }
  }).filter((name) => name.startsWith(folder)).length;
}

const warnings = {};
process.on('warning', ({ name }) => { warnings[name] = (warnings[name] ?? 0) + 1; });
const before = process.listenerCount('exit');
for (let i = 0; i < COPIES; i++) {
  await closedCopy(i);
}
for (let i = 0; i < 3; i++) {
  await openCopy(i);
}
for (let i = 0; i < 500 && (left > SEEN_IN_STACK || openFiles() > 0); i++) {
  globalThis.gc();
  await new Promise((resolve) => { setTimeout(resolve, 10); });
}
process.stdout.write(`${JSON.stringify({
  isCollected: left <= SEEN_IN_STACK,
  files: openFiles(),
  listeners: process.listenerCount('exit') - before,
  warnings,
})}\n`);
