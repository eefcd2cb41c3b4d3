'use strict';

const { native } = require('../base/native.js');
const { CHECKPOINT, FILE_KIND, REWIND } = require('../base/flags.js');
const { entryId } = require('../base/entry_id.js');
const { invalid } = require('../base/errors.js');
const { toFlags, toOptions, toTime } = require('../base/options.js');
const { toOptionalPath } = require('../base/path.js');

// id, root, created, entryId, flags, threads, and whether the entry is the head: the one of the
// entries that are queued, too
function checkpointArguments(options) {
  const given = toOptions(options);
  const isUnlinked = given.entryId === null;
  return [given.id, toOptionalPath(given.root),
    toTime(given.created, 'created'),
    isUnlinked ? undefined : entryId(given.entryId, 'entryId'),
    (isUnlinked ? CHECKPOINT.unlinked : 0) | (given.allOrNone ? CHECKPOINT.allOrNone : 0),
    given.threads,
    given.entryId === undefined];
}

// A checkpoint, or null where checkpoints are off.
function toCheckpoint({ off, ...info }) {
  return off ? null : info;
}

function pushFile(flat, file) {
  if (file === null || typeof file !== 'object') {
    throw invalid('a file of a checkpoint is not an object');
  }
  const kind = FILE_KIND[file.kind];
  if (kind === undefined) {
    throw invalid(`the kind of a file is "absent", "file" or "symlink", not ${String(file.kind)}`);
  }
  flat.push(file.path, kind, file.mode, file.mtime, file.digest);
}

function flattenFiles(files) {
  if (!Array.isArray(files)) {
    throw invalid('the files of a checkpoint are an array');
  }
  const flat = [];
  for (const file of files) {
    pushFile(flat, file);
  }
  return flat;
}

class Checkpoints {
  #core;
  #session;
  #gate;

  constructor(core, session, gate) {
    this.#core = core;
    this.#session = session;
    this.#gate = gate;
  }

  #run(call, ...given) {
    this.#core.check();
    return this.#gate.run(() => call(this.#session, ...given));
  }

  async create(paths, options) {
    const list = Array.isArray(paths) ? [...paths] : [paths];
    return toCheckpoint(
      await this.#run(native.createCheckpoint, list, ...checkpointArguments(options)));
  }

  async import(files, options) {
    return toCheckpoint(await this.#run(native.importCheckpoint, flattenFiles(files),
      ...checkpointArguments(options)));
  }

  get(id) {
    this.#core.check();
    const found = native.checkpoint(this.#session, id);
    return found === null ? null : toCheckpoint(found);
  }

  files(id) {
    this.#core.check();
    return native.checkpointFiles(this.#session, id);
  }

  list() {
    this.#core.check();
    return native.checkpoints(this.#session).map(toCheckpoint);
  }

  async delete(id) {
    return this.#run(native.deleteCheckpoint, id);
  }

  async diff(before, after) {
    this.#core.check();
    return this.#core.after(this.#gate,
      () => native.diffCheckpoints(this.#session, before, after));
  }

  async setEnabled(on) {
    if (typeof on !== 'boolean') {
      throw invalid('checkpoints are set to true or false');
    }
    return this.#run(native.enableCheckpoints, on);
  }
}

// checkpoint, flags, root, expected; and that the head is the one of the entries that are
// queued, too
function rewindArguments(checkpointId, options) {
  const given = toOptions(options);
  return [checkpointId, toFlags(REWIND, given), toOptionalPath(given.root), given.expected, true];
}

module.exports = { Checkpoints, rewindArguments };
