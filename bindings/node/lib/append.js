'use strict';

// The promise of a batch, with the id of its last entry and its durability.

// Set by the executor, so that none is made for each promise.
let resolver;
let rejecter;
function keep(resolve, reject) {
  resolver = resolve;
  rejecter = reject;
}

class Append extends Promise {
  #core;
  #durability;
  #durable;

  lastId = null;

  constructor(executor, core, durability) {
    super(executor);
    this.#core = core;
    this.#durability = durability;
  }

  get durable() {
    this.#durable ??= this.#core === undefined || this.#durability === 'durable'
      ? this.then(() => {})
      : this.#makeDurable();
    return this.#durable;
  }

  #makeDurable() {
    const core = this.#core;
    const made = this.then(() => core.syncSoon());
    // It is the caller's to handle; that nobody does is no failure of the
    // process, since the append was acknowledged as it was asked for.
    made.catch(() => {});
    return made;
  }
}

// A promise of this class is one of Promise to `await` and `then`: they neither
// wrap it nor make promises of this class.
delete Append.prototype.constructor;

// What submissions.js settles.
class Waiter {
  constructor(promise) {
    this.promise = promise;
    this.resolve = resolver;
    this.reject = rejecter;
  }

  fulfil(appended, duplicates, sequence) {
    this.resolve({ appended, duplicates, sequence, lastId: this.promise.lastId });
  }
}

function makeAppend(core, durability) {
  return new Waiter(new Append(keep, core, durability));
}

module.exports = { makeAppend };
