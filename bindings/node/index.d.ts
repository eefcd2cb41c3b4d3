// The interface of the npm package "agentwal": sessions of AI agents in one
// crash-safe log. README.md shows it by example; agentwal.h of the library,
// in the package in docs/include, states the contract of each call in full.
//
// Conventions
//   Promises   A call that writes returns a promise; it fulfils once the change
//              is durable, or as durable as `durability` asks for. Nothing that
//              waits for a disk runs in the calling thread, but for the calls
//              whose names end in `Sync`.
//   Reads      are synchronous: they read memory maps. Iterators also have an
//              asynchronous face, which gives other tasks a turn.
//   Values     Strings and buffers are copies. Text is UTF-8 on disk: a string
//              with half a surrogate pair is refused, except within JSON, where
//              it is kept as an escape.
//   Ids        An empty string is no id of an entry: it is refused, also where
//              undefined or null is permitted.
//   Numbers    Sizes are bytes, times are milliseconds since 1970, sequence
//              numbers rise over the whole store.
//   Errors     Every failure is a WalError, thrown or as a rejection. What
//              failed has changed nothing, except where `code` is
//              "WAL_EPOISONED" or "WAL_EIO": the outcome is unknown, and the
//              same call may be repeated with the same ids; and where there is
//              a `result`.
//   Closing    After Store.close() calls on the store and what came from it
//              throw "WAL_ECLOSED". Open iterators end by that error. What was
//              asked for before is completed, but for the calls that take
//              Progress: a close, and the end of the process or of the Worker,
//              stops them like their signal, and they reject with that error.
//              So does what waits for the remote; it is durable.
//              A store that was not closed is closed with a warning of type
//              AgentwalLeak once the program holds neither it nor a part of it:
//              sessions, documents, blobs, searches, iterators, followers that wait.
//   Threads    A Worker opens its own Store on the same path. Handles are not
//              passed between threads.

/// <reference types="node" />

// What calls return is of records.d.ts, which bindings/generate.py makes.
export * from './records.js';
import type {
  BackupResult, CheckpointInfo, Claim, CompactStoreResult, Document, ErrorCode, FileChanges, Head,
  ImportClient, ImportResult, MigrateResult, RewindResult, SalvageResult, SearchUpdate,
  SessionInfo, StoreInfo, TransferResult, ViewFlushResult, ViewImportResult, ViewInfo,
} from './records.js';

// -------------------------------------------------------------- errors ---

/** A call of the library failed. `message` says what failed, why, and what to
 * do. */
export class WalError extends Error {
  protected constructor();
  readonly code: ErrorCode;
  /** Number of the system's error, or 0. */
  readonly errno: number;
  /** Process id of the holder for WAL_ELOCKED and WAL_ECLAIMED, or 0. */
  readonly holder: number;
  /** Path that the error is about, or ''. */
  readonly file: string;
  /** Byte in that file, or 0. */
  readonly offset: number;
  /** The present value where another one was expected: an entry's id, or a
   * version or a sequence in decimal; for WAL_EEXISTS the id that is taken. Else ''. Of an id
   * with a NUL what is before that. */
  readonly actual: string;
  /** What was expected, for WAL_ECONFLICT; else null. */
  readonly expectation: 'tail' | 'head' | 'document' | 'metadata' | 'sequence' | null;
  /** Of an append with durability 'cluster' that is durable here: only storing
   * it in the remote failed, or was not waited for, so that the remote may have
   * it or not. Else null. */
  readonly result: AppendResult | null;
}
/** WAL_ECONFLICT. */
export class ConflictError extends WalError {}
/** WAL_ENOTFOUND. */
export class NotFoundError extends WalError {}
/** WAL_ELOCKED and WAL_ECLAIMED. */
export class LockedError extends WalError {}

// --------------------------------------------------------------- store ---

/** When an append is acknowledged: on stable storage; in the system's cache,
 * which survives a killed process; in the queue of this process; on stable
 * storage, and in the remote too, which needs a process that ships the store. */
export type Durability = 'durable' | 'written' | 'queued' | 'cluster';

/** What opens an encrypted store: 16 to 4,096 bytes that cannot be guessed, of which a
 * string is the UTF-8; or a passphrase, which takes a third of a second and 128 MiB. */
export type Key = { secret: string | Uint8Array } | { passphrase: string };

