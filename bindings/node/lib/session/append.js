'use strict';

// The promise of a batch, with the id of its last entry and its durability.

const { notShipped, WalError } = require('../base/errors.js');
const { DURABILITY } = require('../base/flags.js');

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

  #makeDurable() {
    switch (this.#durability) {
      case DURABILITY.durable:
        return this.then(() => {});
      case DURABILITY.cluster:
        return this.then(() => {}, (error) => {
          if ((error.result ?? null) === null) {
            throw error;
          }
        });
      default: {
        const core = this.#core;
        return this.then(() => core.syncSoon());
      }
    }
  }

  get durable() {
    if (this.#durable === undefined) {
      this.#durable = this.#makeDurable();
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

// The same, of a batch that is to be stored in the remote once it is durable.
class ClusterWaiter extends Waiter {
  #core;

  constructor(promise, core) {
    super(promise);
    this.#core = core;
  }

  fulfil(appended, duplicates, sequence) {
    const result = { appended, duplicates, sequence, lastId: this.promise.lastId };
    this.#core.shipped().then(() => { this.resolve(result); }, (error) => {
      this.reject(error instanceof WalError ? notShipped(error, result) : error);
    });
  }
}

function makeAppend(core, durability) {
  const promise = new Append(keep, core, durability);
  return durability === DURABILITY.cluster ? new ClusterWaiter(promise, core) : new Waiter(promise);
}

module.exports = { makeAppend };
