'use strict';

// Iteration over the entries of a session.

const { native, numbers } = require('../base/native.js');
const { CURSOR, CURSOR_ALL } = require('../base/flags.js');
const { Entry } = require('./entry.js');
const { entryId } = require('../base/entry_id.js');
const { invalid } = require('../base/errors.js');
const { toFlags } = require('../base/options.js');

const VALUES = 7;
const NUMBERS = 5;
// A turn for the event loop after so long, in milliseconds.
const TURN_MS = 2;

function modeOf(options) {
  const mode = options.mode ?? 'branch';
  if (mode !== 'branch' && mode !== 'all') {
    throw invalid(`the mode is "branch" or "all", not ${String(mode)}`);
  }
  return mode === 'all' ? CURSOR_ALL : 0;
}

function openCursor(session, options, after) {
  return native.openCursor(session, modeOf(options), toFlags(CURSOR, options), options.stream,
    entryId(options.upTo, 'upTo'), options.head, options.skip, options.last, after);
}

function makeEntries(values) {
  const entries = new Array(values.length / VALUES);
  for (let i = 0; i < entries.length; i++) {
    entries[i] = new Entry(values, i * VALUES, numbers, i * NUMBERS);
  }
  return entries;
}

// Reads the next entries of a cursor, at most `max`, into an array, which is empty
// at the end.
function readBatch(cursor, max) {
  return makeEntries(native.next(cursor, max));
}

class EntryIterator {
  #core;
  #cursor;
  #batch = [];
  #next = 0;

  constructor(core, cursor) {
    this.#core = core;
    this.#cursor = cursor;
  }

  [Symbol.iterator]() {
    return this;
  }

  next() {
    if (this.#next === this.#batch.length && !this.#fill()) {
      return { done: true, value: undefined };
    }
    return { done: false, value: this.#batch[this.#next++] };
  }

  return(value) {
    this.#close();
    return { done: true, value };
  }

  // Whether the next entry is here already.
  get isFilled() {
    return this.#next < this.#batch.length;
  }

  #fill() {
    if (this.#cursor === null) {
      return false;
    }
    this.#next = 0;
    this.#batch = [];
    this.#core.check();
    this.#batch = readBatch(this.#cursor);
    if (this.#batch.length === 0) {
      this.#close();
      return false;
    }
    return true;
  }

  #close() {
    if (this.#cursor !== null) {
      native.closeHandle(this.#cursor);
      this.#cursor = null;
      this.#batch = [];
      this.#next = 0;
    }
  }
}

// Turns of the event loop for other tasks.
class Turns {
  #begin = performance.now();

  // Returns a promise when the time is over.
  take() {
    if (performance.now() - this.#begin < TURN_MS) {
      return undefined;
    }
    return new Promise((resolve) => {
      setImmediate(() => {
        this.#begin = performance.now();
        resolve();
      });
    });
  }
}

async function* readInTurns(iterator) {
  const turns = new Turns();
  try {
    for (;;) {
      if (!iterator.isFilled) {
        await turns.take();
      }
      const { done, value } = iterator.next();
      if (done) {
        return;
      }
      yield value;
    }
  } finally {
    iterator.return();
  }
}

class Entries {
  #core;
  #open;

  constructor(core, open) {
    this.#core = core;
    this.#open = open;
  }

  [Symbol.iterator]() {
    return new EntryIterator(this.#core, this.#open());
  }

  [Symbol.asyncIterator]() {
    return readInTurns(this[Symbol.iterator]());
  }

  toArray() {
    return [...this];
  }
}

// The entry with an id, or null.
function readEntry(session, id) {
  return makeEntries(native.entry(session, id))[0] ?? null;
}

module.exports = { Entries, Turns, openCursor, readBatch, readEntry };
