'use strict';
// Appends of one key, in the order of the calls.
//
// One batch is in flight at a time, since the summary of a batch depends on the
// one before; calls that arrive meanwhile become one batch.

const { setTimeout: sleep } = require('node:timers/promises');

const { WalError } = require('../base/errors.js');
const { idOf } = require('./key.js');
const { serialize } = require('./rows.js');
const { cwdOf, openOrCreate } = require('./sessions.js');
const { findFold, makeChanges, readSummary } = require('./summary.js');
const { readRows, readTranscript } = require('./transcript.js');

const GROUP_ROWS = 2_000;
const GROUP_CHARS = 8 << 20;
const RETRY_MS = 30_000; // the SDK gives an append 60 seconds
const PAUSE_MS_MAX = 32;
const UNKNOWN_ATTEMPTS = 3;
const STALE_ATTEMPTS = 8; // but for conflicts, which go on as long as others append

/** Whether another process was faster, so that the batch is made anew from the
 * present state. */
const isStale = (error, attempt) => error.code === 'WAL_ECONFLICT' ||
  attempt < STALE_ATTEMPTS && (error.code === 'WAL_EEXISTS' ||
    error.code === 'WAL_ENOPARENT' || error.code === 'WAL_ENOTFOUND');
/** The outcome is unknown; the same batch may be sent again. */
const isUnknown = (error) => error.code === 'WAL_EPOISONED' || error.code === 'WAL_EIO';

class AppendQueue {
  #owner;
  #waiting = [];
  #running = null;
  #session = null;
  #unknown = new Set(); // parents that the session does not have

  /** `owner` has open(), durability, stats and a fold of the caller. */
  constructor(owner, key) {
    this.#owner = owner;
    this.key = key;
  }

  /** Fulfils when the rows are as durable as the owner asks for. */
  add(rows) {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ rows, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  /** Fulfils when nothing is waiting or in flight. */
  async idle() {
    while (this.#running !== null) {
      await this.#running;
    }
  }

  get isIdle() {
    return this.#running === null;
  }

  async #run() {
    // Calls of one turn go together.
    await null;
    while (this.#waiting.length > 0) {
      await this.#commitGroup(this.#takeGroup());
    }
    // In the same turn as the last look at what waits, so that a call which is
    // added next begins a run.
    this.#running = null;
  }

