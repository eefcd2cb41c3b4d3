'use strict';

// Waiting for records of any process, for all who follow a store.

const { native } = require('../base/native.js');

class Watch {
  #core;
  #durability;
  #waiters = new Set();

  constructor(core, durability) {
    this.#core = core;
    this.#durability = durability;
  }

  grown(after, signal) {
    signal?.throwIfAborted();
    const newest = native.newest(this.#core.handle, this.#durability, after);
    if (newest > after) {
      this.#answer(newest); // first who asked before
      return newest;
    }
    return new Promise((resolve, reject) => {
      const waiter = { after, resolve, reject, signal, abort: null };
      if (signal !== undefined) {
        waiter.abort = () => {
          this.#remove(waiter);
          reject(signal.reason);
          this.#ask();
        };
        signal.addEventListener('abort', waiter.abort, { once: true });
      }
      this.#waiters.add(waiter);
      this.#ask();
    });
  }

  end(error) {
    for (const waiter of [...this.#waiters]) {
      this.#remove(waiter);
      waiter.reject(error);
    }
  }

  #remove(waiter) {
    this.#waiters.delete(waiter);
    waiter.signal?.removeEventListener('abort', waiter.abort);
  }

  #ask() {
    if (!this.#core.isOpen) {
      return;
    }
    if (this.#waiters.size === 0) {
      native.unwatch(this.#core.handle, this.#durability);
      return;
    }
    let after = Infinity;
    for (const waiter of this.#waiters) {
      after = Math.min(after, waiter.after);
    }
    native.watch(this.#core.handle, this.#durability, after,
      (newest, error) => this.#answer(newest, error));
  }

  #answer(newest, error) {
    for (const waiter of [...this.#waiters]) {
      if (error !== undefined) {
        this.#remove(waiter);
        waiter.reject(error);
      } else if (waiter.after < newest) {
        this.#remove(waiter);
        waiter.resolve(newest);
      }
    }
    this.#ask();
  }
}

module.exports = { Watch };
