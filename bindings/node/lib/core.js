'use strict';

// What a store's classes share. It does not refer to the Store, so that one that
// is lost can be closed.

const { native } = require('./native.js');
const { closed } = require('./errors.js');

class Core {
  #syncing;
  #closing;

  constructor(handle, path) {
    this.handle = handle;
    this.path = path;
    this.isOpen = true;
  }

  check() {
    if (!this.isOpen) {
      throw closed('store');
    }
  }

  // One sync for all that ask in the same turn. What a close has completed is
  // durable.
  syncSoon() {
    if (this.#closing !== undefined) {
      return this.#closing;
    }
    this.#syncing ??= Promise.resolve().then(() => {
      this.#syncing = undefined;
      return this.#closing ?? native.sync(this.handle);
    });
    return this.#syncing;
  }

  close() {
    if (this.#closing === undefined) {
      this.isOpen = false;
      this.#closing = native.close(this.handle);
    }
    return this.#closing;
  }

  closeSync() {
    if (this.isOpen) {
      this.isOpen = false;
      this.#closing = Promise.resolve();
      native.closeSync(this.handle);
    }
  }
}

module.exports = { Core };
