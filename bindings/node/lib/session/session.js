'use strict';

const { native, numbers } = require('../base/native.js');
const {
  changeArguments, expectedSequence, expectsAny, expectVersion, flattenChange, removeArguments,
} = require('./change.js');
const { Checkpoints, rewindArguments } = require('../content/checkpoints.js');
const { closed, invalid, WalError } = require('../base/errors.js');
const { DURABILITY, REMOVE } = require('../base/flags.js');
const { Documents, flattenDocuments } = require('./documents.js');
const { Entries, openCursor, readEntry } = require('./entries.js');
const { exportSession, openView } = require('../exchange/views.js');
const { entryId } = require('../base/entry_id.js');
const { followSession } = require('./follow.js');
const { flattenHeads, moveArguments } = require('./heads.js');
const { makeAppend } = require('./append.js');
const { toOptions } = require('../base/options.js');
const { sessionArguments } = require('./session_options.js');
const batches = require('./batch.js');
const submissions = require('../base/submissions.js');

// How often an update begins again.
const ATTEMPTS = 1000;

let makeSession;

class Session {
  #core;
  #raw;
  #gate;
  #ends = new Set(); // functions that end a follower that waits
  #isOpen = true;

  static {
    makeSession = (store, core, [handle, id]) => new Session(store, core, handle, id);
  }

  constructor(store, core, handle, id) {
    if (core === undefined) {
      throw invalid('a session is made by Store.create and Store.session');
    }
    this.store = store;
    this.#core = core;
    this.#raw = handle;
    this.#gate = core.makeGate();
    this.id = id;
    this.documents = new Documents(core, handle, this.#gate);
    this.checkpoints = new Checkpoints(core, handle, this.#gate);
  }

  // The session for a call of the addon; throws when it is closed.
  get #handle() {
    this.#core.check();
    if (!this.#isOpen) {
      throw closed('session');
    }
    return this.#raw;
  }

  info() {
    const info = native.sessionInfo(this.#handle);
    info.metadata = info.metadata === null ? null : JSON.parse(info.metadata);
    return info;
  }

  // ------------------------------------------------------------ writing ---

  append(entries, options) {
    return this.#write(options, () => {
      const flat = batches.flattenEntries(entries);
      if (flat.length === 0) {
        throw invalid('there is nothing to append');
      }
      return { entries: flat };
    });
  }

  commit(batch, options) {
    return this.#write(options, () => this.#flatten(batch));
  }

  appendSync(entries, options) {
    const given = batches.appendArguments(options);
    const flat = batches.flattenEntries(entries);
    if (flat.length === 0) {
      throw invalid('there is nothing to append');
    }
    const handle = this.#handle;
    if (!this.#gate.isIdle) {
      throw new WalError('an append that waits in this thread would overtake calls on the ' +
        'session that are under way; wait for their promises, or use append',
      { code: 'WAL_EBUSY' });
    }
    const made = native.commit(handle, ...given, flat);
    const [appended, duplicates, sequence] = numbers;
    return { appended, duplicates, sequence, lastId: made ?? batches.lastId(flat) };
  }

