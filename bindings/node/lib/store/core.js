'use strict';

// What the classes of a store share. It does not refer to the Store, so that one
// that is lost can be closed.

const { native } = require('../base/native.js');
const { closed } = require('../base/errors.js');
const { Gate } = require('../base/gate.js');
const { Watch } = require('./watch.js');

// Stores that are open are closed when the process, or the Worker, ends by itself.
// One that is terminated closes them in native/store/store.c.
const open = new Set();

function closeAll() {
  for (const core of open) {
    try {
      core.closeSync();
    } catch (error) {
      process.emitWarning(`closing the store ${core.path} failed: ${error.message}`);
    }
  }
}

class Core {
  #handle;
  #syncing;
  #closing;
  #underWay = new Set();
  #watches = [];

  constructor(handle, path) {
    this.#handle = handle;
    this.path = path;
    this.isOpen = true;
    this.gate = this.makeGate();
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

  makeGate() {
    return new Gate(this.#underWay);
  }

  // Fulfils when there is a record with a higher number than `after`.
  grown(durability, after, signal) {
    this.#watches[durability] ??= new Watch(this, durability);
    return this.#watches[durability].grown(after, signal);
  }

  // One sync for all that ask in the same turn. What a close has completed is
  // durable.
  syncSoon() {
    if (this.#closing !== undefined) {
      return this.#closing;
    }
    this.#syncing ??= Promise.resolve().then(() => {
      this.#syncing = undefined;
      return this.#closing ?? native.sync(this.#handle);
    });
    return this.#syncing;
  }

  // Waits for what was asked for before and is not in the queue yet; then calls
  // native.sync or native.flush.
  async wait(call) {
    this.check();
    if (this.#underWay.size > 0) {
      await Promise.all(this.#underWay);
    }
    return this.#closing ?? call(this.#handle);
  }

  close() {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close() {
    this.#end();
    while (this.#underWay.size > 0) {
      await Promise.all(this.#underWay);
    }
    await native.close(this.#handle);
  }

  closeSync() {
    if (this.isOpen) {
      this.#end();
      this.#closing = Promise.resolve();
      native.closeSync(this.#handle);
    }
  }

  #end() {
    this.isOpen = false;
    open.delete(this);
    if (open.size === 0) {
      process.off('exit', closeAll);
    }
    for (const watch of this.#watches) {
      watch?.end(closed('store'));
    }
  }
}

module.exports = { Core };
