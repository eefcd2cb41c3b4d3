'use strict';

// Lists of sessions.

const { native } = require('../base/native.js');
const { SESSION_CURSOR } = require('../base/flags.js');
const { invalid } = require('../base/errors.js');
const { toTime } = require('../base/options.js');

const LIMIT = 100;
const PAGE = 256;

function openList(core, options) {
  let flags = options.trash ? SESSION_CURSOR.trash : 0;
  flags |= options.lineageOf === undefined ? 0 : SESSION_CURSOR.lineage;
  return native.openList(core.handle, flags, options.cwd, options.project, options.prefix,
    options.source, options.parent, options.lineageOf, options.after,
    toTime(options.changedAfter, 'changedAfter'), options.recordedAfter);
}

function limitOf(options) {
  const limit = options.limit ?? LIMIT;
  if (!Number.isSafeInteger(limit) || limit < 1) {
    throw invalid(`the limit of a list is a number from 1 on, not ${String(limit)}`);
  }
  return limit;
}

// One page, with `next`: the position after it, or null at the end.
function listSessions(core, options) {
  const limit = limitOf(options);
  const list = openList(core, options);
  try {
    const page = native.listNext(list, Math.min(limit, 2 ** 32 - 1));
    page.next = null;
    if (page.length === limit && options.lineageOf === undefined) {
      const position = native.listPosition(list);
      page.next = native.listNext(list, 1).length === 0 ? null : position;
    }
    return page;
  } finally {
    native.closeHandle(list);
  }
}

function* iterate(core, options) {
  let left = options.limit === undefined ? Infinity : limitOf(options);
  const list = openList(core, options);
  try {
    while (left > 0) {
      core.check();
      const max = Math.min(left, PAGE);
      const page = native.listNext(list, max);
      left -= page.length;
      yield* page;
      if (page.length < max) {
        return;
      }
    }
  } finally {
    native.closeHandle(list);
  }
}

class Sessions {
  #core;
  #options;

  constructor(core, options) {
    this.#core = core;
    this.#options = options;
  }

  [Symbol.iterator]() {
    return iterate(this.#core, this.#options);
  }

  async* [Symbol.asyncIterator]() {
    let count = 0;
    for (const info of this) {
      if (++count % PAGE === 0) {
        await new Promise((resolve) => { setImmediate(resolve); });
      }
      yield info;
    }
  }
}

module.exports = { listSessions, Sessions };
