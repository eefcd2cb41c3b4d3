// reader STORE SESSION: prints the number of a session's entries, and keeps an
// iterator that is not at its end; ends with its input.
import { Store } from '../../index.mjs';

const [, , name, id] = process.argv;
const store = await Store.open(name, { readOnly: true });
const session = store.session(id);
const held = session[Symbol.iterator]();
held.next();
console.log(JSON.stringify({ entries: session.entries().toArray().length }));
process.stdin.on('end', () => {
  held.return();
  store.close();
});
process.stdin.resume();
