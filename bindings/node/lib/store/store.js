'use strict';

const { fileURLToPath } = require('node:url');

const { native } = require('../base/native.js');
const { Core } = require('./core.js');
const { Documents } = require('../session/documents.js');
const { followStore } = require('../session/follow.js');
const { invalid } = require('../base/errors.js');
const { listSessions, Sessions } = require('./list.js');
const { makeSession } = require('../session/session.js');
const { OPEN } = require('../base/flags.js');
const { sessionArguments } = require('../session/session_options.js');

// Closes stores that were lost.
const lost = new FinalizationRegistry((core) => {
  if (core.isOpen) {
    process.emitWarning(`the store ${core.path} was lost without Store.close, and is closed now; ` +
      'its last errors may have been missed', { type: 'AgentwalLeak' });
    core.close().catch((error) => {
      process.emitWarning(`the store ${core.path} was lost, and closing it failed: ` +
        error.message, { type: 'AgentwalLeak' });
    });
  }
});

function openFlags(options) {
  let flags = options.create ?? !options.readOnly ? OPEN.create : 0;
  for (const name of ['exclusive', 'readOnly', 'strict', 'networkFs', 'pread', 'noop']) {
    if (options[name]) {
      flags |= OPEN[name];
    }
  }
  return flags;
}

// path, flags, queueLimit, lockTimeout, groupAlign, schemaVersion
function openArguments(path, options, flags) {
  return [path instanceof URL ? fileURLToPath(path) : path, flags, options.queueLimit,
    options.lockTimeout, options.groupAlign, options.schemaVersion];
}

class Store {
  #core;

  constructor(core) {
    if (!(core instanceof Core)) {
      throw invalid('a store is made by Store.open, Store.openSync and Store.memory');
    }
    this.#core = core;
    this.documents = new Documents(core, null, core.gate);
    lost.register(this, core);
  }

  static async open(path, options = {}) {
    const given = openArguments(path, options, openFlags(options));
    return new Store(new Core(await native.open(...given), given[0]));
  }

  static openSync(path, options = {}) {
    const given = openArguments(path, options, openFlags(options));
    return new Store(new Core(native.openSync(...given), given[0]));
  }

  static memory(options = {}) {
    const given = openArguments(undefined, options, OPEN.memory);
    return new Store(new Core(native.openSync(...given), ':memory:'));
  }

  get path() {
    return this.#core.path;
  }

  get isOpen() {
    return this.#core.isOpen;
  }

  info() {
    return native.storeInfo(this.#core.handle);
  }

  // ----------------------------------------------------------- sessions ---

  #wrap(handle) {
    return makeSession(this, this.#core, handle);
  }

  async create(options = {}) {
    return this.#wrap(await native.create(this.#core.handle, ...sessionArguments(options)));
  }

  createSync(options = {}) {
    return this.#wrap(native.createSync(this.#core.handle, ...sessionArguments(options)));
  }

  session(id) {
    return this.#wrap(native.session(this.#core.handle, id));
  }

  latest(options) {
    const handle = native.latest(this.#core.handle, options?.cwd);
    return handle === null ? null : this.#wrap(handle);
  }

  async openOrCreate(options = {}) {
    const [handle, created] =
      await native.openOrCreate(this.#core.handle, ...sessionArguments(options));
    return { session: this.#wrap(handle), created };
  }

  list(options = {}) {
    return listSessions(this.#core, options);
  }

  sessions(options = {}) {
    return new Sessions(this.#core, options);
  }

  async undelete(id) {
    return native.undelete(this.#core.handle, id);
  }

  // --------------------------------------------------- waiting, closing ---

  follow(options = {}) {
    return followStore(this.#core, options);
  }

  async sync() {
    return this.#core.wait(native.sync);
  }

  async flush() {
    return this.#core.wait(native.flush);
  }

  async close() {
    return this.#core.close();
  }

  closeSync() {
    this.#core.closeSync();
  }
}

if (Symbol.asyncDispose !== undefined) {
  Object.defineProperty(Store.prototype, Symbol.asyncDispose, {
    value: Store.prototype.close, configurable: true, writable: true,
  });
}

module.exports = { Store };