export interface OpenOptions {
  /** Create the store when there is none. Default: true, and false with
   * `readOnly`. */
  create?: boolean;
  /** Fail with WAL_EEXISTS when there is one. */
  exclusive?: boolean;
  /** Write nothing and keep no lock. */
  readOnly?: boolean;
  /** Fail where recovery cannot decide, instead of dropping a torn end. */
  strict?: boolean;
  /** Permit a network file system. */
  networkFs?: boolean;
  /** Read with pread(2) instead of maps. */
  pread?: boolean;
  /** Persistence off: nothing is kept and no file on disk is touched. */
  noop?: boolean;
  /** Operations in the queue; default 256. */
  queueLimit?: number;
  /** Milliseconds until WAL_ELOCKED; default 500. */
  lockTimeout?: number;
  /** With `create`: alignment of groups, 0, 512 or 4096. */
  groupAlign?: number;
  /** Schema version of the sessions that the caller writes. */
  schemaVersion?: number;
  /** Opens an encrypted store; a store that is created with it is one. Else WAL_EKEY. */
  key?: Key;
  /** Do not refuse the key for a store that is not encrypted. */
  keyIfNeeded?: boolean;
}

/** How a call that runs for long is watched and stopped. Such a call runs in a
 * separate thread. */
export interface Progress {
  /** Called in the calling thread, at most some times a second. What it throws
   * stops the call, which rejects with that. */
  onProgress?: (done: number, total: number) => void;
  /** Stops the call: it rejects with the signal's reason, and what was done
   * remains. A call that was over before fulfils. */
  signal?: AbortSignal;
}

export class Store {
  private constructor();
  /** Opens a store; creates it when there is none, in a directory that exists. */
  static open(path: string | URL, options?: OpenOptions): Promise<Store>;
  static openSync(path: string | URL, options?: OpenOptions): Store;
  /** An empty store of this process in memory, dropped when it is closed. */
  static memory(options?: Pick<OpenOptions, 'queueLimit' | 'schemaVersion'>): Store;
  /** Migrates the store at a path to the format of this version. */
  static migrate(path: string | URL, options?: OpenOptions):
    Promise<MigrateResult>;
  /** Makes a new store at `out` from all that can be read of a damaged one. */
  static salvage(path: string | URL, out: string | URL,
    options?: Progress & { networkFs?: boolean }): Promise<SalvageResult>;

  readonly path: string;
  readonly isOpen: boolean;
  info(): StoreInfo;

  /** Creates a session. Rejects with WAL_EEXISTS when the id is taken. */
  create(options?: SessionOptions): Promise<Session>;
  createSync(options?: SessionOptions): Session;
  /** Opens a session by its id. Throws NotFoundError. */
  session(id: string): Session;
  /** The session that was active last, of a directory or of the store; null if
   * there is none. */
  latest(options?: { cwd?: string }): Session | null;
  /** Opens the session `id`, or without an id the latest of `cwd`, and creates
   * it if there is none. Callers that do this at the same time, in any process,
   * get the same session. */
  openOrCreate(options?: SessionOptions): Promise<{ session: Session; created: boolean }>;
  /** Sessions, the one with the latest entry first, at most `limit`; `next` is
   * the position after them, for `after`, or null at the end. */
  list(options?: ListOptions): SessionList;
  /** The same without a limit. */
  sessions(options?: ListOptions): Iterable<SessionInfo> & AsyncIterable<SessionInfo>;
  /** Takes a session out of the trash. */
  undelete(id: string): Promise<void>;

  /** A full-text search over the sessions. `memory`: keep its index in memory, as
   * it is also kept for a store without files and where the store cannot be
   * written. */
  openSearch(options?: { memory?: boolean }): Search;

  /** Documents of the store. */
  readonly documents: Documents;
  readonly blobs: Blobs;

  /** Yields the sequence number of the newest record each time that any process
   * wrote one after `after` (default: now). `durability`: default 'written'. Ends by
   * the signal's reason, or by return(), also while a next() waits. */
  follow(options?: { after?: number; durability?: 'durable' | 'written'; signal?: AbortSignal }):
    AsyncIterable<number>;
  /** Waits until all is durable that is queued here, and that any process has written. */
  sync(): Promise<void>;
  /** Waits until everything queued on this handle before is written. */
  flush(): Promise<void>;
  /** Completes what was asked for before, then closes. May be called again. */
  close(): Promise<void>;
  /** The same, also for a close that is under way; calls whose promises wait for
   * others of this thread fail with WAL_ECLOSED. The end of the process, as by
   * process.exit(), does this to the stores that are not closed. */
  closeSync(): void;
  [Symbol.asyncDispose](): Promise<void>;

