// Keys of encrypted stores.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { closeSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { inspect } from 'node:util';

import { AgentwalSessionStore } from '../claude-session-store.mjs';
import { Store, WalError } from '../index.mjs';
import { atEnd, rejection, storePath, thrown } from './lib/store.mjs';

const SECRET = 'a secret of the tests, which nobody guesses';
const TEXT = 'what the session says';

// An encrypted store with one session, which is closed.
async function encryptedStore(t, key) {
  const at = storePath(t);
  const store = await Store.open(at, { key });
  assert.ok(!inspect(store, { showHidden: true, depth: 9 }).includes(SECRET));
  await store.createSync({ id: 's' }).append({ payload: TEXT });
  await store.close();
  return at;
}

function payloads(store) {
  const read = [...store.session('s')].map((entry) => entry.payload);
  store.closeSync();
  return read;
}

// Whether the memory of this process has a part of some bytes, which are given inverted: this has
// no other copy.
function isInMemory(inverted) {
  const parts = [];
  for (let at = 0; at + 16 <= inverted.length; at += 256) {
    parts.push([inverted.subarray(at, at + 8).map((byte) => byte ^ 0xff),
      inverted.subarray(at + 8, at + 16)]);
  }
  const piece = Buffer.alloc(1 << 20);
  const has = ([start, rest]) => {
    for (let at = piece.indexOf(start); at >= 0; at = piece.indexOf(start, at + 1)) {
      if (rest.every((byte, i) => (byte ^ 0xff) === piece[at + 8 + i])) {
        return true;
      }
    }
    return false;
  };
  const memory = openSync('/proc/self/mem');
  let isFound = false;
  for (const [, low, high] of readFileSync('/proc/self/maps', 'latin1')
    .matchAll(/^(\w+)-(\w+) rw/gm)) {
    const end = parseInt(high, 16);
    let from = parseInt(low, 16);
    if (end - from > 2 ** 30) {
      continue; // the shadow of a sanitizer
    }
    for (; from < end; from += piece.length - 16) {
      try {
        readSync(memory, piece, 0, Math.min(piece.length, end - from), from);
      } catch {
        break; // such as memory of a device
      }
      isFound ||= parts.some(has);
      piece.fill(0);
    }
  }
  closeSync(memory);
  return isFound;
}

test('a store that is created with a key is opened by it alone', async (t) => {
  const at = await encryptedStore(t, { secret: SECRET });
  for (const folder of readdirSync(at, { withFileTypes: true })) {
    for (const name of folder.isDirectory() ? readdirSync(path.join(at, folder.name)) : []) {
      assert.ok(!readFileSync(path.join(at, folder.name, name)).includes(TEXT), name);
    }
  }
  const bytes = new Uint8Array(Buffer.from(SECRET));
  for (const secret of [SECRET, Buffer.from(SECRET), bytes]) {
    assert.deepEqual(payloads(Store.openSync(at, { key: { secret } })), [TEXT]);
    assert.deepEqual(payloads(await Store.open(at, { key: { secret }, readOnly: true })), [TEXT]);
  }
  assert.equal((await Store.migrate(at, { key: { secret: SECRET } })).sessions, 0);
  const wrong = [undefined, { secret: `${SECRET}.` }, { secret: 'short' }, { secret: '' }];
  for (const key of wrong) {
    for (const error of [thrown(() => Store.openSync(at, { key })),
      await rejection(Store.open(at, { key, keyIfNeeded: true })),
      await rejection(Store.migrate(at, { key }))]) {
      assert.ok(error instanceof WalError);
      assert.equal(error.code, 'WAL_EKEY');
      assert.ok(!inspect(error, { showHidden: true }).includes(SECRET));
    }
  }
});

test('a passphrase opens a store that was created with it', async (t) => {
  const at = await encryptedStore(t, { passphrase: 'größe' });
  assert.deepEqual(payloads(await Store.open(at, { key: { passphrase: 'größe' } })), [TEXT]);
  assert.equal((await rejection(Store.open(at, { key: { secret: SECRET } }))).code, 'WAL_EKEY');
});

test('a key for a store that is not encrypted is refused, but with keyIfNeeded', async (t) => {
  const at = storePath(t);
  const key = { secret: SECRET };
  const plain = Store.openSync(at);
  await plain.createSync({ id: 's' }).append({ payload: 1 });
  plain.closeSync();
  assert.equal(thrown(() => Store.openSync(at, { key })).code, 'WAL_EKEY');
  assert.deepEqual(payloads(Store.openSync(at, { key, keyIfNeeded: true })), [1]);
  assert.equal(thrown(() => Store.memory({ key })).code, 'WAL_EINVAL');
});

test('what is no key is refused, and nothing is created', async (t) => {
  const at = storePath(t);
  const wrong = [null, SECRET, Buffer.from(SECRET), {}, { secret: undefined },
    { secret: SECRET, passphrase: SECRET }, { secret: 7 }, { secret: [SECRET] },
    { secret: new Uint16Array(40) }, { passphrase: '\ud800' }];
  for (const key of wrong) {
    for (const error of [thrown(() => Store.openSync(at, { key })),
      await rejection(Store.open(at, { key }))]) {
      assert.equal(error.code, 'WAL_EINVAL');
      assert.ok(!inspect(error, { showHidden: true }).includes(SECRET));
    }
  }
  assert.throws(() => readdirSync(at));
});

test('an adapter opens the store with the key of its options', async (t) => {
  const at = await encryptedStore(t, { secret: SECRET });
  const adapter = new AgentwalSessionStore(at, { open: { key: { secret: SECRET } } });
  atEnd(t, () => adapter.close());
  assert.deepEqual(await adapter.listSessions('p'), []);
  assert.ok(!inspect(adapter, { showHidden: true, depth: 9 }).includes(SECRET));
});

test('no copy of a key is in memory after the call', async (t) => {
  const at = storePath(t);
  // So large that it is not in the heap of the runtime, which copies what it moves.
  const secret = randomBytes(4096);
  const inverted = secret.map((byte) => byte ^ 0xff);
  const store = Store.openSync(at, { key: { secret } });
  // Many: what is freed may be used again at once.
  const others = await Promise.all(Array.from({ length: 16 },
    () => Store.open(at, { key: { secret } })));
  await turn();
  assert.equal(thrown(() => Store.openSync(at, { key: { secret }, exclusive: true })).code,
    'WAL_EEXISTS');
  assert.ok(isInMemory(inverted));
  secret.fill(0);
  assert.ok(!isInMemory(inverted));
  others.forEach((other) => other.closeSync());
  store.closeSync();
});
