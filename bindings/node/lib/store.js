'use strict';

const { fileURLToPath } = require('node:url');

const { native } = require('./native.js');
const { Core } = require('./core.js');
const { OPEN } = require('./flags.js');
const { Session } = require('./session.js');
const { toJsonObject } = require('./json.js');

function openFlags(options) {
  let flags = options.create ?? !options.readOnly ? OPEN.create : 0;
  for (const name of ['exclusive', 'readOnly', 'strict', 'networkFs', 'pread', 'noop']) {
    if (options[name]) {
      flags |= OPEN[name];
    }
  }
  return flags;
}

function openArguments(path, options) {
  const name = path instanceof URL ? fileURLToPath(path) : path;
  return [name, openFlags(options), options.queueLimit, options.lockTimeout,
    options.groupAlign, options.schemaVersion];
}

function sessionArguments(options) {
  return [options.id, options.cwd, options.project, options.title, options.parentId,
    options.source, toJsonObject(options.metadata, 'the metadata'), options.schemaVersion,
    options.created === undefined ? undefined : Number(options.created)];
}

class Store {
  #core;

  constructor(core) {
    this.#core = core;
  }

  static async open(path, options = {}) {
    const given = openArguments(path, options);
    return new Store(new Core(await native.open(...given), given[0]));
  }

  static openSync(path, options = {}) {
    const given = openArguments(path, options);
    return new Store(new Core(native.openSync(...given), given[0]));
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

  async create(options = {}) {
    return this.#wrap(await native.create(this.#core.handle, ...sessionArguments(options)));
  }

  createSync(options = {}) {
    return this.#wrap(native.createSync(this.#core.handle, ...sessionArguments(options)));
  }

  session(id) {
    return this.#wrap(native.session(this.#core.handle, id));
  }

  #wrap(handle) {
    return new Session(this, this.#core, handle, native.sessionInfo(handle).id);
  }

  async sync() {
    return native.sync(this.#core.handle);
  }

  async flush() {
    return native.flush(this.#core.handle);
  }

  async close() {
    return this.#core.close();
  }

  closeSync() {
    this.#core.closeSync();
  }
}

module.exports = { Store };