  async #commitGroup(group) {
    try {
      await this.#commit(group.flatMap((call) => call.rows));
      group.forEach((call) => call.resolve());
    } catch (error) {
      if (group.length === 1) {
        group[0].reject(error);
      } else {
        await this.#commitEach(group);
      }
    }
  }

  #takeGroup() {
    let rows = 0;
    let chars = 0;
    let count = 0;

    for (const call of this.#waiting) {
      rows += call.rows.length;
      chars += call.rows.reduce((sum, row) => sum + row.text.length, 0);
      if (count > 0 && (rows > GROUP_ROWS || chars > GROUP_CHARS)) {
        break;
      }
      count++;
    }
    return this.#waiting.splice(0, count);
  }

  /** A refusal concerns one call, not those that shared its batch. */
  async #commitEach(group) {
    for (const call of group) {
      await this.#commit(call.rows).then(call.resolve, call.reject);
    }
  }

  async #commit(rows) {
    const { durability, stats } = this.#owner;
    const store = await this.#owner.open();
    const until = Date.now() + RETRY_MS;

    for (let attempt = 1; ; attempt++) {
      this.#session ??= await openOrCreate(store, this.key, rows);
      try {
        const plan = await this.#plan(this.#session, rows);
        if (plan.batch !== null) {
          await commitKnown(this.#session, plan.batch, { durability });
        }
        stats.appended += plan.appended;
        stats.duplicates += plan.duplicates;
        stats.ignored += plan.ignored;
        return;
      } catch (error) {
        this.#session = null;
        if (!isStale(error, attempt) || Date.now() > until) {
          throw error;
        }
        stats.retries++;
      }
      await sleep(Math.random() * Math.min(2 ** attempt, PAUSE_MS_MAX));
    }
  }

  async #plan(session, rows) {
    const plan = { batch: null, appended: 0, duplicates: 0, ignored: 0 };
    const state = this.key.isMain ? readSummary(session) : { info: session.info() };
    if (state.info.isTrashed) {
      // Also where all rows are duplicates, since none can be read any more.
      throw new WalError(`session "${state.info.id}" is in the trash; undelete it first`,
        { code: 'WAL_ETRASHED' });
    }
    const fresh = selectNew(session, rows, plan);

    if (fresh.length === 0) {
      return plan;
    }
    const ids = new Set();
    const has = (id) => ids.has(id) || lookUp(session, id) !== null;
    fresh.unshift(...await this.#adopted(session, state.info, fresh[0], has));
    plan.batch = { change: changeOf(state.info, fresh, this.key.isMain) };
    plan.batch.entries = fresh.map((row) => {
      const entry = row.toEntry(has, this.key.isMain);
      ids.add(row.id);
      return entry;
    });
    if (this.key.isMain) {
      plan.batch.documents = await makeChanges(
        this.#owner.fold ?? await findFold(), this.key, state,
        fresh.map((row) => row.fields),
        async () => (await readRows(session)).map((row) => row.value));
    }
    plan.appended = fresh.length;
    return plan;
  }

  /** The row that a converted transcript had in addition, where the client
   * continued: a session that was resumed after its head had been moved. */
  async #adopted(session, info, { parentUuid }, has) {
    if (typeof parentUuid !== 'string' || info.entries === 0 || this.#unknown.has(parentUuid) ||
        has(idOf(parentUuid))) {
      return [];
    }
    const found = await findConverted(session, parentUuid).catch(() => []);
    if (found.length === 0) {
      this.#unknown.add(parentUuid);
    }
    return serialize(found);
  }
}

/** The row of a converted session that has a uuid, if it is not in the log. */
async function findConverted(session, uuid) {
  const rows = await readTranscript(session, { unreadable: 0 });
  return rows.filter(({ id, value }) => id === null && value.uuid === uuid)
    .map(({ value }) => value);
}

/** Rows that the session does not have. One whose uuid it has is left out, and
 * counted as ignored when the content differs. */
function selectNew(session, rows, plan) {
  const texts = new Map();

  return rows.filter((row) => {
    if (row.uuid === null) {
      return true;
    }
    const text = texts.get(row.id) ?? lookUp(session, row.id);
    texts.set(row.id, text ?? row.text);
    if (text !== null) {
      plan[text === row.text ? 'duplicates' : 'ignored']++;
    }
    return text === null;
  });
}

/** The text of an entry, '' of one that cannot be read, or null if there is
 * none. */
function lookUp(session, id) {
  try {
    return session.entry(id)?.text ?? null;
  } catch (error) {
    if (error.code === 'WAL_EREDACTED' || error.code === 'WAL_ECORRUPT') {
      return '';
    }
    throw error;
  }
}

/** Title and directory, as an import sets them. */
function changeOf(info, rows, isMain) {
  const title = isMain ? rows.findLast((row) => row.title !== null)?.title : undefined;
  const cwd = info.cwd === '' ? cwdOf(rows) : undefined;
  const change = {};

  if (title !== undefined && title !== info.title) {
    change.title = title;
  }
  if (cwd !== undefined) {
    change.cwd = cwd;
  }
  return Object.keys(change).length > 0 ? change : undefined;
}

/** Commits a batch; while the outcome is unknown, sends it again. */
async function commitKnown(session, batch, options) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await session.commit(batch, options);
    } catch (error) {
      if (!isUnknown(error) || attempt === UNKNOWN_ATTEMPTS) {
        throw error;
      }
    }
  }
}

module.exports = { AppendQueue };
