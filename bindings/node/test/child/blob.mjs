// blob STORE COUNT: writes a blob of COUNT MiB in pieces and reads it back, and
// prints its digests and by how many bytes the memory of the process grew at most.
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';

import { Store } from '../../index.mjs';

const [, , name, count] = process.argv;

// Bytes of memory that no file gives: maps of the pack are not counted.
function usedMemory() {
  return 1024 * Number(/^RssAnon:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))[1]);
}

const store = await Store.open(name);
await store.blobs.put(randomBytes(2 ** 20));
const before = usedMemory();
let most = before;

const writer = await store.blobs.create();
const piece = randomBytes(2 ** 20);
for (let i = 0; i < Number(count); i++) {
  piece.writeUInt32LE(i);
  await writer.write(piece);
  most = Math.max(most, usedMemory());
}
const { digest, size } = await writer.finish();
const hash = createHash('sha256');
for await (const part of store.blobs.open(digest)) {
  hash.update(part);
  most = Math.max(most, usedMemory());
}
await store.close();
console.log(JSON.stringify({ size, digest, read: hash.digest('hex'), grown: most - before }));