  /** Gives back the space of what is dead, and compresses what is live. */
  compact(options?: CompactStoreOptions): Promise<CompactStoreResult>;
  /** Copies the store to a directory while it is in use; later calls copy what
   * is new. */
  backup(path: string | URL, options?: Progress): Promise<BackupResult>;
  /** Takes sessions of another open store into this one. */
  merge(from: Store, options?: IntakeOptions): Promise<TransferResult>;
  /** Writes sessions (default: all) to a bundle, one file. */
  writeBundle(path: string | URL, options?: TransferOptions): Promise<TransferResult>;
  /** Takes in the sessions of a bundle. */
  readBundle(path: string | URL, options?: IntakeOptions): Promise<TransferResult>;
  /** Imports session files of other programs. */
  import(paths: string | URL | (string | URL)[], options?: ImportOptions): Promise<ImportResult>;
  /** Imports them, then what changes in them, until the signal. Yields the
   * result of each round that found something. */
  followImport(paths: string | URL | (string | URL)[], options?: ImportOptions):
    AsyncIterable<ImportResult>;
  /** Views that the store knows of. */
  views(options?: { session?: string; stale?: boolean }): ViewInfo[];
  /** Brings a listed view up to its session, or removes that of a deleted one. */
  updateView(view: ViewInfo): Promise<ViewFlushResult>;
  /** The view that has this path as its main file, or null. */
  findView(path: string | URL): ViewInfo | null;
  /** Adds a root of views to the list of the store. */
  addViewRoot(dialect: string, root: string | URL): Promise<void>;
  /** Sessions that are claimed now. */
  claims(): Claim[];
  /** Permits writes to the store's documents after damage lost some. */
  acceptDamage(): Promise<void>;
}

export interface CompactStoreOptions extends Progress {
  /** Leave no byte of what was deleted or redacted in any file of the store. */
  erase?: boolean;
  /** Report what would be done, with `sessions`; change nothing. */
  dryRun?: boolean;
  /** Delete the sessions in the trash first. */
  emptyTrash?: boolean;
  /** Keep the deltas of messages that are complete. */
  keepDeltas?: boolean;
  /** Of a rewritten segment's records, from which it is rewritten again;
   * default 20. */
  deadPercent?: number;
  /** Of segments to rewrite; default all. */
  maxBytes?: number;
  /** Bytes read and written in a second, at most; default 64 MiB; Infinity: no
   * limit. */
  rate?: number;
}

export interface TransferOptions extends Progress {
  /** Ids; default: all sessions. */
  sessions?: string[];
  /** Of a bundle: where a temporary store is made. */
  directory?: string | URL;
}

/** Of `merge` and `readBundle`. */
export interface IntakeOptions extends TransferOptions {
  /** A session that both stores went on with is not refused: the other one
   * becomes a fork, `ID@NAME`. */
  keepBoth?: boolean;
  /** NAME; default: the first 8 digits of the id of the other store. */
  branchName?: string;
}

/** onProgress is called with bytes of the source that is read, and its size. */
export interface ImportOptions extends Progress {
  /** The only dialect to accept; default: detected. */
  dialect?: string;
  /** Directory that is not imported. */
  exclude?: string | URL;
  /** Which files below directories are sources; default: those that are
   * sessions of a client. */
  select?: 'clients' | 'all' | 'others';
}

// ------------------------------------------------------------ sessions ---

export interface SessionOptions {
  /** 1 to 255 bytes; default: a UUIDv7. */
  id?: string;
  cwd?: string;
  project?: string;
  title?: string;
  parentId?: string;
  /** Where it was imported from; never changes. */
  source?: string;
  metadata?: JsonObject;
  schemaVersion?: number;
  /** A Date, or milliseconds since 1970; default now. */
  created?: Date | number;
}

