'use strict';

// The order of calls on one session, or on the documents of a store. Batches are
// submitted in order, but the outcomes of some calls are known to a thread alone:
// moves of heads, documents, changes. What is asked for after such a call begins
// once it has ended.

class Gate {
  #last = null;
  #all;

  // all: a set of what is under way, for a close to wait for.
  constructor(all) {
    this.#all = all;
  }

  get isIdle() {
    return this.#last === null;
  }

  // Fulfils when the calls before have ended.
  settled() {
    return this.#last ?? Promise.resolve();
  }

  // Calls `end`, which waits for nothing, after the calls before have ended.
  end(end) {
    if (this.isIdle) {
      end();
    } else {
      this.run(end);
    }
  }

  // Calls `start`, which returns a promise, after the calls before it have ended.
  run(start) {
    const result = this.#last === null
      ? new Promise((resolve) => { resolve(start()); })
      : this.#last.then(start);
    // Of what waits for the result this is the first, so that after an `await` of
    // it the gate is idle.
    const end = () => {
      this.#all.delete(done);
      if (this.#last === done) {
        this.#last = null;
      }
    };
    const done = result.then(end, end);
    this.#last = done;
    this.#all.add(done);
    return result;
  }
}

module.exports = { Gate };
