// claim STORE SESSION: claims a session; ends with its input.
import { Store } from '../../index.mjs';

const [, , name, id] = process.argv;
const store = await Store.open(name);
const session = store.session(id);
await session.claim();
console.log(JSON.stringify({ claimed: id }));
process.stdin.on('end', () => store.close());
process.stdin.resume();
