'use strict';

// Calls that run for long: their progress, and stopping them.

const { native } = require('./native.js');
const { invalid } = require('./errors.js');
const { checkSignal, toOptions } = require('./options.js');

// Between looks at the progress, in milliseconds.
const LOOK_MS = 100;

// What the addon shares with us: native/store/job.h.
const STOP = 0;
const DONE = 1;
const TOTAL = 2;

let running = 0;

// Waits for what `start` returns. When the process exits, no thread of ours may
// run.
async function endAtExit(start) {
  if (running++ === 0) {
    process.on('exit', native.endJobs);
  }
  try {
    return await start();
  } finally {
    if (--running === 0) {
      process.off('exit', native.endJobs);
    }
  }
}

function check({ onProgress, signal }) {
  if (onProgress !== undefined && typeof onProgress !== 'function') {
    throw invalid('onProgress is not a function');
  }
  checkSignal(signal);
}

class Observer {
  #watch = new Float64Array(3);
  #onProgress;
  #signal;
  #done = -1;
  #timer;
  #thrown;

  constructor({ onProgress, signal }) {
    this.#onProgress = onProgress;
    this.#signal = signal;
  }

  #stop = () => {
    this.#watch[STOP] = 1;
  };

  #show() {
    const done = this.#watch[DONE];
    const total = this.#watch[TOTAL];
    if (done === this.#done || total === 0 || this.#thrown !== undefined) {
      return;
    }
    this.#done = done;
    try {
      this.#onProgress(done, total);
    } catch (error) {
      this.#thrown = { error };
      this.#stop();
    }
  }

  async run(start) {
    this.#signal?.addEventListener('abort', this.#stop, { once: true });
    if (this.#onProgress !== undefined) {
      this.#timer = setInterval(() => this.#show(), LOOK_MS);
      this.#timer.unref();
    }
    try {
      const result = await start(this.#watch);
      if (this.#onProgress !== undefined) {
        this.#show();
      }
      return result;
    } catch (error) {
      throw error.code === 'WAL_ECALLBACK' && this.#signal?.aborted ? this.#signal.reason : error;
    } finally {
      clearInterval(this.#timer);
      this.#signal?.removeEventListener('abort', this.#stop);
      if (this.#thrown !== undefined) {
        throw this.#thrown.error;
      }
    }
  }
}

// Calls `start`, which calls the addon with what it is given and returns its
// promise.
async function runWatched(options, start) {
  const { onProgress, signal } = toOptions(options);
  check({ onProgress, signal });
  signal?.throwIfAborted();
  return endAtExit(() => (onProgress === undefined && signal === undefined
    ? start(undefined)
    : new Observer({ onProgress, signal }).run(start)));
}

module.exports = { runWatched };
