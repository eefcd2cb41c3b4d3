'use strict';

const { native, numbers } = require('./native.js');
const { DURABILITY } = require('./flags.js');
const { Entries, openCursor } = require('./entries.js');
const { makeAppend } = require('./append.js');
const batches = require('./batch.js');
const submissions = require('./submissions.js');

class Session {
  #core;
  #handle;

  constructor(store, core, handle, id) {
    this.store = store;
    this.id = id;
    this.#core = core;
    this.#handle = handle;
  }

  info() {
    const info = native.sessionInfo(this.#handle);
    info.metadata = info.metadata === null ? null : JSON.parse(info.metadata);
    return info;
  }

  append(entries, options) {
    const waiter = makeAppend(this.#core, options?.durability ?? 'durable');
    try {
      const flat = batches.flattenEntries(entries);
      waiter.promise.lastId = batches.lastId(entries);
      this.#submit(waiter, options, flat);
    } catch (error) {
      waiter.reject(error);
    }
    return waiter.promise;
  }

  #submit(waiter, options, entries, documents, heads, change) {
    const durability = batches.durabilityOf(options);
    const slot = submissions.take(waiter);
    let id;
    try {
      id = native.submit(this.#handle, slot, durability, batches.expectationOf(options),
        options?.expectTail, entries, documents, heads, change);
    } catch (error) {
      submissions.release(slot);
      throw error;
    }
    if (id !== undefined) {
      waiter.promise.lastId = id;
    }
    if (durability === DURABILITY.queued && numbers[0] === 1) {
      submissions.release(slot).fulfil(0, 0, 0);
    }
  }

  entries(options = {}) {
    return new Entries(() => openCursor(this.#handle, options, 0));
  }

  [Symbol.iterator]() {
    return this.entries()[Symbol.iterator]();
  }

  close() {
    native.closeSession(this.#handle);
  }
}

module.exports = { Session };
