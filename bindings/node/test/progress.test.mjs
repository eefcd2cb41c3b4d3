// Watching and stopping jobs.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import test from 'node:test';

import { rejection } from './lib/store.mjs';

const { runWatched } = createRequire(import.meta.url)('../lib/base/progress.js');

// Counts to 10 as a job does, until it is stopped.
function makeJob(ms) {
  return async (watch) => {
    for (let done = 1; done <= 10; done++) {
      await new Promise((resolve) => { setTimeout(resolve, ms); });
      watch[2] = 10;
      watch[1] = done;
      if (watch[0] !== 0) {
        throw Object.assign(new Error('stopped'), { code: 'WAL_ECALLBACK' });
      }
    }
    return 'done';
  };
}

test('a job without options is not watched', async () => {
  assert.equal(await runWatched(undefined, async (watch) => watch), undefined);
  assert.equal(await runWatched({}, async (watch) => watch), undefined);
});

test('progress is reported some times a second, and at the end', async () => {
  const calls = [];
  const result = await runWatched({ onProgress: (...call) => { calls.push(call); } }, makeJob(30));
  assert.equal(result, 'done');
  assert.ok(calls.length >= 2 && calls.length < 10, `${calls.length} calls`);
  assert.deepEqual(calls.at(-1), [10, 10]);
});

test('a signal stops a job, before and after it began', async () => {
  const reason = new Error('enough');
  const controller = new AbortController();
  setTimeout(() => controller.abort(reason), 20);
  assert.equal(await rejection(runWatched({ signal: controller.signal }, makeJob(10))), reason);
  assert.equal(await rejection(runWatched({ signal: controller.signal }, () => 1)), reason);
});

test('a failure stays what it is', async () => {
  const failure = Object.assign(new Error('of the disk'), { code: 'WAL_EIO' });
  const controller = new AbortController();
  const run = runWatched({ signal: controller.signal }, async () => {
    controller.abort();
    throw failure;
  });
  assert.equal(await rejection(run), failure);
});

test('what onProgress throws stops the job', async () => {
  const failure = new Error('of the caller');
  const run = runWatched({ onProgress() { throw failure; } }, makeJob(30));
  assert.equal(await rejection(run), failure);
});
