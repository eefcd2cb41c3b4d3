'use strict';

// Iterations without an end, which wait. Unlike those of a generator, return() and
// throw() end a next() that waits.

const { checkSignal } = require('./options.js');

const ENDED = Symbol('ended');

class Follower {
  #signal;
  #end = new AbortController();
  #iteration;

  // iterate: returns an asynchronous generator; it is called with a function
  // `wait`. That calls `start` with a signal and fulfils with what its promise
  // does, or with undefined when the iteration is to end. It rejects with the
  // reason of the signal of the caller.
  constructor(signal, iterate) {
    checkSignal(signal);
    this.#signal = signal;
    this.#iteration = iterate((start) => this.#wait(start));
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  next() {
    return this.#iteration.next();
  }

  return(value) {
    this.#end.abort(ENDED);
    return this.#iteration.return(value);
  }

  throw(error) {
    this.#end.abort(ENDED);
    return this.#iteration.throw(error);
  }

  async #wait(start) {
    const signal = this.#signal;
    const abort = () => { this.#end.abort(signal.reason); };
    signal?.throwIfAborted();
    signal?.addEventListener('abort', abort, { once: true });
    try {
      return await start(this.#end.signal);
    } catch (error) {
      if (error === ENDED) {
        return undefined;
      }
      throw error;
    } finally {
      signal?.removeEventListener('abort', abort);
    }
  }
}

module.exports = { Follower };
