// Calls of an adapter of the package for Node.js: node.mjs STORE claude|openai SESSION
// Reads lines of JSON, [method, ...arguments], and prints the result of each.
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [path, kind, sessionId] = process.argv.slice(2);
const source = pathToFileURL(`${process.env.AGENTWAL_SOURCE}/bindings/node/`);
const load = (file) => import(new URL(file, source));

/** Folds as the SDK does, into the names that the one for TypeScript has. */
function fold(previous, key, entries, { mtime }) {
  const data = { ...previous?.data };
  for (const entry of entries) {
    data.rows = (data.rows ?? 0) + 1;
    data.customTitle = entry.customTitle ?? data.customTitle;
  }
  return { sessionId: key.sessionId, mtime, data };
}

async function makeAdapter() {
  if (kind === 'claude') {
    const { AgentwalSessionStore } = await load('claude-session-store.mjs');
    return new AgentwalSessionStore(path, { foldSessionSummary: fold });
  }
  const { AgentwalSession } = await load('lib/openai-agents/index.mjs');
  return new AgentwalSession(path, { sessionId });
}

const adapter = await makeAdapter();

for await (const line of createInterface({ input: process.stdin })) {
  const [method, ...args] = JSON.parse(line);
  const result = await adapter[method](...args);
  process.stdout.write(`${JSON.stringify(result ?? null)}\n`);
}
await adapter.close();
