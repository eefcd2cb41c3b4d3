'use strict';

// A Session of the OpenAI Agents SDK on a store: docs/adapters.md. Needs
// no package of the SDK.
//
// A history is the branch of the head `main`; its items are entries of stream 0.
//   popItem            moves the head back
//   clearSession       moves the head to a new root of type "openai.clear". The
//                      document "openai/epoch" has its id: what was applied
//                      before it is forgotten
//   a transaction      has the entry "op/EPOCH/OPERATION", which is on no branch,
//                      and its items are "op/EPOCH/OPERATION/N"; in one batch
//   a change of items  goes on from the last one that stays: the old ones remain
//                      readable, as every entry does

const { randomUUID } = require('node:crypto');

const {
  StoreHandle, checkName, checkOptions, findSession, idPart, retryConflicts, sessionId,
} = require('../adapter/names.js');
const { Store } = require('../index.js');
const {
  canonical, copyItems, decodeItem, digest, encodeItem, isItem,
} = require('./items.js');
const { checkTransaction, applyMutations } = require('./changes.js');

const KIND = 'openai';
const EPOCH = 'openai/epoch';

/** A transaction was refused: its suffix is not the end of the history, or its
 * operation was applied with other content. */
class HistoryConflictError extends Error {
  constructor(code, message) {
    super(message);
    this.name = 'HistoryConflictError';
    this.code = code;
  }
}

class AgentwalSession {
  #handle;
  #sessionId;
  #id;
  #durability;

  constructor(storeOrPath, options) {
    const { sessionId: name, id, durability } = checkOptions(options);
    this.#handle = new StoreHandle(Store, storeOrPath);
    this.#sessionId = name === undefined ? randomUUID()
      : checkName('sessionId', name);
    this.#id = id === undefined ? sessionId(KIND, this.#sessionId)
      : checkName('id', id, { limit: 255 });
    this.#durability = durability ?? 'durable';
  }

  async getSessionId() {
    return this.#sessionId;
  }

