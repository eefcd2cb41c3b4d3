// Uses the declarations; types.test.mjs compiles it.
import {
  Append, AppendResult, ConflictError, Documents, Entry, EntryInput, ErrorCode,
  LockedError, NotFoundError, Session, SessionInfo, SessionList, Store, WalError, version,
} from 'agentwal';

async function use(): Promise<void> {
  const store: Store = await Store.open('path', { readOnly: true, queueLimit: 8 });
  const other: Store = Store.openSync(new URL('file:///x'));
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

function handle(error: unknown): ErrorCode | undefined {
  if (error instanceof ConflictError || error instanceof NotFoundError ||
      error instanceof LockedError) {
    const wal: WalError = error;
    return wal.actual === '' ? undefined : wal.code;
  }
  return undefined;
}

// What must not compile.
// @ts-expect-error a store is made by its static functions
new Store();
// @ts-expect-error so is a session
new Session();
// @ts-expect-error no such durability
Store.memory().createSync().append({ payload: 1 }, { durability: 'soon' });
// @ts-expect-error an id is a string
Store.memory().createSync({ id: 7 });
// @ts-expect-error results are read-only
Store.memory().createSync().append({ payload: 1 }).lastId = 'x';

void [use, handle];
