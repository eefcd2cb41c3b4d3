'use strict';

// What closes a store: its handle, what is under way, and what ends with it. It
// refers to nothing that a program holds, so that a store which the program has
// lost can be closed.

const { keep, native } = require('../base/native.js');
const { closed } = require('../base/errors.js');
const { Watch } = require('./watch.js');

// Stores that are open are closed when the process, or the Worker, ends by itself.
// One that is terminated closes them in native/store/store.c.
const open = keep(new Set());

function closeAll() {
  for (const store of open) {
    try {
      store.closeSync();
    } catch (error) {
      process.emitWarning(`closing the store ${store.path} failed: ${error.message}`);
    }
  }
}

class OpenStore {
  #handle;
  #watches = [];
  #ends = new Set();
  #isShut = false;
  // Promises of calls that may not be in the queue yet.
  underWay = new Set();
  // Of a close; undefined before.
  closing;
  isOpen = true;

  constructor(handle, path) {
    this.#handle = handle;
    this.path = path;
    if (open.size === 0) {
      process.on('exit', closeAll);
    }
    open.add(this);
  }

  // The store for a call of the addon; throws when it is closed.
  get handle() {
    this.check();
    return this.#handle;
  }

  check() {
    if (!this.isOpen) {
      throw closed('store');
    }
  }

  // Calls `end` when the store begins to close. Returns a function that takes
  // that back.
  atEnd(end) {
    this.#ends.add(end);
    return () => { this.#ends.delete(end); };
  }

  // Fulfils when there is a record with a higher number than `after`.
  grown(durability, after, signal) {
    this.#watches[durability] ??= new Watch(this, durability);
    return this.#watches[durability].grown(after, signal);
  }

  // Calls native.sync or native.flush. What a close has completed is durable.
  wait(call) {
    return this.closing ?? call(this.#handle);
  }

  close() {
    this.closing ??= this.#close();
    return this.closing;
  }

  async #close() {
    this.#end();
    while (this.underWay.size > 0) {
      await Promise.all(this.underWay);
    }
    if (this.#isShut) {
      return;
    }
    try {
      await native.close(this.#handle);
    } finally {
      this.#shut();
    }
  }

  // Also ends a close that is under way.
  closeSync() {
    if (this.#isShut) {
      return;
    }
    if (this.isOpen) {
      this.#end();
    }
    this.#shut();
    try {
      native.closeSync(this.#handle);
      this.closing ??= Promise.resolve();
    } catch (error) {
      this.closing ??= Promise.reject(error);
      this.closing.catch(() => {});
      throw error;
    }
  }

  // From now on nothing is left to do when the process ends.
  #shut() {
    this.#isShut = true;
    open.delete(this);
    if (open.size === 0) {
      process.off('exit', closeAll);
    }
  }

  #end() {
    this.isOpen = false;
    for (const watch of this.#watches) {
      watch?.end(closed('store'));
    }
    for (const end of this.#ends) {
      end();
    }
  }
}

module.exports = { OpenStore };