  async getItems(limit) {
    return await this.#read([], (session) =>
      lastItems(session, session.head(), limit).map(decodeItem));
  }

  async addItems(items) {
    const entries = copyItems(items).map(encodeItem);

    if (entries.length > 0) {
      await this.#write((session) => session.append(entries, this.#options()));
    }
  }

  async popItem() {
    return await this.#read(undefined, async (session) => {
      const head = session.head();
      const [last] = lastItems(session, head, 1);

      if (last === undefined) {
        return undefined;
      }
      await this.#continue(session, { head, base: last.parentId, entries: [] });
      return decodeItem(last);
    });
  }

  async clearSession() {
    const id = `clear/${randomUUID()}`;

    await this.#read(undefined, (session) => session.commit({
      entries: { id, type: 'openai.clear', payload: {}, parentId: null,
        moveHead: true },
      documents: [{ key: EPOCH, value: id }],
    }, this.#options()));
  }

  async replaceHistoryWithCompaction(items) {
    const entries = copyItems(items).map(encodeItem);

    await this.#write((session) =>
      this.#continue(session, { base: epochOf(session), entries }));
  }

  async applyHistoryMutations({ mutations }) {
    const changes = structuredClone(mutations);

    await this.#read(undefined, async (session) => {
      const head = session.head();
      const stored = lastItems(session, head);
      const before = stored.map(decodeItem);
      const after = applyMutations(before, changes);
      const kept = after.findIndex((item, index) => item !== before[index]);
      const start = kept < 0 ? after.length : kept;

      if (start < before.length) {
        await this.#continue(session, { head, base: stored[start].parentId,
          entries: after.slice(start).map(encodeItem) });
      }
    });
  }

  async applyHistoryTransaction(args) {
    const { operationId, transaction } = checkTransaction(args);
    const entries = (transaction.items ?? transaction.replacement)
      .map(encodeItem);

    await this.#write((session) => this.#apply(session,
      { operationId, transaction, entries }));
  }

  /** Closes the store, if it was given by its path. */
  close() {
    return this.#handle.close();
  }

  // ------------------------------------------------------------------------

  #options() {
    return { durability: this.#durability };
  }

  /** Calls fn with the session, again when another writer was faster; the
   * result is `none` when there is no session. */
  #read(none, fn) {
    return retryConflicts(async () => {
      const session = findSession(await this.#handle.get(), this.#id);

      return session === null ? none : await use(session, fn);
    });
  }

  /** The same; a session is created if needed. */
  #write(fn) {
    return retryConflicts(async () => {
      const store = await this.#handle.get();
      const session = findSession(store, this.#id) ??
        (await store.openOrCreate({ id: this.#id, source: 'openai-agents',
          metadata: { openai: { sessionId: this.#sessionId } } })).session;

      return await use(session, fn);
    });
  }

  /** Applies a transaction, unless it was. The head is read before everything
   * else and expected by the batch, so that all that was read belongs to it: a
   * clear, too, moves the head. */
  async #apply(session, { operationId, transaction, entries }) {
    const head = session.head();
    const epoch = (epochOf(session) ?? 'clear/').slice('clear/'.length);
    const id = `op/${epoch}/${idPart(operationId, 128)}`;
    const content = digest(transaction);
    const applied = session.entry(id);

    if (applied !== null) {
      if (applied.payload.digest !== content) {
        throw new HistoryConflictError('OPERATION_REUSED',
          `operation "${operationId}" was applied with another transaction`);
      }
      return;
    }
    const base = transaction.type === 'append_items'
      ? head : findBase(session, head, transaction.expectedSuffix);

    await this.#continue(session, { head, base,
      operation: { id, type: 'openai.operation', parentId: null, moveHead: false,
        payload: { operationId, type: transaction.type, digest: content } },
      entries: entries.map((entry, index) => ({ ...entry, id: `${id}/${index}` })) });
  }

  /**
   * Makes `entries` follow `base`, and the last of them, or else the base, the
   * end of the history; with `head`, if that is the end now.
   *
   * Both the tail and the head are expected. A head that is at the base already
   * is left there, whatever is expected of it: two callers that remove the same
   * item would both succeed. And the tail is not looked at when all entries
   * exist: an operation that is sent twice would remove what was added since.
   */
  async #continue(session, { head, base, entries, operation }) {
    const chain = operation === undefined ? [] : [operation];
    let end = base;

    for (const entry of entries) {
      chain.push({ id: randomUUID(), ...entry, parentId: end, moveHead: true });
      end = chain[chain.length - 1].id;
    }
    const heads = entries.length === 0 && base !== head
      ? [{ entryId: base, expect: head }] : [];

    if (chain.length + heads.length > 0) {
      await session.commit({ entries: chain, heads },
        { durability: this.#durability, expectTail: head });
    }
  }
}

async function use(session, fn) {
  try {
    return await fn(session);
  } finally {
    session.close();
  }
}

function epochOf(session) {
  return session.documents.get(EPOCH)?.value ?? null;
}

/** The last items of a branch, at most `limit`; other entries are left out. */
function lastItems(session, head, count = Infinity) {
  // As MemorySession of the SDK counts.
  const limit = Number.isNaN(count) ? Infinity : Math.ceil(count);

  if (head === null || !(limit > 0)) {
    return [];
  }
  for (let last = limit; ; last *= 4) {
    const entries = session.entries({ upTo: head,
      ...(last <= 65536 ? { last } : {}) }).toArray();
    const items = entries.filter(isItem);

    if (items.length >= limit || last > 65536 || entries.length < last) {
      return items.slice(-Math.min(limit, items.length || 1));
    }
  }
}

/** The entry that is before the items of a suffix. */
function findBase(session, head, suffix) {
  if (suffix.length === 0) {
    return head;
  }
  const items = lastItems(session, head, suffix.length);

  if (items.length < suffix.length || !items.every((entry, index) =>
    canonical(decodeItem(entry)) === canonical(suffix[index]))) {
    throw new HistoryConflictError('SUFFIX_MISMATCH',
      'the history does not end with the suffix that was expected');
  }
  return items[0].parentId;
}

module.exports = { AgentwalSession, HistoryConflictError };
