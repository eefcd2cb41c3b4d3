'use strict';

// Jobs that are watched and stopped (native/store/job.h, Progress): the addon has a
// Float64Array [stop, done, total], which a thread writes and reads.

const INTERVAL_MS = 100;

class Watched {
  #watch = new Float64Array(new ArrayBuffer(24));
  #options;
  #failure;
  #seen = -1;
  #timer;
  #abort = () => { this.#watch[0] = 1; };

  constructor(options) {
    this.#options = options;
  }

  async run(start) {
    const { signal, onProgress } = this.#options;
    signal?.addEventListener('abort', this.#abort, { once: true });
    if (onProgress !== undefined) {
      this.#timer = setInterval(() => this.#report(), INTERVAL_MS);
    }
    try {
      const result = await start(this.#watch);
      this.#report();
      return result;
    } catch (error) {
      throw this.#reasonOf(error);
    } finally {
      clearInterval(this.#timer);
      signal?.removeEventListener('abort', this.#abort);
    }
  }

  // Calls onProgress when something was done; what it throws stops the job.
  #report() {
    const [, done, total] = this.#watch;
    if (this.#options.onProgress === undefined || this.#failure !== undefined ||
        done === this.#seen || total === 0) {
      return;
    }
    this.#seen = done;
    try {
      this.#options.onProgress(done, total);
    } catch (error) {
      this.#failure = { error };
      this.#watch[0] = 1;
    }
  }

  // Why a job failed that was asked to stop.
  #reasonOf(error) {
    if (error.code !== 'WAL_ECALLBACK' || this.#watch[0] === 0) {
      return error;
    }
    return this.#failure === undefined ? this.#options.signal.reason : this.#failure.error;
  }
}

// Calls start(watch), which starts a job and returns its promise, with the
// onProgress and the signal of the options.
async function runWatched(options, start) {
  options?.signal?.throwIfAborted();
  if (options?.onProgress === undefined && options?.signal === undefined) {
    return start(undefined);
  }
  return new Watched(options).run(start);
}

module.exports = { runWatched };
