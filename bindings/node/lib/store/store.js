'use strict';

const { native } = require('../base/native.js');
const admin = require('../admin/admin.js');
const { Blobs } = require('../content/blobs.js');
const { Core } = require('./core.js');
const { Documents } = require('../session/documents.js');
const { followStore } = require('../session/follow.js');
const imports = require('../exchange/imports.js');
const { invalid } = require('../base/errors.js');
const { listSessions, Sessions } = require('./list.js');
const { makeSession } = require('../session/session.js');
const { OPEN_MEMORY } = require('../base/flags.js');
const { openSearch } = require('../search/search.js');
const { openArguments } = require('../base/open_options.js');
const { toOptions } = require('../base/options.js');
const { sessionArguments } = require('../session/session_options.js');
const transfer = require('../exchange/transfer.js');
const views = require('../exchange/views.js');

// Stores whose calls are under way, which are not lost.
const held = new Set();

class Store {
  #core;

  constructor(core) {
    if (!(core instanceof Core)) {
      throw invalid('a store is made by Store.open, Store.openSync and Store.memory');
    }
    this.#core = core;
    this.documents = new Documents(core, null, core.gate);
    this.blobs = new Blobs(core);
  }

  static async open(path, options) {
    const given = openArguments(path, options);
    return new Store(new Core(await native.open(...given), given[0]));
  }

  static openSync(path, options) {
    const given = openArguments(path, options);
    return new Store(new Core(native.openSync(...given), given[0]));
  }

  static memory(options) {
    const given = openArguments(undefined, options, OPEN_MEMORY);
    return new Store(new Core(native.openSync(...given), ':memory:'));
  }

  static async migrate(path, options) {
    return admin.migrate(path, options);
  }

  static async salvage(path, out, options) {
    return admin.salvage(path, out, options);
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

  // opened: [handle, id]
  #wrap(opened) {
    return makeSession(this, this.#core, opened);
  }

  async create(options) {
    return this.#wrap(await native.create(this.#core.handle, ...sessionArguments(options)));
  }

  createSync(options) {
    return this.#wrap(native.createSync(this.#core.handle, ...sessionArguments(options)));
  }

  session(id) {
    return this.#wrap([native.openSession(this.#core.handle, id), id]);
  }

  latest(options) {
    const opened = native.latest(this.#core.handle, toOptions(options).cwd);
    return opened === null ? null : this.#wrap(opened);
  }

  async openOrCreate(options) {
    const { session, created } =
      await native.openOrCreate(this.#core.handle, ...sessionArguments(options));
    return { session: this.#wrap(session), created };
  }

  list(options) {
    return listSessions(this.#core, toOptions(options));
  }

  sessions(options) {
    return new Sessions(this.#core, toOptions(options));
  }

  async undelete(id) {
    return native.undelete(this.#core.handle, id);
  }

  openSearch(options) {
    return openSearch(this.#core, (call) => this.#hold(call), options);
  }

  // ----------------------------------------------------- administration ---

  // Waits for a call that runs for long; the store is not lost meanwhile.
  async #hold(promise) {
    const hold = { store: this };
    held.add(hold);
    try {
      return await promise;
    } finally {
      held.delete(hold);
    }
  }

  async compact(options) {
    return this.#hold(admin.compact(this.#core, options));
  }

  async backup(path, options) {
    return this.#hold(admin.backup(this.#core, path, options));
  }

  claims() {
    return native.claims(this.#core.handle);
  }

  async acceptDamage() {
    const { handle } = this.#core;
    return this.#core.gate.run(() => native.acceptDamage(handle));
  }

  // ---------------------------------------------------- other programs ---

  async merge(from, options) {
    if (!(from instanceof Store)) {
      throw invalid('what is merged is another Store');
    }
    return this.#hold(from.#hold(transfer.merge(this.#core, from.#core, options)));
  }

  async writeBundle(path, options) {
    return this.#hold(transfer.writeBundle(this.#core, path, options));
  }

  async readBundle(path, options) {
    return this.#hold(transfer.readBundle(this.#core, path, options));
  }

  async import(paths, options) {
    return this.#hold(imports.importPaths(this.#core, paths, options));
  }

  followImport(paths, options) {
    return imports.followImport(this.#core, (round) => this.#hold(round), paths, options);
  }

  views(options) {
    return views.listViews(this.#core, options);
  }

  async updateView(view) {
    return views.updateView(this.#core, view);
  }

  findView(path) {
    return views.findView(this.#core, path);
  }

  async addViewRoot(dialect, root) {
    return views.addViewRoot(this.#core, dialect, root);
  }

  // --------------------------------------------------- waiting, closing ---

  follow(options) {
    return followStore(this.#core, toOptions(options));
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
