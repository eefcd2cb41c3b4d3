'use strict';

// Options of opening a store.

const { invalid } = require('./errors.js');
const { KEY, OPEN, OPEN_CREATE } = require('./flags.js');
const { toFlags, toOptions } = require('./options.js');
const { toOptionalPath } = require('./path.js');

function openFlags(options) {
  return toFlags(OPEN, options) | (options.create ?? !options.readOnly ? OPEN_CREATE : 0);
}

// [kind, bytes]; undefined stays undefined. No error shows any of it.
function toKey(key) {
  const kinds = Object.keys(KEY).filter((kind) => key?.[kind] !== undefined);
  if (key !== undefined && kinds.length !== 1) {
    throw invalid('a key is { secret } or { passphrase }');
  }
  return key && [KEY[kinds[0]], key[kinds[0]]];
}

// path, flags, queueLimit, lockTimeout, groupAlign, schemaVersion, key; `flags` of the
// options unless they are given.
function openArguments(path, options, flags) {
  const given = toOptions(options);
  return [toOptionalPath(path), flags ?? openFlags(given), given.queueLimit, given.lockTimeout,
    given.groupAlign, given.schemaVersion, toKey(given.key)];
}

module.exports = { openArguments };
