// What the tests of agentwal/claude-session-store share.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { AgentwalSessionStore } from '../../claude-session-store.mjs';
import { Store } from '../../index.mjs';

/** Calls a function with an adapter on a new store, its Store and its folder. */
export async function withStore(run, options) {
  const folder = mkdtempSync(path.join(tmpdir(), 'agentwal-claude-'));
  const store = await Store.open(path.join(folder, 'store'));
  const adapter = new AgentwalSessionStore(store, options);

  try {
    return await run(adapter, store, folder);
  } finally {
    await adapter.close();
    await store.close();
    rmSync(folder, { recursive: true });
  }
}

export const PROJECT = '-srv-app';
export const SESSION = 'f4c1aaaa-0000-4000-8000-000000000001';
export const MAIN = { projectKey: PROJECT, sessionId: SESSION };
export const AGENT = { ...MAIN, subpath: 'subagents/agent-77' };

export const uuid = (number) =>
  `00000000-0000-4000-8000-${number.toString(16).padStart(12, '0')}`;

/** A row of a user or of an assistant, under the row before. */
export function message(number, fields = {}) {
  const type = number % 2 === 1 ? 'user' : 'assistant';
  const text = `${type} ${number}`;
  return {
    parentUuid: number === 1 ? null : uuid(number - 1),
    isSidechain: false,
    userType: 'external',
    cwd: '/srv/app',
    sessionId: SESSION,
    version: '2.1.0',
    gitBranch: 'main',
    type,
    message: type === 'user'
      ? { role: 'user', content: text }
      : { role: 'assistant', id: `msg_${number}`, content: [{ type: 'text', text }] },
    uuid: uuid(number),
    timestamp: new Date(Date.UTC(2026, 1, 3, 9, 0, number)).toISOString(),
    ...fields,
  };
}

export const messages = (count, fields) =>
  Array.from({ length: count }, (_, i) => message(i + 1, fields));

export const row = (type, fields = {}) => ({ type, ...fields });
