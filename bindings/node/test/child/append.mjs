// append STORE: appends until it is killed; prints the count and the durability
// of what was acknowledged.
import { Store } from '../../index.mjs';

const store = await Store.open(process.argv[2]);
const { session } = await store.openOrCreate({ id: 's' });
const text = JSON.stringify({ content: 'x'.repeat(500) });

async function write(writer) {
  for (let i = 0; ; i++) {
    const durability = i % 2 === 0 ? 'durable' : 'written';
    const id = `${writer}-${i}`;
    await session.append({ id, text }, { durability });
    process.stdout.write(`${JSON.stringify(id)}\n`);
  }
}
await Promise.all(Array.from({ length: 8 }, (_, i) => write(i)));
