'use strict';

// Following a store or a session.

const { native } = require('../base/native.js');
const { CURSOR, CURSOR_ALL, DURABILITY } = require('../base/flags.js');
const { readBatch, Turns } = require('./entries.js');
const { Follower } = require('../base/follower.js');
const { invalid } = require('../base/errors.js');
const { toFlags } = require('../base/options.js');

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
  return new Follower(options.signal, async function* follow(wait) {
    for (let newest = after;;) {
      const last = newest;
      newest = await wait((signal) => core.grown(durability, last, signal));
      if (newest === undefined) {
        return;
      }
      yield newest;
    }
  });
}

// Reads what is new in a session, again and again. In log order the sequence
// numbers ascend. Entries are added at the end, but a compaction drops deltas, and
// a redaction hides its entry: so the position after what was seen counts only
// while the entry before it is the same; otherwise reading begins at the start, and
// skips by sequence.
class Tail {
  #session;
  #stream;
  #flags;
  #passed; // sequence of the last entry that was yielded or is left out
  #seen = 0; // entries up to #lastSequence, which is not above #passed
  #lastSequence = 0;

  constructor(session, options, durability, newest) {
    const { from = 'tail' } = options;
    this.#session = session;
    this.#stream = options.stream;
    this.#flags = toFlags(CURSOR, {
      deltas: options.deltas, redacted: options.redacted,
      durable: durability === DURABILITY.durable,
    });
    if (from === 'tail') {
      this.#passed = newest;
      this.#skipAll();
    } else if (from === 'start') {
      this.#passed = 0;
    } else if (Number.isSafeInteger(from) && from >= 0) {
      this.#passed = from;
    } else {
      throw invalid('a session is followed from "start", "tail" or a sequence number, not ' +
        String(from));
    }
  }

  #open(skip, after) {
    return native.openCursor(this.#session, CURSOR_ALL, this.#flags, this.#stream, undefined,
      undefined, skip, 0, after);
  }

  // The sequence of the entry at a position in log order; 0: there is none.
  #sequenceAt(position) {
    const cursor = this.#open(position, 0);
    try {
      return readBatch(cursor, 1)[0]?.sequence ?? 0;
    } finally {
      native.closeHandle(cursor);
    }
  }

  // Counts what is there, without reading it.
  #skipAll() {
    const cursor = this.#open(0, 0);
    const seen = native.remaining(cursor);
    native.closeHandle(cursor);
    const last = seen === 0 ? 0 : this.#sequenceAt(seen - 1);
    if (last <= this.#passed) {
      this.#seen = seen;
      this.#lastSequence = last;
    }
  }

  // Yields arrays of the entries after those that were passed.
  * read() {
    if (this.#seen > 0 && this.#sequenceAt(this.#seen - 1) !== this.#lastSequence) {
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
      this.#lastSequence = native.lastSequence(cursor) || this.#lastSequence;
      this.#seen = seen;
    } finally {
      native.closeHandle(cursor);
    }
  }
}

// ends: a set of functions that are called when the session is closed.
function followSession(core, session, options, ends) {
  const durability = durabilityOf(options);
  const tail = new Tail(session, options, durability, native.newest(core.handle, durability, 0));
  return new Follower(options.signal, async function* follow(wait) {
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
      const grown = await wait((signal) => core.grown(durability, newest, signal));
      if (grown === undefined) {
        return;
      }
    }
  }, ends);
}

module.exports = { followStore, followSession };