export interface ListOptions {
  cwd?: string;
  project?: string;
  /** Ids that begin with this. */
  prefix?: string;
  source?: string;
  /** Children of this session. */
  parent?: string;
  /** Ancestors of this session, nearest first; without the other filters. */
  lineageOf?: string;
  /** The sessions in the trash instead of all others. */
  trash?: boolean;
  /** `next` of an earlier list. */
  after?: string;
  changedAfter?: Date | number;
  recordedAfter?: number;
  /** Default 100. */
  limit?: number;
}

export interface SessionList extends Array<SessionInfo> {
  next: string | null;
}

export interface SessionChange {
  metadata?: JsonObject;
  title?: string;
  cwd?: string;
  project?: string;
  schemaVersion?: number;
}

export class Session {
  private constructor();
  readonly id: string;
  readonly store: Store;
  info(): SessionInfo;

  /** Appends entries, all or none. An entry whose id exists with the same
   * content is skipped and counted. */
  append(entries: EntryInput | EntryInput[], options?: AppendOptions): Append;
  /** The same in the calling thread, after the appends before. Throws WAL_EBUSY,
   * since it would overtake them, while other calls on this session are under way
   * whose promises are not settled: of heads, documents, changes, forks. */
  appendSync(entries: EntryInput | EntryInput[], options?: AppendOptions): AppendResult;
  /** Appends entries, puts documents, moves heads and changes metadata, all or
   * nothing. */
  commit(batch: Batch, options?: AppendOptions): Append;

  /** The entries as they are now; default: the branch of the head `main`. */
  entries(options?: ReadOptions): Entries;
  /** Same as entries(). */
  [Symbol.iterator](): Iterator<Entry>;
  /** One entry on any branch, or null. Throws WAL_EREDACTED. */
  entry(id: string): Entry | null;
  /** Yields entries as they are appended by any process, in log order:
   * those after `from`, a sequence number; 'tail' (default) or 'start'. */
  follow(options?: FollowOptions): AsyncIterable<Entry>;

  /** Creates a session that shares the branch up to and including `at`
   * (default: the head). O(1). */
  fork(options?: SessionOptions & { at?: string }): Promise<Session>;

  /** Entry id of a head, or null. */
  head(name?: string, options?: { stream?: number }): string | null;
  heads(): Head[];
  /** Moves, creates or with null removes a head. Fulfils with the entry id that
   * it had, or null; of an id with a NUL with what is before that. */
  moveHead(entryId: string | null, options?: MoveHeadOptions): Promise<string | null>;

  /** Documents of the session. */
  readonly documents: Documents;

  /** Changes metadata and texts by a function of the present state; it is
   * called again when another writer was faster. */
  update(change: SessionChange | ((now: SessionInfo) => SessionChange),
    options?: ExpectSequence): Promise<void>;
  /** Migrates to a schema version, one version at a time. */
  migrate(to: number, step?: (now: SessionInfo) => SessionChange): Promise<void>;

  /** Hides the content of an entry from every reader. */
  redact(entryId: string, reason?: string): Promise<AppendResult>;
  /** Shows the content again, unless it was erased (WAL_EREDACTED). */
  unredact(entryId: string): Promise<void>;
  /** Records that a summary replaces the entries before `firstKept`; with
   * `into` in a fork, which is returned. */
  compact(options: { firstKept: string; summary: string; into?: SessionOptions }):
    Promise<{ session: Session; result: AppendResult }>;

  readonly checkpoints: Checkpoints;
  /** Restores the files of a checkpoint, all or none. */
  rewind(checkpointId: string, options?: RewindOptions): Promise<RewindResult>;
  /** The first state of each file in the checkpoints, compared with the last. */
  diff(): Promise<FileChanges>;

  /** The session as files of another program. */
  view(options: { dialect: string; root: string | URL }): View;
  /** The session as one file of another program. */
  export(options: { dialect: string }): Promise<{ data: Buffer; losses: Record<string, number> }>;

  /** Says that this handle works in the session. Rejects with LockedError when
   * another one does. */
  claim(): Promise<void>;
  unclaim(): Promise<void>;
  acceptDamage(): Promise<void>;
  /** Moves the session to the trash. */
  trash(options?: ExpectSequence): Promise<void>;
  /** Deletes the session for good. */
  delete(options?: ExpectSequence): Promise<void>;
  /** Frees the handle; otherwise that happens when it is collected. */
  close(): void;
  [Symbol.dispose](): void;
}

