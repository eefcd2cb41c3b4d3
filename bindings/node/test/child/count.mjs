// count STORE N: appends N numbers to the session s, each under the tail that it
// read; begins again on a conflict. Prints how often it did.
import { Store } from '../../index.mjs';

const store = await Store.open(process.argv[2]);
const session = store.session('s');
let conflicts = 0;

for (let i = 0; i < Number(process.argv[3]);) {
  const last = session.entries({ last: 1 }).toArray()[0];
  try {
    await session.append({ payload: (last?.payload ?? 0) + 1 }, { expectTail: last?.id ?? null });
    i++;
  } catch (error) {
    if (error.code !== 'WAL_ECONFLICT') {
      throw error;
    }
    conflicts++;
  }
}
await store.close();
process.stdout.write(`${JSON.stringify(conflicts)}\n`);
