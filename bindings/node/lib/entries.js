'use strict';

// Iteration over the entries of a session.

const { native, numbers } = require('./native.js');
const { CURSOR, CURSOR_ALL } = require('./flags.js');
const { Entry } = require('./entry.js');
const { invalid } = require('./errors.js');

const VALUES = 7;
const NUMBERS = 5;
// A turn for the event loop after so long, in milliseconds.
const TURN_MS = 2;

function cursorFlags(options) {
  let flags = 0;
  for (const name of Object.keys(CURSOR)) {
    if (options[name]) {
      flags |= CURSOR[name];
    }
  }
  return flags;
}

function modeOf(options) {
  const mode = options.mode ?? 'branch';
  if (mode !== 'branch' && mode !== 'all') {
    throw invalid(`the mode is "branch" or "all", not ${String(mode)}`);
  }
  return mode === 'all' ? CURSOR_ALL : 0;
}

function openCursor(session, options, after) {
  return native.openCursor(session, modeOf(options), cursorFlags(options), options.stream,
    options.upTo, options.head, options.skip, options.last, after);
}

// Reads the next entries of a cursor into an array, which is empty at the end.
function readBatch(cursor) {
  const values = [];
  const count = native.next(cursor, values);
  const batch = new Array(count);
  for (let i = 0; i < count; i++) {
    batch[i] = new Entry(values, i * VALUES, numbers, i * NUMBERS);
  }
  return batch;
}

class EntryIterator {
  #cursor;
  #batch = [];
  #next = 0;

  constructor(cursor) {
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
    this.#batch = readBatch(this.#cursor);
    if (this.#batch.length === 0) {
      this.#close();
      return false;
    }
    return true;
  }

  #close() {
    if (this.#cursor !== null) {
      native.closeCursor(this.#cursor);
      this.#cursor = null;
      this.#batch = [];
      this.#next = 0;
    }
  }
}

const turn = () => new Promise((resolve) => { setImmediate(resolve); });

async function* readInTurns(iterator) {
  let begin = performance.now();
  try {
    for (;;) {
      if (!iterator.isFilled && performance.now() - begin > TURN_MS) {
        await turn();
        begin = performance.now();
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
  #open;

  constructor(open) {
    this.#open = open;
  }

  [Symbol.iterator]() {
    return new EntryIterator(this.#open());
  }

  [Symbol.asyncIterator]() {
    return readInTurns(new EntryIterator(this.#open()));
  }

  toArray() {
    return [...this];
  }
}

module.exports = { Entries, openCursor, readBatch };
