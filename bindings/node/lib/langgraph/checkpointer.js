'use strict';

// A checkpointer of LangGraph on a store: docs/adapters.md. This file has what
// depends on LangGraph, its serialiser and configurations; thread.js
// has the mapping to a session.

const {
  StoreHandle, checkName, checkOptions, findSession, retryConflicts, sessionId, sessionName,
} = require('../adapter/names.js');
const { NotFoundError } = require('../base/errors.js');
const { Thread } = require('./thread.js');
const { Values, fromJson, pack } = require('./values.js');

const KIND = 'lg';
const MAX_ID = 255; // bytes of the id of a checkpoint or task

const own = (object, key) => Object.prototype.hasOwnProperty.call(object, key);

function configOf(thread, ns, id) {
  return { configurable:
    { thread_id: thread, checkpoint_ns: ns, checkpoint_id: id } };
}

const metadataOf = (thread) => ({ langgraph: { threadId: thread } });

function matches(metadata, filter = {}) {
  return Object.entries(filter).every(([key, value]) => metadata[key] === value);
}

const threadSession = (thread) => sessionId(KIND, checkName('thread_id', thread));
const checkNamespace = (ns) =>
  checkName('checkpoint_ns', ns, { isEmptyValid: true });
const checkId = (what, id) => checkName(what, id, { limit: MAX_ID });

/** A checkpointer. `peer` is @langchain/langgraph-checkpoint; getSerde returns
 * the serialiser. */
class Checkpointer {
  #peer;
  #getSerde;
  #handle;
  #values;
  #durability;

  constructor(peer, Store, storeOrPath, options, getSerde) {
    this.#peer = peer;
    this.#getSerde = getSerde;
    this.#handle = new StoreHandle(Store, storeOrPath);
    this.#values = new Values(options.cacheBytes ?? 16 << 20);
    this.#durability = options.durability ?? 'durable';
  }

  close() {
    return this.#handle.close();
  }

  async getTuple(config) {
    return await this.#withRecord(config, (thread, record) =>
      this.#tuple(thread, config.configurable.thread_id, record));
  }

  async *list(config, { limit = Infinity, before, filter } = {}) {
    const { thread_id: threadId, checkpoint_ns: ns, checkpoint_id: id } =
      config?.configurable ?? {};
    const wanted = { ns: ns === undefined ? undefined : checkNamespace(ns),
      id: id || undefined, before: before?.configurable?.checkpoint_id };
    let left = limit;

    for (const name of await this.#threadIds(threadId)) {
      const thread = left > 0 ? await this.#find(name) : null;

      if (thread === null) {
        continue;
      }
      try {
        for (const record of thread.records(wanted)) {
          const tuple = await this.#match(thread, name, record, filter);

          if (tuple !== undefined && left-- > 0) {
            yield tuple;
          }
          if (left <= 0) {
            break;
          }
        }
      } finally {
        thread.close();
      }
    }
  }

  async put(config, checkpoint, metadata, newVersions = {}) {
    const { thread_id: threadId, checkpoint_ns: ns = '', checkpoint_id: parent } =
      config.configurable ?? {};
    const { channel_values: values, channel_versions: versions, ...rest } =
      this.#peer.copyCheckpoint(checkpoint);
    const serde = this.#getSerde();
    const typed = new Map();

    threadSession(threadId);
    if (parent !== undefined) {
      checkId('checkpoint_id', parent);
    }
    const put = {
      ns: checkNamespace(ns), id: checkId('checkpoint.id', rest.id), parent,
      checkpoint: pack(await serde.dumpsTyped(rest)),
      metadata: pack(await serde.dumpsTyped(metadata)),
      versions, given: Object.keys(values),
      isNew: (channel) => own(newVersions, channel),
      serialise: async (channel) => {
        if (!typed.has(channel)) {
          const [type, data] = await serde.dumpsTyped(values[channel]);

          typed.set(channel, { type, data });
        }
        return typed.get(channel);
      },
    };

    await this.#write(threadId, (thread) => thread.putCheckpoint(put));
    return configOf(threadId, ns, rest.id);
  }

