'use strict';

const { constants } = require('node:buffer');

const { native } = require('../base/native.js');
const { VIEW_STALE, VIEW_UNREADABLE } = require('../base/flags.js');
const { invalid } = require('../base/errors.js');
const { toOptions } = require('../base/options.js');
const { toPath } = require('../base/path.js');

const viewDialects = Object.freeze(native.viewDialects());

class View {
  #core;
  #handle;
  #sessionGate;
  #gate;
  #isOpen = true;

  constructor(core, handle, sessionGate) {
    this.#core = core;
    this.#handle = handle;
    this.#sessionGate = sessionGate;
    this.#gate = core.makeGate();
  }

  // Calls the addon after what was asked for before, of the view and of its
  // session.
  async #run(call) {
    this.#core.check();
    const handle = this.#handle;
    const before = this.#sessionGate.settled();
    return this.#gate.run(async () => {
      await before;
      return call(handle);
    });
  }

  path(stream) {
    this.#core.check();
    return native.viewPath(this.#handle, stream);
  }

  async flush() {
    return this.#run(native.flushView);
  }

  async import() {
    return this.#run(native.importView);
  }

  losses() {
    this.#core.check();
    return Object.fromEntries(
      native.viewLosses(this.#handle).map(({ name, count }) => [name, count]));
  }

  issues() {
    this.#core.check();
    return native.viewIssues(this.#handle);
  }

  // Calls that were made before are completed.
  close() {
    if (this.#isOpen) {
      this.#isOpen = false;
      this.#gate.end(() => { native.closeHandle(this.#handle); });
    }
  }
}

function openView(core, session, gate, options) {
  const { dialect, root } = toOptions(options);
  return new View(core, native.openView(session, dialect, toPath(root)), gate);
}

async function exportSession(core, session, gate, options) {
  const { dialect } = toOptions(options);
  return core.after(gate,
    () => native.exportSession(session, dialect, constants.MAX_LENGTH));
}

// ------------------------------------------- views that a store knows of ---

function listViews(core, options) {
  const { session, stale } = toOptions(options);
  return native.views(core.handle, session, stale ? VIEW_STALE : 0);
}

function findView(core, path) {
  return native.findView(core.handle, toPath(path));
}

async function updateView(core, view) {
  if (view === null || typeof view !== 'object') {
    throw invalid('a view is what Store.views returns');
  }
  return native.updateView(core.handle, view.session, view.dialect, view.root,
    view.unreadable === true ? VIEW_UNREADABLE : 0);
}

async function addViewRoot(core, dialect, root) {
  return native.addViewRoot(core.handle, dialect, toPath(root));
}

module.exports = {
  viewDialects, openView, exportSession, listViews, findView, updateView, addViewRoot,
};
