'use strict';

// Promises of batches that were submitted. Each has a slot, a number that the
// addon returns with its outcome.

const slots = [];
const free = [];

function take(waiter) {
  const slot = free.length > 0 ? free.pop() : slots.length;
  slots[slot] = waiter;
  return slot;
}

function release(slot) {
  const waiter = slots[slot];
  slots[slot] = null;
  free.push(slot);
  return waiter;
}

// Returns the function that the addon calls with `count` outcomes in `numbers`:
// slot, appended, duplicates, sequence; details[i] is the error of a failure.
function makeSettle(numbers) {
  return function settle(count, details) {
    // Settling may run code of others, as hooks of promises, that calls the addon.
    const outcomes = numbers.slice(0, 4 * count);
    for (let i = 0; i < count; i++) {
      const at = 4 * i;
      const waiter = release(outcomes[at]);
      const error = details === undefined ? undefined : details[i];
      if (error === undefined) {
        waiter.fulfil(outcomes[at + 1], outcomes[at + 2], outcomes[at + 3]);
      } else {
        waiter.reject(error);
      }
    }
  };
}

module.exports = { take, release, makeSettle };
