// parts STORE: uses what came from stores that the program holds no more, and
// then loses that, too. Run with --expose-gc.
import { setTimeout as sleep } from 'node:timers/promises';

import { Store } from '../../index.mjs';

const ENTRIES = 2000;
const [, , name] = process.argv;
const warnings = [];
process.on('warning', ({ message }) => { warnings.push(message); });

async function collect() {
  for (let i = 0; i < 4; i++) {
    globalThis.gc();
    await sleep(10);
  }
}

async function prepare() {
  const store = await Store.open(name);
  const session = await store.create({ id: 's', cwd: '/' });
  await session.append(Array.from({ length: ENTRIES }, (_, i) => ({ payload: i })));
  await Promise.all(Array.from({ length: 600 }, (_, i) => store.create({ id: `of-${i}` })));
  const digest = await store.blobs.put('content');
  await store.close();
  return digest;
}

const open = () => Store.open(name);
const session = async () => (await open()).session('s');
const rest = (iterator) => {
  let count = 0;
  while (!iterator.next().done) {
    count++;
  }
  return count;
};
const begun = (iterator) => {
  iterator.next();
  return iterator;
};
const count = async (iterable) => {
  let found = 0;
  for await (const item of iterable) {
    found += item === undefined ? 0 : 1;
    if (found % 200 === 0) {
      await collect();
    }
  }
  return found;
};
const follows = async (follow) => {
  const stop = new AbortController();
  const ended = (await follow(stop.signal)).next().then(() => 'grown', (error) => error.message);
  await collect();
  stop.abort(new Error('by the signal'));
  return ended;
};

const digest = await prepare();
// Each makes a part and uses it later.
const parts = {
  documents: [async () => (await open()).documents, (part) => part.put('k', 1)],
  blobs: [async () => (await open()).blobs, (part) => part.put('more')],
  reader: [async () => (await open()).blobs.open(digest),
    async (part) => (await part.read(0, 7)).toString()],
  writer: [async () => (await open()).blobs.create({ named: true }),
    async (part) => { await part.write('piece'); part.discard(); }],
  sessions: [async () => (await open()).sessions(), (part) => [...part].length],
  iteratedSessions: [async () => begun((await open()).sessions()[Symbol.iterator]()), rest],
  turnedSessions: [async () => (await open()).sessions(), count],
  session: [session, (part) => part.info().entries],
  sessionDocuments: [async () => (await session()).documents, (part) => part.put('k', 1)],
  checkpoints: [async () => (await session()).checkpoints, (part) => part.list().length],
  view: [async () => (await session()).view({ dialect: 'claude', root: `${name}-view` }),
    async (part) => (await part.flush()).lines],
  entries: [async () => (await session()).entries(), (part) => part.toArray().length],
  iterator: [async () => begun((await session())[Symbol.iterator]()), rest],
  turned: [async () => (await session()).entries(), count],
  append: [async () => (await session()).append({ stream: 1, parentId: null, payload: 1 },
    { durability: 'written' }), () => 'written'],
  storeFollow: [async () => follows(async (signal) => (await open()).follow({ signal })),
    (part) => part],
  sessionFollow: [async () => follows(async (signal) => (await session()).follow({ signal })),
    (part) => part],
};

const results = {};
async function use(make, call) {
  const part = await make();
  await collect();
  return call(part);
}
for (const [part, [make, call]] of Object.entries(parts)) {
  try {
    results[part] = await use(make, call) ?? null;
  } catch (error) {
    results[part] = `${error.code}: ${error.message}`;
  }
}
for (let i = 0; i < 500 && warnings.length < Object.keys(parts).length; i++) {
  await collect();
}
process.stdout.write(`${JSON.stringify({ results, lost: warnings.length })}\n`);