// ------------------------------------------------------------- entries ---

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json | undefined };
export type JsonObject = { [key: string]: Json | undefined };

/** An entry to append: `payload`, `text` or `line`. */
export interface EntryInput {
  /** 1 to 255 bytes; default: one is made. */
  id?: string;
  /** Default: the head. null: a root. */
  parentId?: string | null;
  /** Default 'message'. */
  type?: string;
  /** Default: now. A text is kept as it is. */
  timestamp?: string | Date;
  runId?: string;
  /** 0 conversation (default), 1 transcript; at most 255. */
  stream?: number;
  /** Any value that JSON has. */
  payload?: unknown;
  /** JSON as text, in place of `payload`. */
  text?: string | Uint8Array;
  /** A line of any bytes, in place of `payload`. */
  line?: string | Uint8Array;
  meta?: JsonObject;
  /** Moves the head in any case, or not. Default: when it goes under the head. */
  moveHead?: boolean;
}

export interface AppendOptions {
  durability?: Durability;
  /** Refuse with ConflictError unless this is the entry of the head `main`;
   * null: an empty stream. */
  expectTail?: string | null;
}

export interface AppendResult {
  appended: number;
  /** Entries that existed with the same content. */
  duplicates: number;
  /** Of the last entry written, or 0. */
  sequence: number;
  lastId: string;
}

/** A promise of the durability asked for. */
export interface Append extends Promise<AppendResult> {
  /** Id of the last entry, known at once; null if there is none. */
  readonly lastId: string | null;
  /** Fulfils when the append is on stable storage. Made when it is read. */
  readonly durable: Promise<void>;
}

export interface Entry {
  readonly id: string;
  readonly parentId: string | null;
  readonly type: string;
  readonly timestamp: string;
  readonly runId: string | null;
  readonly stream: number;
  /** Parsed when it is first read, and kept. Of a line that is no JSON:
   * undefined. */
  readonly payload: any;
  /** The payload as text; of one out of line null. */
  readonly text: string | null;
  /** The payload's bytes; of one out of line null. */
  readonly bytes: Buffer | null;
  readonly meta: JsonObject | null;
  readonly sequence: number;
  readonly depth: number;
  readonly payloadSize: number;
  readonly isLine: boolean;
  readonly isRoot: boolean;
  readonly isRedacted: boolean;
  readonly isOutOfLine: boolean;
  /** Of a payload out of line: the blob that has it; else null. */
  readonly digest: string | null;
}

export interface ReadOptions {
  /** 'branch': the path from a root to an entry. 'all': what a fork shares, then
   * its own in log order. */
  mode?: 'branch' | 'all';
  stream?: number;
  /** Last entry of the branch; default: the head. */
  upTo?: string;
  /** Branch of this head. */
  head?: string;
  skip?: number;
  /** Only the last of them. */
  last?: number;
  sinceCompaction?: boolean;
  /** Stop at the durable end. */
  durable?: boolean;
  deltas?: boolean;
  redacted?: boolean;
  /** Leave payloads above 256 KiB out. */
  outOfLine?: boolean;
}

/** An entry that cannot be read throws WAL_ECORRUPT or WAL_EIO; the next call of
 * next() on the iterator continues after it. */
export interface Entries extends Iterable<Entry>, AsyncIterable<Entry> {
  toArray(): Entry[];
}

export interface FollowOptions {
  from?: 'start' | 'tail' | number;
  /** Which entries are seen; default 'written'. */
  durability?: 'durable' | 'written';
  deltas?: boolean;
  redacted?: boolean;
  stream?: number;
  /** Ends the iteration: it throws the signal's reason. */
  signal?: AbortSignal;
}

export interface MoveHeadOptions {
  name?: string;
  stream?: number;
  note?: string;
  /** Refuse unless the head is at this entry; null: there is no such head. */
  expect?: string | null;
}

/** For a caller that removes or changes a session because of what it read. */
export interface ExpectSequence {
  /** Refuse with ConflictError unless this is `lastSequence` of the session, of
   * the `info()` before what was read: another writer has since written to it. The
   * error's `actual` has the present one. */
  expectSequence?: number;
}

