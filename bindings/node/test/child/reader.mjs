// reader STORE SESSION: reads a session and prints the number of its entries; ends
// with its input.
import { Store } from '../../index.mjs';

const [, , name, id] = process.argv;
const store = await Store.open(name, { readOnly: true });
const session = store.session(id);
console.log(JSON.stringify({ entries: session.entries().toArray().length }));
process.stdin.on('end', () => store.close());
process.stdin.resume();
