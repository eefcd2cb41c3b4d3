// exit STORE HOW: ends in one of several ways with work pending.
import { Store } from '../../index.mjs';

const [, , name, how] = process.argv;
const store = await Store.open(name, { queueLimit: 8 });
const session = await store.create({ id: 's' });
const other = await store.create({ id: 'other' });

const append = () => {
  for (let i = 0; i < 100; i++) {
    session.append({ payload: i }, { durability: i % 2 === 0 ? 'durable' : 'queued' });
  }
};

switch (how) {
  case 'loop': // the event loop has nothing left but the appends
    append();
    break;
  case 'idle': // an open store keeps nobody alive
    await session.append({ payload: 1 });
    break;
  case 'exit':
    append();
    process.exit(7);
    break;
  case 'closeSync':
    append();
    store.closeSync();
    break;
  case 'close':
    append();
    store.close();
    break;
  case 'closeExit': // the close waits for a place in the queue
    append();
    store.close();
    process.exit(7);
    break;
  case 'closeGatedExit': // it waits for a call of another session
    append();
    other.documents.put('k', 1);
    store.close();
    await null;
    process.exit(7);
    break;
  case 'closeTwice': // the second is at once
    append();
    store.close();
    store.closeSync();
    process.exit(7);
    break;
  case 'throw':
    append();
    throw new Error('of the program');
  default:
    throw new Error(how);
}
