'use strict';

const { native } = require('../base/native.js');
const { SELECT } = require('../base/flags.js');
const { Follower } = require('../base/follower.js');
const { invalid } = require('../base/errors.js');
const { toOptions } = require('../base/options.js');
const { toOptionalPath, toPaths } = require('../base/path.js');
const { runWatched } = require('../base/progress.js');

const importDialects = Object.freeze(native.importDialects());

// paths, flags, dialect, exclude
function importArguments(paths, options) {
  const { select = 'clients', dialect, exclude } = toOptions(options);
  const flags = Object.hasOwn(SELECT, select) ? SELECT[select] : undefined;
  if (flags === undefined) {
    throw invalid(`what is selected is "clients", "all" or "others", not ${String(select)}`);
  }
  return [toPaths(paths), flags, dialect, toOptionalPath(exclude)];
}

async function importPaths(core, paths, options) {
  const given = importArguments(paths, options);
  return runWatched(options, (watch) => native.importTree(core.handle, ...given, watch));
}

async function scanImport(paths, options) {
  const given = importArguments(paths, options);
  return runWatched(options, (watch) => native.scanImport(...given, watch));
}

// hold: called with the promise of a round, returns it and keeps the store.
function followImport(core, hold, paths, options) {
  const given = importArguments(paths, options);
  core.check();
  return new Follower(toOptions(options).signal, async function* follow(wait) {
    const handle = native.openImport(core.handle, ...given);
    const leave = core.atEnd(() => native.closeHandle(handle));
    try {
      for (;;) {
        const found = await wait((signal) => hold(runWatched({ ...options, signal },
          (watch) => native.nextImport(handle, watch))));
        if (found === undefined) {
          return;
        }
        yield found;
      }
    } finally {
      leave();
      native.closeHandle(handle);
    }
  });
}

function importClients() {
  return native.importClients();
}

module.exports = { importDialects, importClients, importPaths, scanImport, followImport };
