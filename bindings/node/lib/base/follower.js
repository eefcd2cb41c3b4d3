'use strict';

// Iterations without an end, which wait. Unlike those of a generator, return() and
// throw() end a next() that waits.

const { checkSignal } = require('./options.js');

const ENDED = Symbol('ended');

// One listener for each signal: more than ten would be reported as a leak.
const listening = new WeakMap();

// Calls `abort` when the signal is aborted. Returns a function that takes that back.
function onAbort(signal, abort) {
  if (signal === undefined) {
    return () => {};
  }
  let all = listening.get(signal);
  if (all === undefined) {
    all = new Set();
    listening.set(signal, all);
    signal.addEventListener('abort', () => { [...all].forEach((each) => { each(); }); },
      { once: true });
  }
  all.add(abort);
  return () => { all.delete(abort); };
}

class Follower {
  #signal;
  #ends;
  #end = new AbortController();
  #iteration;

  // iterate: returns an asynchronous generator; it is called with a function
  // `wait`. That calls `start` with a signal and fulfils with what its promise
  // does, or with undefined when the iteration is to end. It rejects with the
  // reason of the signal of the caller. ends: a set; while it waits, it has a
  // function there that ends the iteration.
  constructor(signal, iterate, ends) {
    checkSignal(signal);
    this.#signal = signal;
    this.#ends = ends;
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
    const end = () => { this.#end.abort(ENDED); };
    signal?.throwIfAborted();
    const leave = onAbort(signal, abort);
    this.#ends?.add(end);
    try {
      return await start(this.#end.signal);
    } catch (error) {
      if (error === ENDED) {
        return undefined;
      }
      throw error;
    } finally {
      leave();
      this.#ends?.delete(end);
    }
  }
}

module.exports = { Follower };
