// Uses the declarations; types.test.mjs compiles it.
import {
  Append, AppendResult, BackupResult, BlobReader, BlobWriter, CheckpointInfo, CompactStoreResult,
  ConflictError, Documents, Entry, EntryInput, ErrorCode, FileChanges, importClients,
  importDialects, ImportResult, isBundle, Key, LockedError, NotFoundError, RewindResult,
  SalvageResult, scanImport, Search, SearchOptions, SearchSession, SearchUpdate, Session,
  SessionInfo, SessionList, Store, TransferResult, version, View, viewDialects, ViewInfo,
  WalError,
} from 'agentwal';

async function use(): Promise<void> {
  const store: Store = await Store.open('path', { readOnly: true, queueLimit: 8 });
  const key: Key = { secret: new Uint8Array(32) };
  const other: Store = Store.openSync(new URL('file:///x'), { key, keyIfNeeded: true });
  const memory: Store = Store.memory({ queueLimit: 1 });
  const session: Session =
    await store.create({ id: 's', created: new Date(), metadata: { a: [1] } });
  const { created }: { created: boolean } = await store.openOrCreate();
  const latest: Session | null = memory.latest({ cwd: '/x' });
  const list: SessionList = other.list({ limit: 1 });
  const next: string | null = list.next;
  const inputs: EntryInput[] =
    [{ payload: 1 }, { line: new Uint8Array(1) }, { text: '1', parentId: null }];
  const append: Append = session.append(inputs, { durability: 'written', expectTail: null });
  session.append(inputs, { durability: 'cluster' }).catch(() => {});
  const id: string | null = append.lastId;
  const result: AppendResult = await append;
  await append.durable;
  const same: AppendResult = session.appendSync({ payload: undefined });
  const batch: Append = session.commit({
    entries: inputs, documents: [{ key: 'k', value: 1, expect: 0 }, { key: 'l', delete: true }],
    heads: [{ entryId: null, name: 'n', expect: 'x' }], change: { title: 't', expectVersion: 1 },
  });
  for (const entry of session) {
    const one: Entry = entry;
    const text: string | null = one.text;
    void [one.payload.anything, text];
  }
  for await (const entry of session.entries({ mode: 'all', last: 1 })) {
    void entry.meta?.key;
  }
  for await (const entry of session.follow({ from: 7, signal: new AbortController().signal })) {
    void entry.bytes?.length;
  }
  for await (const sequence of store.follow()) {
    const number: number = sequence;
    void number;
  }
  for (const info of store.sessions()) {
    const one: SessionInfo = info;
    void one;
  }
  const documents: Documents = session.documents;
  const put: number = await documents.put('k', { a: 1 }, { expect: 0 });
  await session.update((now) => ({ title: now.title + '!', metadata: { ...now.metadata } }));
  await session.update({ title: 't' });
  const head: string | null = await session.moveHead('e', { stream: 1, note: 'n' });
  const fork: Session = await session.fork({ at: 'e', title: 't' });
  void [created, latest, next, id, result, same, batch, put, head, fork, version];
  await store.close();
}

async function useContent(store: Store, session: Session): Promise<void> {
  const digest: string = await store.blobs.put(new Uint8Array(1));
  const content: Buffer | null = await store.blobs.get(digest);
  const reader: BlobReader = store.blobs.open(digest);
  for await (const piece of reader) {
    void piece.length;
  }
  const writer: BlobWriter = await store.blobs.create({ named: true });
  await writer.write('x');
  const { size }: { size: number } = await writer.finish();
  const { checkpoints } = session;
  const made: CheckpointInfo | null =
    await checkpoints.create(['a'], { entryId: null, root: new URL('file:///x') });
  await checkpoints.import([{ path: 'a', kind: 'file', digest }, { path: 'b', kind: 'absent' }]);
  const changes: FileChanges = await checkpoints.diff('c');
  const rewound: RewindResult = await session.rewind('c', { dryRun: true, head: true });
  void [content, size, made, changes, rewound];
}

async function useOthers(store: Store, session: Session): Promise<void> {
  const { signal } = new AbortController();
  const onProgress = (done: number, total: number): void => { void [done, total]; };
  const view: View = session.view({ dialect: viewDialects[0], root: new URL('file:///x') });
  const losses: Record<string, number> = view.losses();
  const { data } = await session.export({ dialect: 'claude' });
  const views: ViewInfo[] = store.views({ stale: true });
  await store.updateView(views[0]);
  const scanned: ImportResult = await scanImport(['a', new URL('file:///b')], { select: 'all' });
  for await (const round of store.followImport('a', { signal })) {
    const error: WalError | null = round.reports[0].error;
    void error;
  }
  const search: Search = store.openSearch({ memory: true });
  const options: SearchOptions = { roles: ['user', 'title'], since: new Date(), until: 5, signal };
  const found: SearchSession[] = await search.find('x', { ...options, deep: true, update: false });
  const [[start, end]]: [number, number][] = found[0].hits[0].matches;
  const [first]: SearchSession[] = search.findSync('x', { limit: 5, hits: 1, snippet: 9 });
  const id: string | null = first.hits[0].entryId;
  const { built }: SearchUpdate = await search.update({ deep: true, onProgress });
  const merged: TransferResult = await store.merge(Store.memory(), { sessions: ['a'], onProgress });
  const compacted: CompactStoreResult = await store.compact({ rate: Infinity, onProgress, signal });
  const copied: BackupResult = await store.backup('b', { signal });
  const salvaged: SalvageResult = await Store.salvage('a', 'b', { networkFs: true, onProgress });
  const { to }: { to: number } = await Store.migrate('a', { networkFs: true });
  void [start, end, id, built];
  void [losses, data.length, scanned, merged, compacted, copied, salvaged, to, importDialects,
    importClients()[0].folder, isBundle('b'), store.claims()[0].own];
}

function handle(error: unknown): ErrorCode | undefined {
  if (error instanceof ConflictError || error instanceof NotFoundError ||
      error instanceof LockedError) {
    const wal: WalError = error;
    return wal.actual === '' && !wal.result?.lastId ? undefined : wal.code;
  }
  return undefined;
}

// What must not compile.
// @ts-expect-error a store is made by its static functions
new Store();
// @ts-expect-error so is a session
new Session();
// @ts-expect-error a key is a secret or a passphrase
Store.openSync('x', { key: 'secret' });
// @ts-expect-error no such durability
Store.memory().createSync().append({ payload: 1 }, { durability: 'soon' });
// @ts-expect-error an id is a string
Store.memory().createSync({ id: 7 });
// @ts-expect-error the dialect must be named
Store.memory().createSync().view({ root: 'x' });
// @ts-expect-error there is no such selection
void scanImport('x', { select: 'some' });
// @ts-expect-error there is no such role
void Store.memory().openSearch().find('x', { roles: ['person'] });
// @ts-expect-error a signal cannot stop it
Store.memory().openSearch().findSync('x', { signal: new AbortController().signal });
// @ts-expect-error results are read-only
Store.memory().createSync().append({ payload: 1 }).lastId = 'x';

void [use, useContent, useOthers, handle];
