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
  #isDurable;
  #durable;

  lastId = null;

  // isDurable: once it is fulfilled.
  constructor(executor, core, isDurable) {
    super(executor);
    this.#core = core;
    this.#isDurable = isDurable;
  }

  get durable() {
    if (this.#durable === undefined) {
      const core = this.#core;
      this.#durable = this.#isDurable
        ? this.then(() => {})
        : this.then(() => core.syncSoon());
      // That it is read and not waited for is no unhandled rejection.
      this.#durable.catch(() => {});
    }
    return this.#durable;
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
    // They refer to the promise, and that to the store.
    resolver = undefined;
    rejecter = undefined;
  }

  fulfil(appended, duplicates, sequence) {
    this.resolve({ appended, duplicates, sequence, lastId: this.promise.lastId });
  }
}

function makeAppend(core, isDurable) {
  return new Waiter(new Append(keep, core, isDurable));
}

module.exports = { makeAppend };
