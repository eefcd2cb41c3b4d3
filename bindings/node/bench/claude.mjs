// What an append of agentwal/claude-session-store costs: claude.mjs [COUNT].
//
// `eager` is one row per append, awaited, as with sessionStoreFlush: 'eager';
// `batched` is 100 rows per append. `plain` is Session.append of the same lines,
// so that the cost of summaries shows.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { AgentwalSessionStore } from '../claude-session-store.mjs';
import { Store } from '../index.mjs';

const COUNT = Number(process.argv[2] ?? 2000);
const TEXT = 'x'.repeat(1000);
const folder = mkdtempSync(path.join(process.env.AGENTWAL_BENCH_DIR ?? tmpdir(),
  'agentwal-bench-'));
const store = await Store.open(path.join(folder, 'store'));
const uuid = (n) => `00000000-0000-4000-8000-${n.toString(16).padStart(12, '0')}`;
const makeRow = (n) => ({
  parentUuid: n === 0 ? null : uuid(n - 1), isSidechain: false, cwd: '/srv/app',
  sessionId: 'bench', type: n % 2 === 0 ? 'user' : 'assistant',
  message: { role: n % 2 === 0 ? 'user' : 'assistant', content: `${n} ${TEXT}` },
  uuid: uuid(n), timestamp: new Date().toISOString(),
});

async function measure(name, count, rows, call) {
  const times = [];
  await call(0);
  for (let i = 1; i <= count; i++) {
    const begin = performance.now();
    await call(i);
    times.push(performance.now() - begin);
  }
  times.sort((a, b) => a - b);
  const at = (share) => times[Math.floor(share * (times.length - 1))].toFixed(3);
  const mean = times.reduce((sum, time) => sum + time, 0) / count;
  console.log(`${name.padEnd(26)} ${String(rows).padStart(4)} rows  p50 ${at(0.5)} ms  ` +
    `p99 ${at(0.99)} ms  mean ${mean.toFixed(3)} ms  ${Math.round(rows * 1000 / mean)} rows/s`);
}

async function measureAppends(durability) {
  const adapter = new AgentwalSessionStore(store, { durability });
  const key = (name) => ({ projectKey: '-srv-app', sessionId: `${durability} ${name}` });
  const session = await store.create();

  await measure(`plain, ${durability}`, COUNT, 1, (i) =>
    session.append({ id: uuid(i), line: JSON.stringify(makeRow(i)) }, { durability }));
  await measure(`eager, ${durability}`, COUNT, 1, (i) =>
    adapter.append(key('eager'), [makeRow(i)]));
  await measure(`eager subpath, ${durability}`, COUNT, 1, (i) =>
    adapter.append({ ...key('eager'), subpath: 'subagents/agent-1' }, [makeRow(i)]));
  await measure(`batched, ${durability}`, COUNT / 20, 100, (i) =>
    adapter.append(key('batched'), Array.from({ length: 100 }, (_, n) => makeRow(100 * i + n))));
  return key('eager');
}

async function time(name, call) {
  const begin = performance.now();
  const result = await call();
  console.log(`${name.padEnd(36)} ${(performance.now() - begin).toFixed(1)} ms`);
  return result;
}

const key = await measureAppends('durable');
await measureAppends('written');
const adapter = new AgentwalSessionStore(store);
const rows = await time(`load of ${COUNT + 1} rows`, () => adapter.load(key));
await time(`fork of ${rows.length} rows`, () => adapter.fork(key));
for (let i = 0; i < 1000; i++) {
  await adapter.append({ projectKey: '-srv-app', sessionId: `listed ${i}` }, [makeRow(0)]);
}
await time('listSessions, 1000 and more', () => adapter.listSessions('-srv-app'));
await time('listSessionSummaries, same', () => adapter.listSessionSummaries('-srv-app'));
await store.close();
rmSync(folder, { recursive: true });
