'use strict';

// The addon, and what it shares with this thread.

const { load } = require('./binary.js');
const { makeError, WalError } = require('./errors.js');
const submissions = require('./submissions.js');

const { version } = require('../../package.json');

const native = load();

// Numbers that a call of the addon returns, until the next one.
const numbers = new Float64Array(new ArrayBuffer(2048 * 8));

const isFirst = native.setup(numbers, process.versions.bun === undefined, makeError,
  submissions.makeSettle(numbers), (...values) => values);

if (!isFirst) {
  throw new Error('agentwal is loaded twice in this thread; load it by one path');
}
if (native.version() !== version) {
  throw new WalError(
    `the binary of agentwal has version ${native.version()}, and the package ${version}`,
    { code: 'WAL_EVERSION' });
}

module.exports = { native, numbers };