  async putWrites(config, writes, taskId, taskPath = '') {
    const { thread_id: threadId, checkpoint_ns: ns = '', checkpoint_id: id } =
      config.configurable ?? {};

    threadSession(threadId);
    checkNamespace(ns);
    checkId('checkpoint_id', id);
    checkId('task_id', taskId);
    const made = await Promise.all(writes.map(async ([channel, value], i) => {
      const [type, data] = await this.#getSerde().dumpsTyped(value);
      const map = this.#peer.WRITES_IDX_MAP;

      return { channel, type, data, index: own(map, channel) ? map[channel] : i };
    }));

    if (made.length > 0) {
      await this.#write(threadId, (thread) => thread.putWrites(ns, id,
        { writes: made, task: taskId, path: taskPath }));
    }
  }

  async deleteThread(threadId) {
    const store = await this.#handle.get();
    const id = threadSession(threadId);
    let session;

    try {
      session = findSession(store, id);
    } catch (error) {
      if (error.code !== 'WAL_ETRASHED') {
        throw error;
      }
      await store.undelete(id);
      session = findSession(store, id);
    }
    try {
      await session?.delete();
    } catch (error) {
      if (error.code !== 'WAL_ENOTFOUND') {
        throw error;
      }
    } finally {
      session?.close();
    }
  }

  async copyThread(sourceId, targetId) {
    const id = threadSession(targetId);
    const source = await this.#find(sourceId);

    try {
      if (!await source?.fork({ id, source: 'langgraph',
        metadata: metadataOf(targetId) })) {
        throw new NotFoundError(`there is no thread "${sourceId}"`,
          { code: 'WAL_ENOTFOUND' });
      }
    } finally {
      source?.close();
    }
  }

  async getDeltaChannelHistory({ config, channels }) {
    const history = new Map(
      channels.map((channel) => [channel, { writes: [] }]));

    if (channels.length > 0) {
      await this.#withRecord(config, (thread, record) =>
        this.#walk(thread, record, history));
    }
    return Object.fromEntries(history);
  }

  // ------------------------------------------------------------ threads ---

  async #find(threadId) {
    const id = threadSession(threadId);
    const session = findSession(await this.#handle.get(), id);

    return session && new Thread(session, this.#values, this.#durability);
  }

  /** Calls fn with the thread and the record of a configuration; undefined when
   * there is none. */
  async #withRecord(config, fn) {
    const { thread_id: threadId, checkpoint_ns: ns = '' } =
      config.configurable ?? {};
    const id = this.#peer.getCheckpointId(config);
    const thread = threadId === undefined ? null : await this.#find(threadId);

    checkNamespace(ns);
    if (thread === null) {
      return undefined;
    }
    try {
      const record = id === ''
        ? thread.latest(ns) : thread.record(ns, checkId('checkpoint_id', id));

      return record === null ? undefined : await fn(thread, record);
    } finally {
      thread.close();
    }
  }

  /** Calls fn with the thread, which is created if needed, again when another
   * writer was faster. */
  #write(threadId, fn) {
    return retryConflicts(async () => {
      let thread = await this.#find(threadId);

      if (thread === null) {
        const store = await this.#handle.get();
        const { session } = await store.openOrCreate({
          id: threadSession(threadId), source: 'langgraph',
          metadata: metadataOf(threadId) });

        thread = new Thread(session, this.#values, this.#durability);
      }
      try {
        await fn(thread);
      } finally {
        thread.close();
      }
    });
  }

  /** The ids of all threads, or the one that is given. */
  async #threadIds(threadId) {
    if (threadId !== undefined) {
      return [threadId];
    }
    const store = await this.#handle.get();
    const ids = [];

    for (const { id } of store.sessions({ prefix: KIND + '/' })) {
      ids.push(sessionName(KIND, id));
    }
    for (const { id } of store.sessions({ prefix: KIND + '#' })) {
      const session = findSession(store, id);

      ids.push(session?.info().metadata?.langgraph?.threadId);
      session?.close();
    }
    return ids.filter((id) => typeof id === 'string');
  }

  // ------------------------------------------------------------- tuples ---

  /** The tuple of a record that the filter matches, else undefined; also when
   * one of its values was redacted. */
  async #match(thread, threadId, record, filter) {
    try {
      const metadata = await this.#unpack(record.metadata);

      return matches(metadata, filter)
        ? await this.#tuple(thread, threadId, record, metadata) : undefined;
    } catch (error) {
      if (error.code !== 'WAL_EREDACTED') {
        throw error;
      }
      return undefined;
    }
  }

  async #tuple(thread, threadId, record, metadata) {
    const { ns, id, parent } = record;
    const checkpoint = {
      ...await this.#unpack(record.checkpoint),
      channel_values: Object.fromEntries(await Promise.all(
        Object.entries(record.values).map(async ([channel, reference]) =>
          [channel, await this.#load(thread, reference)]))),
      channel_versions: record.versions,
    };

    if (checkpoint.v < 4 && parent !== undefined) {
      await this.#migrateSends(thread, checkpoint, ns, parent);
    }
    return {
      config: configOf(threadId, ns, id), checkpoint,
      metadata: metadata ?? await this.#unpack(record.metadata),
      pendingWrites: await Promise.all(this.#sorted(thread, ns, id).map(
        (write) => this.#loadWrite(thread, write))),
      ...(parent === undefined
        ? {} : { parentConfig: configOf(threadId, ns, parent) }),
    };
  }

  /** Checkpoints before version 4 have their sends as pending writes of their
   * parent. */
  async #migrateSends(thread, checkpoint, ns, parent) {
    const { TASKS, maxChannelVersion } = this.#peer;
    const versions = Object.values(checkpoint.channel_versions);
    const sends = this.#sorted(thread, ns, parent)
      .filter(({ channel }) => channel === TASKS);

    checkpoint.channel_values[TASKS] = await Promise.all(
      sends.map(({ value }) => this.#load(thread, value)));
    checkpoint.channel_versions[TASKS] =
      versions.length > 0 ? maxChannelVersion(...versions) : 1;
  }

  #sorted(thread, ns, id) {
    const key = ({ path, task, index }) => [path, task, index];

    return thread.writes(ns, id).sort((a, b) =>
      this.#peer.compareWritesSortKeys(key(a), key(b)));
  }

  /** Walks from a record's parent to the root, until each channel has a seed. */
  async #walk(thread, { ns, parent }, history) {
    const open = new Set(history.keys());
    const found = new Map([...open].map((channel) => [channel, []]));
    const seen = new Set();

    for (let id = parent; id !== undefined && open.size > 0 && !seen.has(id);) {
      const record = thread.record(ns, id);

      if (record === null) {
        break;
      }
      for (const write of this.#sorted(thread, ns, id).reverse()) {
        if (open.has(write.channel)) {
          found.get(write.channel).push(await this.#loadWrite(thread, write));
        }
      }
      for (const channel of open) {
        const seed = own(record.values, channel)
          ? await this.#load(thread, record.values[channel]) : undefined;

        if (seed !== undefined) {
          history.get(channel).seed = seed;
          open.delete(channel);
        }
      }
      seen.add(id);
      id = record.parent;
    }
    for (const [channel, writes] of found) {
      history.get(channel).writes = writes.reverse();
    }
  }

  async #loadWrite(thread, { task, channel, value }) {
    return [task, channel, await this.#load(thread, value)];
  }

  /** The serialiser gets a copy: bytes are values themselves, which the caller
   * may change. */
  #load(thread, reference) {
    const { type, bytes } = thread.readValue(reference);

    return this.#getSerde().loadsTyped(type, new Uint8Array(bytes));
  }

  #unpack({ json, typed }) {
    if (typed === undefined) {
      return this.#getSerde().loadsTyped('json', JSON.stringify(json));
    }
    const { type, bytes } = fromJson(typed);

    return this.#getSerde().loadsTyped(type, new Uint8Array(bytes));
  }
}

/** The class that users see, for one of the two faces of the peer. */
function defineSaver(peer, Store) {
  return class AgentwalSaver extends peer.BaseCheckpointSaver {
    #checkpointer;

    constructor(storeOrPath, options) {
      const given = checkOptions(options);
      super(given.serde);
      this.#checkpointer = new Checkpointer(peer, Store, storeOrPath, given,
        () => this.serde);
    }

    getTuple(config) {
      return this.#checkpointer.getTuple(config);
    }

    list(config, options) {
      return this.#checkpointer.list(config, options);
    }

    put(config, checkpoint, metadata, newVersions) {
      return this.#checkpointer.put(config, checkpoint, metadata, newVersions);
    }

    putWrites(config, writes, taskId, taskPath) {
      return this.#checkpointer.putWrites(config, writes, taskId, taskPath);
    }

    deleteThread(threadId) {
      return this.#checkpointer.deleteThread(threadId);
    }

    /** Creates a thread that has all checkpoints and writes of another one and
     * shares their space. */
    copyThread(sourceThreadId, targetThreadId) {
      return this.#checkpointer.copyThread(sourceThreadId, targetThreadId);
    }

    getDeltaChannelHistory(options) {
      return this.#checkpointer.getDeltaChannelHistory(options);
    }

    /** Closes the store, if it was given by its path. */
    close() {
      return this.#checkpointer.close();
    }
  };
}

module.exports = { defineSaver };
