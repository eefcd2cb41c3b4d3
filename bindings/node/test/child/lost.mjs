// lost STORE: loses a store without a close, with work pending, and waits for the
// warning. Run with --expose-gc.
import { Store } from '../../index.mjs';

const [, , name] = process.argv;

async function lose() {
  const store = await Store.open(name);
  const session = await store.create({ id: 's' });
  for (let i = 0; i < 50; i++) {
    session.append({ payload: i }, { durability: i % 2 === 0 ? 'queued' : 'written' });
  }
  const stop = new AbortController();
  const following = session.follow({ signal: stop.signal }).next().catch(() => {});
  await session.append({ payload: 'last' });
  stop.abort();
  await following;
}

async function closeInTime() {
  const store = await Store.open(`${name}-closed`);
  await store.close();
}

const warnings = [];
process.on('warning', (warning) => { warnings.push([warning.name, warning.message]); });
await lose();
await closeInTime();
for (let i = 0; i < 200 && warnings.length === 0; i++) {
  globalThis.gc();
  await new Promise((resolve) => { setTimeout(resolve, 10); });
}
// The close is under way: opening waits for it, as for that of another process.
const store = await Store.open(name);
const count = store.session('s').entries().toArray().length;
await store.close();
process.stdout.write(`${JSON.stringify({ warnings, count })}\n`);