/** At most 32 MiB in all, else WAL_ETOOBIG: append more in parts. */
export interface Batch extends ExpectSequence {
  entries?: EntryInput | EntryInput[];
  documents?: DocumentChange[];
  heads?: ({ entryId: string | null } & MoveHeadOptions)[];
  change?: SessionChange & {
    /** Refuse unless this is `metadataVersion`. Default: any; the batch is then
     * waited for also when it is to be queued, since it begins again when another
     * writer was faster. */
    expectVersion?: number;
  };
}

export interface DocumentChange {
  key: string;
  /** undefined with `delete`. */
  value?: unknown;
  delete?: boolean;
  /** Refuse unless the newest version is this; 0: there is no document. */
  expect?: number;
  /** Of the store instead of the session. */
  store?: boolean;
}

// ----------------------------------------------------------- documents ---

export interface Documents {
  /** The document, or null; with `version` as that version left it. */
  get(key: string, options?: { version?: number }): Document | null;
  /** Fulfils with the newest version. */
  put(key: string, value: unknown, options?: { expect?: number }): Promise<number>;
  delete(key: string, options?: { expect?: number }): Promise<number>;
  list(options?: { prefix?: string; keys?: boolean; history?: boolean }): Document[];
}

// --------------------------------------------------------------- blobs ---

export interface Blobs {
  /** Keeps content under its SHA-256, in hexadecimal. */
  put(content: string | Uint8Array): Promise<string>;
  /** Reads it whole, or null if there is none. */
  get(digest: string): Promise<Buffer | null>;
  /** Opens it to be read in parts. Throws NotFoundError. */
  open(digest: string): BlobReader;
  /** Starts a blob that is written in pieces; `named`: for content that
   * checkpoints.import is to name, which goes with it. */
  create(options?: { named?: boolean }): Promise<BlobWriter>;
}

export interface BlobReader extends AsyncIterable<Buffer> {
  readonly digest: string;
  readonly size: number;
  /** Reads `size` bytes, fewer only at the end. Rejects with WAL_ECORRUPT when
   * they are damaged. */
  read(offset: number, size: number): Promise<Buffer>;
  /** Reads that were asked for before are completed. */
  close(): void;
}

export interface BlobWriter {
  /** Adds a piece. Pieces keep the order of the calls; to wait for each keeps
   * the memory small. */
  write(piece: string | Uint8Array): Promise<void>;
  /** Makes the blob durable. Closes the writer, unless it is one of a named
   * blob: discard that within seconds, once a checkpoint names its content. */
  finish(): Promise<{ digest: string; size: number }>;
  /** Frees the writer; a blob that was not finished is dropped. */
  discard(): void;
}

// --------------------------------------------------------- checkpoints ---

export interface CheckpointOptions {
  id?: string;
  /** Default: the session's cwd. */
  root?: string | URL;
  created?: Date | number;
  /** The entry at which the files are so; default: the head now; null: none. */
  entryId?: string | null;
  threads?: number;
  /** Reject when a path cannot be recorded. */
  allOrNone?: boolean;
}

export interface FileState {
  path: string;
  kind: 'absent' | 'file' | 'symlink';
  mode: number;
  size: number;
  /** Milliseconds since 1970, with a fraction. */
  mtime: number;
  /** SHA-256 in hexadecimal; null when absent. */
  digest: string | null;
}

export interface Checkpoints {
  /** Records the state of files, before they are changed. Fulfils with null when
   * checkpoints are off. Rejects when no path can be recorded. */
  create(paths: string | string[], options?: CheckpointOptions): Promise<CheckpointInfo | null>;
  /** Records files as described; their contents must be blobs of the store. */
  import(files: (Pick<FileState, 'path' | 'kind'> & Partial<FileState>)[],
    options?: CheckpointOptions): Promise<CheckpointInfo | null>;
  get(id: string): CheckpointInfo | null;
  files(id: string): FileState[];
  list(): CheckpointInfo[];
  delete(id: string): Promise<void>;
  /** Compares a checkpoint with another, or with the files on disk. */
  diff(before: string, after?: string): Promise<FileChanges>;
  setEnabled(on: boolean): Promise<void>;
}

export interface RewindOptions {
  dryRun?: boolean;
  force?: boolean;
  /** Move the head to the checkpoint's entry, too. */
  head?: boolean;
  root?: string | URL;
  /** Checkpoint of what the caller last wrote. */
  expected?: string;
}

