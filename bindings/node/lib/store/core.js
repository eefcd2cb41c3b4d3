'use strict';

// What the classes of a store share. Each of them holds it, so that a store is
// closed as lost when the program has none of them any more.

const { keep, native } = require('../base/native.js');
const { DURABILITY } = require('../base/flags.js');
const { Gate } = require('../base/gate.js');
const { OpenStore } = require('./open_store.js');

// Closes stores that were lost.
const lost = keep(new FinalizationRegistry((store) => {
  if (store.isOpen) {
    process.emitWarning(`the store ${store.path} was lost without Store.close, and is closed ` +
      'now; its last errors may have been missed', { type: 'AgentwalLeak' });
    store.close().catch((error) => {
      process.emitWarning(`the store ${store.path} was lost, and closing it failed: ` +
        error.message, { type: 'AgentwalLeak' });
    });
  }
}));

class Core {
  #store;
  #syncing;
  // Sessions that are claimed, as the addon has them: a claim ends when its
  // session is collected.
  claimed = new Set();

  constructor(handle, path) {
    this.#store = new OpenStore(handle, path);
    this.gate = this.makeGate();
    lost.register(this, this.#store);
  }

  get path() {
    return this.#store.path;
  }

  get isOpen() {
    return this.#store.isOpen;
  }

  // The store for a call of the addon; throws when it is closed.
  get handle() {
    return this.#store.handle;
  }

  check() {
    this.#store.check();
  }

  makeGate() {
    return new Gate(this.#store.underWay);
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

  // As of OpenStore.
  atEnd(end) {
    return this.#store.atEnd(end);
  }

  grown(durability, after, signal) {
    return this.#store.grown(durability, after, signal);
  }

  // Fulfils when the remote has what is durable by now.
  async shipped() {
    const newest = native.newest(this.handle, DURABILITY.durable, 0);
    if (newest > 0) { // else nothing is kept
      await this.grown(DURABILITY.cluster, newest - 1);
    }
  }

  // One sync for all that ask in the same turn.
  syncSoon() {
    if (this.#store.closing !== undefined) {
      return this.#store.closing;
    }
    this.#syncing ??= Promise.resolve().then(() => {
      this.#syncing = undefined;
      return this.#store.wait(native.sync);
    });
    return this.#syncing;
  }

  // Waits for what was asked for before and is not in the queue yet.
  async settle() {
    this.check();
    if (this.#store.underWay.size > 0) {
      await Promise.all(this.#store.underWay);
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
    return this.#store.wait(call);
  }

  close() {
    return this.#store.close();
  }

  closeSync() {
    this.#store.closeSync();
  }
}

module.exports = { Core };
