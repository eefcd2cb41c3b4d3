// agentwal/claude-session-store: the SessionStore of the Claude Agent SDK
// (npm @anthropic-ai/claude-agent-sdk 0.3) on a store of agentwal.
//
//   import { query } from '@anthropic-ai/claude-agent-sdk';
//   import { AgentwalSessionStore } from 'agentwal/claude-session-store';
//
//   const sessionStore = new AgentwalSessionStore('sessions');
//   for await (const message of query({ prompt, options: { sessionStore } })) { ... }
//
// docs/adapters.md says what becomes of keys and entries.

import type { OpenOptions, Session, Store } from './index.js';

// The types of the SDK, so that these declarations can be used without it.

/** Identifies a transcript. Without `subpath` it is the session's main one. */
export type SessionKey = { projectKey: string; sessionId: string; subpath?: string };

/** A row of a transcript. */
export type SessionStoreEntry = {
  type: string;
  uuid?: string;
  timestamp?: string;
  [key: string]: unknown;
};

export type SessionSummaryEntry = {
  sessionId: string;
  mtime: number;
  data: Record<string, unknown>;
};

export type FoldSessionSummary = (
  previous: SessionSummaryEntry | undefined,
  key: SessionKey,
  entries: SessionStoreEntry[],
  options?: { mtime?: number },
) => SessionSummaryEntry;

export interface AgentwalSessionStoreOptions {
  /** When append() is acknowledged. Default 'durable': on stable storage.
   * 'written' survives a killed process, not a power cut. */
  durability?: 'durable' | 'written' | 'queued';
  /** The SDK's function. Default: that of the package
   * @anthropic-ai/claude-agent-sdk, found when it is first needed; without the
   * package there are no summaries, and the SDK loads sessions to list them. */
  foldSessionSummary?: FoldSessionSummary;
  /** How a store that is given by its path is opened. */
  open?: OpenOptions;
  /** What load() does when entries are damaged on disk. 'reject' (default): it
   * fails with WAL_ECORRUPT, or WAL_EDAMAGED once the store has noticed, so that no
   * session is resumed with a gap. 'skip': it leaves them out. */
  damaged?: 'reject' | 'skip';
}

export interface AgentwalSessionStoreStats {
  /** Entries that append() wrote. */
  appended: number;
  /** Entries that were there already, with the same content. */
  duplicates: number;
  /** Entries left out because their uuid is that of an entry with other content. */
  ignored: number;
  /** Batches that were made again because another process was faster. */
  retries: number;
  /** Lines that load() left out because they are no JSON objects, and entries that
   * it found damaged. */
  unreadable: number;
}

/**
 * Keeps the transcripts that the SDK mirrors.
 *
 * Durability: a promise that append() returned fulfils when all its entries and
 * the summary that covers them are on stable storage, as one batch: after a crash
 * there are all or none of them.
 *
 * Processes: any number of processes and of objects may use one store, also one
 * session, at the same time. Entries of one object's calls keep the order of the
 * calls; those of different processes are in the order of their commits.
 *
 * Errors: WalError of agentwal, and TypeError for a key or an entry that is not
 * valid. An append that fails has written nothing; where the code is WAL_EIO or
 * WAL_EPOISONED, which it returns after three attempts, the outcome is unknown,
 * and the same entries may be appended again. Calls after close() reject with
 * WAL_ECLOSED.
 */
export class AgentwalSessionStore {
  /** `store`: an open Store, which close() leaves open; or the path of one, which
   * is opened, and created if there is none, by the first call. */
  constructor(store: Store | string | URL, options?: AgentwalSessionStoreOptions);

  /** Appends entries in order. One whose uuid the transcript has is left out. The
   * entries are serialized before the call returns. Without entries it touches
   * nothing. Rejects with WAL_ETRASHED when the session is in the trash, and with
   * WAL_EDAMAGED when it lost entries, until that is accepted. */
  append(key: SessionKey, entries: SessionStoreEntry[]): Promise<void>;

  /** Returns all entries in log order, or null if there is no such transcript, it
   * was deleted, or is in the trash. Entries that were redacted are left out. */
  load(key: SessionKey): Promise<SessionStoreEntry[] | null>;

  /** Lists the main transcripts of a project, in no order; imported sessions of
   * Claude Code and forks are among them. `mtime` is the time at which the newest
   * entry was stored, of an imported session the time of its newest entry. */
  listSessions(projectKey: string): Promise<{ sessionId: string; mtime: number }[]>;

  /** Lists summaries, with the `mtime` of listSessions(). Each one covers all
   * entries; a session whose summary does not (imported ones, before their first
   * append; those that another program wrote to) is left out, and the SDK loads
   * it. */
  listSessionSummaries(projectKey: string): Promise<SessionSummaryEntry[]>;

  /** Deletes a transcript for good: it can no longer be read, and its bytes are
   * reclaimed by Store.compact(). Of a main transcript its subpaths go first.
   * Forks keep what they share. Deleting what does not exist succeeds. */
  delete(key: SessionKey): Promise<void>;

  /** Lists the subpaths of a session. */
  listSubkeys(key: { projectKey: string; sessionId: string }): Promise<string[]>;

  /** Forks a session; see forkSession(). */
  fork(key: SessionKey, options?: ForkOptions): Promise<{ sessionId: string }>;

  /** The session that has a transcript, or null. */
  session(key: SessionKey): Promise<Session | null>;

  /** What this object did. */
  readonly stats: AgentwalSessionStoreStats;

  /** Completes every append; closes the store if it was given by its path. May be
   * called again. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface ForkOptions {
  /** uuid of the last entry of the fork. Default: the whole session. */
  upToMessageId?: string;
  /** Default: the title of the session and " (fork)". */
  title?: string;
  /** Default: a new UUID. Rejects with WAL_EEXISTS when it is taken, and with
   * WAL_EINVAL unless it can be the id of a session as it is: at most 160 bytes, no
   * control characters, no half of a surrogate pair, no "~" at its start. */
  sessionId?: string;
}

/**
 * Forks a session without copying it: the fork shares the entries of the branch,
 * whatever their number, and names the few that are on no branch.
 *
 * In the fork, entries have the fork's `sessionId`, and those that were shared
 * have `forkedFrom` and keep their uuid, unlike those of the SDK's forkSession(),
 * which writes each entry again under a new one. Snapshots of files stay valid.
 * Subpaths are not part of it. A crash leaves no fork that is listed but one that
 * is complete. Rejects with NotFoundError for the session and the entry.
 */
export function forkSession(sessionStore: AgentwalSessionStore, key: SessionKey,
  options?: ForkOptions): Promise<{ sessionId: string }>;
