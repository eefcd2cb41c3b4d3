// The declarations of agentwal/claude-session-store fit those of the SDK.
import {
  foldSessionSummary, forkSession as forkByCopy, type SessionKey as SdkKey,
  type SessionStore, type SessionStoreEntry as SdkEntry,
  type SessionSummaryEntry as SdkSummary,
} from '@anthropic-ai/claude-agent-sdk';
import { Store } from 'agentwal';
import {
  AgentwalSessionStore, forkSession, type FoldSessionSummary, type SessionKey,
  type SessionStoreEntry, type SessionSummaryEntry,
} from 'agentwal/claude-session-store';

export const byPath: SessionStore = new AgentwalSessionStore('store', {
  foldSessionSummary, durability: 'written', damaged: 'skip', open: { readOnly: true },
});
export const byStore: Required<SessionStore> = new AgentwalSessionStore(Store.memory());
export const byUrl = new AgentwalSessionStore(new URL('file:///store'));

// The same types, in both directions.
export const keys = (own: SessionKey, sdk: SdkKey): [SdkKey, SessionKey] => [own, sdk];
export const entries = (own: SessionStoreEntry, sdk: SdkEntry):
  [SdkEntry, SessionStoreEntry] => [own, sdk];
export const summaries = (own: SessionSummaryEntry, sdk: SdkSummary):
  [SdkSummary, SessionSummaryEntry] => [own, sdk];
export const folds = (own: FoldSessionSummary):
  [typeof foldSessionSummary, FoldSessionSummary] => [own, foldSessionSummary];

export async function forks(key: SessionKey): Promise<string[]> {
  const copy = await forkByCopy(key.sessionId, { sessionStore: byUrl });
  const fork = await forkSession(byUrl, key, { upToMessageId: 'id', title: 'T', sessionId: 'x' });
  const session = await byUrl.session(key);
  const written: number = byUrl.stats.appended;
  return [copy.sessionId, fork.sessionId, session?.id ?? '', `${written}`];
}

// @ts-expect-error a store is a Store, or a path
export const byNumber = new AgentwalSessionStore(7);
// @ts-expect-error a subpath cannot be forked by its name
export const bySubpath = forkSession(byUrl, 'subagents/agent-1');
