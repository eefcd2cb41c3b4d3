// The interface of "agentwal/openai-agents": docs/adapters.md. The package
// of the SDK is needed for types only.

import type {
  AgentInputItem, Session, SessionHistoryRewriteArgs,
  SessionHistoryRewriteAwareSession, SessionHistoryTransactionArgs,
  SessionHistoryTransactionAwareSession,
} from '@openai/agents-core';

import type { Store } from '../../index.js';

export interface AgentwalSessionOptions {
  /** Default: a random UUID. */
  sessionId?: string;
  /** Id of the session in the store; default "openai/SESSIONID". */
  id?: string;
  /** When a change is acknowledged; default 'durable'. */
  durability?: 'durable' | 'written';
}

/** A Session of the OpenAI Agents SDK on a store. */
export class AgentwalSession implements Session,
  SessionHistoryRewriteAwareSession, SessionHistoryTransactionAwareSession {
  /** A store that remains the caller's, or the path of one, which is opened
   * when it is first used, and created when there is none. */
  constructor(store: Store | string | URL, options?: AgentwalSessionOptions);

  getSessionId(): Promise<string>;
  getItems(limit?: number): Promise<AgentInputItem[]>;
  /** All or none. */
  addItems(items: AgentInputItem[]): Promise<void>;
  /** Each item is popped once, whatever the number of callers. */
  popItem(): Promise<AgentInputItem | undefined>;
  /** Operations that were applied before are forgotten with the items. */
  clearSession(): Promise<void>;
  replaceHistoryWithCompaction(items: AgentInputItem[]): Promise<void>;
  applyHistoryMutations(args: SessionHistoryRewriteArgs): Promise<void>;
  /** Atomic and idempotent, also between processes. Rejects with
   * HistoryConflictError, with nothing changed. */
  applyHistoryTransaction(args: SessionHistoryTransactionArgs): Promise<void>;
  /** Closes the store, if it was given by its path. */
  close(): Promise<void>;
}

/** A transaction was refused, and changed nothing. */
export class HistoryConflictError extends Error {
  readonly code:
    /** The history does not end with the suffix that was expected. */
    | 'SUFFIX_MISMATCH'
    /** The operation was applied with another transaction. */
    | 'OPERATION_REUSED';
}
