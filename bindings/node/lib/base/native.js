'use strict';

// The addon's functions, and what they share with this copy of lib/. A thread may
// load lib/ several times, as test runners do for each test file; each copy has
// functions for itself.

const { load } = require('./binary.js');
const { makeError, WalError } = require('./errors.js');
const submissions = require('./submissions.js');

const { version } = require('../../package.json');

// Numbers that a call of the addon returns, until the next one.
const numbers = new Float64Array(new ArrayBuffer(2048 * 8));

const native = load().setup(numbers, process.versions.bun === undefined, makeError,
  submissions.makeSettle(numbers), (...values) => values);

if (native.version() !== version) {
  throw new WalError(
    `the binary of agentwal has version ${native.version()}, and the package ${version}`,
    { code: 'WAL_EVERSION' });
}

// While a store is open, `value` lives, and what it refers to. Without this, a test
// runner that drops a copy of lib/ would lose the stores which it left open.
function keep(value) {
  native.kept.push(value);
  return value;
}

module.exports = { native, numbers, keep };
