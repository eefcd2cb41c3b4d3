'use strict';
// The SessionStore of the Claude Agent SDK on a store of agentwal; the contract
// of each method is in claude-session-store.d.ts.

const { Store } = require('../index.js');
const { StoreHandle } = require('../adapter/names.js');
const { closed, invalid, WalError } = require('../base/errors.js');
const { toOptions } = require('../base/options.js');
const { AppendQueue } = require('./append.js');
const { forkSession } = require('./fork.js');
const { Key } = require('./key.js');
const { serialize } = require('./rows.js');
const {
  deleteTree, findSession, infoOf, isMissing, listMains, listSubs,
} = require('./sessions.js');
const { readSummary } = require('./summary.js');
const { readTranscript } = require('./transcript.js');

const QUEUES_MAX = 256; // that are kept while idle
const DURABILITIES = ['durable', 'written', 'queued'];

/** What the parts of an adapter share. */
class Owner {
  #handle;
  #isClosed = false;

  constructor(store, options) {
    const { durability = 'durable', foldSessionSummary, open, damaged = 'reject' } = options;
    if (!DURABILITIES.includes(durability)) {
      throw invalid(`the durability is "durable", "written" or "queued", not ${durability}`);
    }
    if (damaged !== 'reject' && damaged !== 'skip') {
      throw invalid(`damaged is "reject" or "skip", not ${damaged}`);
    }
    this.#handle = new StoreHandle(Store, store, open);
    this.durability = durability;
    this.fold = foldSessionSummary;
    this.skipsDamage = damaged === 'skip';
    this.stats = { appended: 0, duplicates: 0, ignored: 0, retries: 0, unreadable: 0 };
  }

  /** The store; opened by the first call that needs it. */
  async open() {
    if (this.#isClosed) {
      throw closed('session store');
    }
    return this.#handle.get();
  }

  /** Closes the store if this opened it. */
  async close() {
    if (!this.#isClosed) {
      this.#isClosed = true;
      await this.#handle.close();
    }
  }
}

/** The value of a function of a session, or null when it was deleted meanwhile. */
function unlessDeleted(read) {
  try {
    return read();
  } catch (error) {
    if (isMissing(error)) {
      return null;
    }
    throw error;
  }
}

class AgentwalSessionStore {
  #owner;
  #queues = new Map();
  #closing = null;

  constructor(store, options) {
    if (!(store instanceof Store) && typeof store !== 'string' && !(store instanceof URL)) {
      throw invalid('the first argument is neither a Store nor the path of one');
    }
    this.#owner = new Owner(store, toOptions(options));
  }

  get stats() {
    return { ...this.#owner.stats };
  }

  async append(key, entries) {
    const place = new Key(key);
    const rows = serialize(entries);

    if (this.#closing !== null) {
      throw closed('session store');
    }
    if (rows.length > 0) {
      await this.#queueOf(place).add(rows);
    }
  }

  async load(key) {
    const place = new Key(key);
    const session = findSession(await this.#owner.open(), place);
    const { stats, skipsDamage } = this.#owner;

    try {
      const info = session?.info();
      if (info === undefined || info.entries === 0 && !info.isDamaged) {
        return null;
      }
      if (info.isDamaged && !skipsDamage) {
        throw new WalError(`session "${info.id}" lost entries to damage; accept the damage, ` +
          'or use the option damaged: "skip"', { code: 'WAL_EDAMAGED' });
      }
      const onDamage = skipsDamage ? () => { stats.unreadable++; } : undefined;
      return (await readTranscript(session, stats, onDamage)).map((row) => row.value);
    } catch (error) {
      if (isMissing(error)) {
        return null;
      }
      throw error;
    }
  }

  async listSessions(projectKey) {
    return (await this.#readSummaries(projectKey))
      .map(({ sessionId, state }) => ({ sessionId, mtime: state.modified }));
  }

  async listSessionSummaries(projectKey) {
    return (await this.#readSummaries(projectKey))
      .filter(({ state }) => state.data !== null)
      .map(({ sessionId, state }) => ({ sessionId, mtime: state.modified, data: state.data }));
  }

  async #readSummaries(projectKey) {
    checkProjectKey(projectKey);
    const store = await this.#owner.open();
    const found = [];

    for (const { key, info } of listMains(store, projectKey)) {
      const state = unlessDeleted(() => readSummary(store.session(info.id)));
      if (state !== null) {
        found.push({ sessionId: key.sessionId, state });
      }
    }
    return found;
  }

  async listSubkeys({ projectKey, sessionId }) {
    const main = new Key({ projectKey, sessionId });
    return listSubs(await this.#owner.open(), main).map(({ key }) => key.subpath);
  }

  async delete(key) {
    const place = new Key(key);
    const store = await this.#owner.open();

    await this.#idle(place);
    await deleteTree(store, place);
  }

  async fork(key, options) {
    const place = new Key(key);
    const given = toOptions(options);
    if (!place.isMain) {
      throw new TypeError('the key to fork has a subpath');
    }
    await this.#idle(place);
    return forkSession(this.#owner, place, given);
  }

  /** The session of a key, for everything else that a store can do, or null. */
  async session(key) {
    const session = findSession(await this.#owner.open(), new Key(key));
    return session === null || infoOf(session) === null ? null : session;
  }

  close() {
    this.#closing ??= this.#drain().then(() => this.#owner.close());
    return this.#closing;
  }

  #queueOf(place) {
    let queue = this.#queues.get(place.source);
    if (queue === undefined) {
      this.#dropIdle();
      queue = new AppendQueue(this.#owner, place);
    }
    // The one that was used last is at the end.
    this.#queues.delete(place.source);
    this.#queues.set(place.source, queue);
    return queue;
  }

  #dropIdle() {
    for (const [source, queue] of this.#queues) {
      if (this.#queues.size < QUEUES_MAX) {
        return;
      }
      if (queue.isIdle) {
        this.#queues.delete(source);
      }
    }
  }

  /** Waits for the appends of a key, and of a main key's subpaths. */
  async #idle(place) {
    for (const queue of this.#queues.values()) {
      if (queue.key.source === place.source ||
          place.isMain && queue.key.group === place.group) {
        await queue.idle();
      }
    }
  }

  async #drain() {
    for (const queue of this.#queues.values()) {
      await queue.idle();
    }
  }
}

if (Symbol.asyncDispose !== undefined) {
  Object.defineProperty(AgentwalSessionStore.prototype, Symbol.asyncDispose, {
    value: AgentwalSessionStore.prototype.close, configurable: true, writable: true,
  });
}

function checkProjectKey(projectKey) {
  if (typeof projectKey !== 'string') {
    throw new TypeError('projectKey is not a string');
  }
}

/** Forks a session of an adapter. */
function forkClaudeSession(sessionStore, key, options) {
  return sessionStore.fork(key, options);
}

module.exports = { AgentwalSessionStore, forkSession: forkClaudeSession };
