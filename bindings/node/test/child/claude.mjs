// A process that appends to one session until it is killed: child/claude.mjs
// STORE NAME. Prints the number of each append that was acknowledged.
import { writeSync } from 'node:fs';

import { AgentwalSessionStore } from '../../claude-session-store.mjs';
import { MAIN, row, uuid } from '../lib/claude.mjs';

const [path, name] = process.argv.slice(2);
const adapter = new AgentwalSessionStore(path);

for (let n = 1; ; n++) {
  await adapter.append(MAIN, [
    row('user', { uuid: uuid(Number(name) * 1e6 + n), parentUuid: null, writer: name, n,
      message: { role: 'user', content: `${name} ${n}` } }),
    row('tag', { tag: `${name}-${n}`, writer: name, n }),
  ]);
  writeSync(1, `${n}\n`);
}
