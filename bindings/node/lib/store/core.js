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
  #ends = new Set();
  #isShut = false;
  // Sessions that are claimed, as the addon has them: a claim ends when its
  // session is collected.
  claimed = new Set();

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

  // Calls `start` after the calls of a gate that were made before, and not before
  // or after later ones.
  after(gate, start) {
    const before = gate.settled();
    return this.makeGate().run(async () => {
      await before;
      return start();
    });
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

  // Waits for what was asked for before and is not in the queue yet.
  async settle() {
    this.check();
    if (this.#underWay.size > 0) {
      await Promise.all(this.#underWay);
    }
  }

  // The same; then waits until it is written, if the store may be written to.
  async written() {
    try {
      await this.wait(native.flush);
    } catch (error) {
      if (error.code !== 'WAL_EREADONLY') {
        throw error;
      }
    }
  }

  // As settle; then calls native.sync or native.flush.
  async wait(call) {
    await this.settle();
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
      this.#closing ??= Promise.resolve();
    } catch (error) {
      this.#closing ??= Promise.reject(error);
      this.#closing.catch(() => {});
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

module.exports = { Core };
