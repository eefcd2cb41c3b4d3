// search STORE [exit]: loses searches, some with a find under way, and the store too
// but for a search that is held; or exits while finds are under way. Run with
// --expose-gc.
import { Store } from '../../index.mjs';

const [, , name, how] = process.argv;

const turn = () => new Promise((resolve) => { setTimeout(resolve, 5); });

let held;

async function lose() {
  const store = await Store.open(name);
  const session = await store.create({ id: 's' });
  await session.append(Array.from({ length: 200 }, (_, i) => ({
    payload: { role: 'user', content: `word ${i}` },
  })));
  held = store.openSearch();
  const results = [];
  for (let i = 0; i < 50; i++) {
    store.openSearch({ memory: i % 2 === 0 });
    const search = store.openSearch({ memory: true });
    results.push(search.find(`"word ${i}"`));
    if (i % 3 === 0) {
      search.close();
    }
  }
  return results;
}

const results = await lose();
if (how === 'exit') {
  results.forEach((result) => result.catch(() => {}));
  held.find('word').catch(() => {});
  setTimeout(() => process.exit(7), 3);
}
for (let i = 0; i < 10; i++) {
  globalThis.gc();
  await turn();
}
const found = (await Promise.all(results)).filter(([session]) => session.hits.length > 0).length;
globalThis.gc();
await turn();
const [session] = await held.find('"word 7"');
process.stdout.write(`${JSON.stringify({ found, held: session.hits.length })}\n`);
held = undefined;