  #flatten(batch) {
    if (batch === null || typeof batch !== 'object') {
      throw invalid('a batch is not an object');
    }
    return {
      entries: batches.flattenEntries(batch.entries ?? []),
      documents: flattenDocuments(batch.documents),
      heads: flattenHeads(batch.heads),
      change: flattenChange(batch),
    };
  }

  // Submits a batch that `flatten` makes. Nothing is thrown: the promise rejects.
  #write(options, flatten) {
    let batch;
    let failure;
    try {
      const handle = this.#handle;
      const given = batches.appendArguments(options);
      batch = { handle, given, flat: flatten() };
    } catch (error) {
      failure = { error };
    }
    const waiter = makeAppend(this.#core, batch?.given[0]);
    if (failure !== undefined) {
      waiter.reject(failure.error);
    } else {
      this.#submitInTurn(waiter, batch);
    }
    return waiter.promise;
  }

  #submitInTurn(waiter, batch) {
    const { entries, change } = batch.flat;
    const isRepeated = expectsAny(change);
    waiter.promise.lastId = batches.lastId(entries);
    if (isRepeated || !this.#gate.isIdle) {
      waiter.promise.lastId = batches.giveId(entries, native.makeId);
      this.#gate.run(() => (isRepeated ? this.#repeat(waiter, batch) : this.#submit(waiter, batch)))
        .catch((error) => { waiter.reject(error); });
      return;
    }
    try {
      this.#submit(waiter, batch);
    } catch (error) {
      waiter.reject(error);
    }
  }

  // Submits a batch whose change expects no version with the present one, again
  // while another writer was faster. Only an outcome shows that, so that a batch
  // to be queued is waited for, too; the remote is waited for after that.
  async #repeat(waiter, { handle, given, flat }) {
    const [durability, ...rest] = given;
    const waitedFor = [durability === DURABILITY.queued ? DURABILITY.written : durability, ...rest];
    for (let attempt = 1; ; attempt++) {
      const version = native.sessionInfo(handle).metadataVersion;
      const one = makeAppend(this.#core, DURABILITY.durable);
      one.promise.lastId = waiter.promise.lastId;
      try {
        this.#submit(one, { handle, given: waitedFor,
          flat: { ...flat, change: expectVersion(flat.change, version) } });
        const { appended, duplicates, sequence } = await one.promise;
        waiter.fulfil(appended, duplicates, sequence);
        return;
      } catch (error) {
        if (error.expectation !== 'metadata' || attempt === ATTEMPTS) {
          throw error;
        }
      }
    }
  }

  #submit(waiter, { handle, given, flat }) {
    const slot = submissions.take(waiter);
    let id;
    try {
      id = native.submit(handle, slot, ...given, flat.entries, flat.documents, flat.heads,
        flat.change);
    } catch (error) {
      submissions.release(slot);
      throw error;
    }
    if (id !== undefined) {
      waiter.promise.lastId = id;
    }
    if (given[0] === DURABILITY.queued && numbers[0] === 1) {
      submissions.release(slot).fulfil(0, 0, 0);
    }
  }

  // Calls the addon at its turn, with what it returns a promise for.
  #run(start) {
    const handle = this.#handle;
    return this.#gate.run(() => start(handle));
  }

  // ------------------------------------------------------------ reading ---

  entries(options) {
    const given = toOptions(options);
    return new Entries(this.#core, () => openCursor(this.#handle, given));
  }

  [Symbol.iterator]() {
    return this.entries()[Symbol.iterator]();
  }

  entry(id) {
    return readEntry(this.#handle, id);
  }

  follow(options) {
    return followSession(this.#core, this.#handle, toOptions(options), this.#ends);
  }

  // -------------------------------------------------- heads and changes ---

  head(name, options) {
    return native.head(this.#handle, toOptions(options).stream, name);
  }

  heads() {
    return native.heads(this.#handle);
  }

  async moveHead(entryId, options) {
    const given = moveArguments(entryId, options);
    return this.#run((handle) => native.moveHead(handle, ...given));
  }

  async update(change, options) {
    const sequence = expectedSequence(options);
    // The state is read at the turn of the call: changes of this process that were asked for
    // before are in it.
    for (let i = 0; i < ATTEMPTS; i++) {
      const isDone = await this.#run((handle) => {
        const now = this.info();
        const made = typeof change === 'function' ? change(now) : change;
        const given = changeArguments(made, sequence);
        return native.changeSession(handle, 0, now.metadataVersion, ...given);
      });
      if (isDone) {
        return;
      }
    }
    throw new WalError(`the session was changed by others in each of ${ATTEMPTS} attempts`,
      { code: 'WAL_ECONFLICT', expectation: 'metadata' });
  }

  async migrate(to, step) {
    if (!Number.isInteger(to) || to < 0 || to >= 2 ** 32) {
      throw invalid(`the version of a schema is a whole number from 0 on, not ${String(to)}`);
    }
    for (;;) {
      const now = this.info();
      if (now.schemaVersion === to) {
        return;
      }
      const given = step === undefined || now.schemaVersion > to
        ? [to, 0]
        : [now.schemaVersion + 1, now.metadataVersion, ...changeArguments(step(now))];
      await this.#run((handle) => native.changeSession(handle, ...given));
    }
  }

  // ----------------------------------------------------- other sessions ---

  async fork(options) {
    const given = [entryId(toOptions(options).at, 'at'), ...sessionArguments(options)];
    const fork = await this.#run((handle) => native.fork(handle, ...given));
    return makeSession(this.store, this.#core, fork);
  }

  async compact(options) {
    const { firstKept, summary, into } = toOptions(options);
    const given = [firstKept, summary, into === undefined ? undefined : sessionArguments(into)];
    const { fork, result } = await this.#run((handle) => native.compactSession(handle, ...given));
    return { session: fork === null ? this : makeSession(this.store, this.#core, fork), result };
  }

  async redact(entryId, reason) {
    return this.#run((handle) => native.redact(handle, entryId, reason));
  }

  async unredact(entryId) {
    return this.#run((handle) => native.unredact(handle, entryId));
  }

  // ------------------------------------------- files, other programs ---

  async rewind(checkpointId, options) {
    const given = rewindArguments(checkpointId, options);
    return this.#run((handle) => native.rewind(handle, ...given));
  }

  async diff() {
    const handle = this.#handle;
    return this.#core.after(this.#gate, () => native.diffSession(handle));
  }

  view(options) {
    return openView(this.#core, this.#handle, this.#gate, options);
  }

  async export(options) {
    return exportSession(this.#core, this.#handle, this.#gate, options);
  }

  // ------------------------------------------------------ the session ---

  async acceptDamage() {
    return this.#run(native.acceptSessionDamage);
  }

  async claim() {
    await this.#run(native.claimSession);
    if (this.#isOpen) {
      this.#core.claimed.add(this.#raw);
    }
  }

  async unclaim() {
    await this.#run(native.unclaimSession);
    this.#core.claimed.delete(this.#raw);
  }

  async trash(options) {
    const given = removeArguments(options, REMOVE.trash);
    return this.#run((handle) => native.removeSession(handle, ...given));
  }

  async delete(options) {
    const given = removeArguments(options, 0);
    return this.#run((handle) => native.removeSession(handle, ...given));
  }

  close() {
    if (this.#isOpen) {
      this.#isOpen = false;
      this.#ends.forEach((end) => { end(); });
      this.#gate.end(() => {
        this.#core.claimed.delete(this.#raw);
        native.closeHandle(this.#raw);
      });
    }
  }
}

if (Symbol.dispose !== undefined) {
  Object.defineProperty(Session.prototype, Symbol.dispose, {
    value: Session.prototype.close, configurable: true, writable: true,
  });
}

module.exports = { Session, makeSession };
