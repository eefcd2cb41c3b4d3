'use strict';

// The order of calls on one session, or on the documents of a store. Batches are
// submitted in order, but the outcomes of some calls are known to a thread alone:
// moves of heads, documents, changes. What is asked for after such a call begins
// once it has ended.

const nothing = () => {};

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

  // Calls `start`, which returns a promise, after the calls before it have ended.
  run(start) {
    const result = this.#last === null
      ? new Promise((resolve) => { resolve(start()); })
      : this.#last.then(start);
    const done = result.then(nothing, nothing).then(() => {
      this.#all.delete(done);
      if (this.#last === done) {
        this.#last = null;
      }
    });
    this.#last = done;
    this.#all.add(done);
    return result;
  }
}

module.exports = { Gate };
