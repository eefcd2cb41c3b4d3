// follow STORE: prints the payloads of the session s as they come, until "end".
import { Store } from '../../index.mjs';

const store = await Store.open(process.argv[2]);
const session = store.session('s');
const entries = session.follow({ from: 'start' });
process.stdout.write('"ready"\n');
for await (const entry of entries) {
  process.stdout.write(`${JSON.stringify(entry.payload)}\n`);
  if (entry.payload === 'end') {
    break;
  }
}
await store.close();
