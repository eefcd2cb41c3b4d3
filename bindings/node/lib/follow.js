'use strict';

// Following a store or a session.

const { native } = require('./native.js');
const { CURSOR_ALL, DURABILITY } = require('./flags.js');
const { cursorFlags, readBatch, Turns } = require('./entries.js');
const { invalid } = require('./errors.js');

function durabilityOf(options) {
  const name = options.durability ?? 'written';
  if (name !== 'written' && name !== 'durable') {
    throw invalid(`the durability is "durable" or "written", not ${String(name)}`);
  }
  return DURABILITY[name];
}

// The numbers of the newest records, as they come.
function followStore(core, options) {
  const durability = durabilityOf(options);
  const after = options.after ?? native.newest(core.handle, durability, 0);
  return (async function* follow() {
    for (let newest = after;;) {
      newest = await core.grown(durability, newest, options.signal);
      yield newest;
    }
  })();
}

// Reads what is new in a session, again and again. The entries in log order only
// grow at their end, but for a compaction, which drops deltas, and redactions:
// then it reads from the start, and skips by sequence.
class Tail {
  #session;
  #options;
  #flags;
  #seen = 0;
  #lastSequence = 0;
  #passed;

  constructor(session, options, durability) {
    const { from = 'tail' } = options;
    this.#session = session;
    this.#options = options;
    this.#flags = cursorFlags({
      deltas: options.deltas, redacted: options.redacted,
      durable: durability === DURABILITY.durable,
    });
    if (from === 'tail') {
      this.#skipAll();
    } else if (from === 'start') {
      this.#passed = 0;
    } else if (Number.isSafeInteger(from) && from >= 0) {
      this.#passed = from;
    } else {
      throw invalid(`a session is followed from "start", "tail" or a sequence number, not ${String(from)}`);
    }
  }

  #open(skip, after) {
    return native.openCursor(this.#session, CURSOR_ALL, this.#flags, this.#options.stream,
      undefined, undefined, skip, 0, after);
  }

  // The entry at a position in log order, or undefined.
  #entryAt(position) {
    const cursor = this.#open(position, 0);
    try {
      return readBatch(cursor, 1)[0];
    } finally {
      native.closeCursor(cursor);
    }
  }

  #skipAll() {
    const cursor = this.#open(0, 0);
    this.#seen = native.remaining(cursor);
    native.closeCursor(cursor);
    this.#lastSequence = this.#seen === 0 ? 0 : this.#entryAt(this.#seen - 1)?.sequence ?? 0;
    this.#passed = this.#lastSequence;
  }

  // Yields arrays of the entries after those that were passed.
  * read() {
    if (this.#seen > 0 && this.#entryAt(this.#seen - 1)?.sequence !== this.#lastSequence) {
      this.#seen = 0;
    }
    const cursor = this.#open(this.#seen, this.#passed);
    try {
      const seen = this.#seen + native.remaining(cursor);
      for (;;) {
        const batch = readBatch(cursor);
        if (batch.length === 0) {
          break;
        }
        this.#passed = batch[batch.length - 1].sequence;
        yield batch;
      }
      if (seen > 0 && seen !== this.#seen) {
        this.#lastSequence = this.#entryAt(seen - 1)?.sequence ?? 0;
      }
      this.#seen = seen;
    } finally {
      native.closeCursor(cursor);
    }
  }
}

function followSession(core, session, options) {
  const durability = durabilityOf(options);
  const tail = new Tail(session, options, durability);
  return (async function* follow() {
    const turns = new Turns();
    for (;;) {
      options.signal?.throwIfAborted();
      const newest = native.newest(core.handle, durability, 0);
      for (const batch of tail.read()) {
        for (const entry of batch) {
          yield entry;
          options.signal?.throwIfAborted();
        }
        await turns.take();
      }
      await core.grown(durability, newest, options.signal);
    }
  })();
}

module.exports = { followStore, followSession };