// --------------------------------------------------------------- views ---

export interface View {
  /** Path of a stream's file. */
  path(stream?: number): string;
  /** Brings the files up to the durable end of the log. */
  flush(): Promise<ViewFlushResult>;
  /** Appends what another program added to the files. */
  import(): Promise<ViewImportResult>;
  /** What the dialect could not express in the last flush, by name. While a
   * flush or an import is under way this, `path` and `issues` throw
   * WAL_EBUSY. */
  losses(): Record<string, number>;
  /** Lines of the last import that were damaged or odd. */
  issues(): { offset: number; reason: string }[];
  /** Flushes and imports that were asked for before are completed. */
  close(): void;
}

// -------------------------------------------------------------- search ---

/** Parts of a conversation. 'tool' is a tool's call, 'result' its result. */
export type SearchRole = 'user' | 'assistant' | 'tool' | 'title' | 'summary' | 'result';

/** onProgress is called with bytes that are indexed; the signal stops that. */
export interface SearchOptions extends Progress {
  /** Project id of the session. */
  project?: string;
  /** Directory of the session. */
  cwd?: string;
  /** Id of the session; with what it shares as a fork. */
  session?: string;
  /** Name of the tool that is called; hits are then calls. */
  tool?: string;
  /** Default: all, without 'result'. */
  roles?: SearchRole[];
  /** Times of entries, from and before: Dates, or milliseconds since 1970. */
  since?: Date | number;
  until?: Date | number;
  /** Sessions; default 20. */
  limit?: number;
  /** Hits of each session; default 3. */
  hits?: number;
  /** Characters of the snippet on each side of a match; default 80. */
  snippet?: number;
  /** Search results of tools too. */
  deep?: boolean;
  /** Take the text literally, and find it inside words too; the newest first. */
  substring?: boolean;
  /** false: use the index as it is. */
  update?: boolean;
}

export interface SearchHit {
  /** null: the title of the session. */
  entryId: string | null;
  role: SearchRole;
  /** 0: none is known. */
  time: number;
  /** As the entry has it. */
  timestamp: string;
  sequence: number;
  /** Name of the tool of a call, or null. */
  tool: string | null;
  /** One line around the first match. */
  snippet: string;
  /** Start and end of each match in the snippet, as of String.slice. */
  matches: [start: number, end: number][];
  /** Higher is better. */
  score: number;
}

export interface SearchSession {
  sessionId: string;
  /** Or its first text. */
  title: string;
  cwd: string;
  projectId: string;
  updated: number;
  /** Records that have all words; of a phrase, they may be elsewhere in the
   * record. */
  matches: number;
  /** The best first. */
  hits: SearchHit[];
}

/** Calls are made one after the other. */
export interface Search {
  /** Finds the records that have all words of the text: words, "a phrase",
   * begin*, -without. What was appended before is found. The best session is
   * first. Rejects with WAL_EINVAL for a text without a word, and with
   * WAL_ENOTFOUND or WAL_ETRASHED for `session`. */
  find(text: string, options?: SearchOptions): Promise<SearchSession[]>;
  /** The same in the calling thread, of what is written. Throws WAL_EBUSY while
   * another call runs. */
  findSync(text: string, options?: Omit<SearchOptions, keyof Progress>): SearchSession[];
  /** Brings the index up to date, as find() does; with `deep` that of tools'
   * results too. */
  update(options?: Progress & { deep?: boolean }): Promise<SearchUpdate>;
  /** Frees the search once the calls that were made before are completed; files
   * of the index remain. Otherwise that happens when it is collected. */
  close(): void;
  [Symbol.dispose](): void;
}

// ------------------------------------------------------------- library ---

/** Version of the library. */
export const version: string;
/** Names of the dialects of views, and of imports. */
export const viewDialects: readonly string[];
export const importDialects: readonly string[];
/** Folders of clients whose session files are known by their path; dialect empty: they cannot be
 * read; folder null: unknown. */
export function importClients(): ImportClient[];
/** Counts what Store.import would import. */
export function scanImport(paths: string | URL | (string | URL)[], options?: ImportOptions):
  Promise<ImportResult>;
/** Whether the file begins as a bundle does. */
export function isBundle(path: string | URL): boolean;
