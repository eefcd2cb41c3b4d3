'use strict';

// Options of opening a store.

const { OPEN, OPEN_CREATE } = require('./flags.js');
const { toFlags, toOptions } = require('./options.js');
const { toOptionalPath } = require('./path.js');

function openFlags(options) {
  return toFlags(OPEN, options) | (options.create ?? !options.readOnly ? OPEN_CREATE : 0);
}

// path, flags, queueLimit, lockTimeout, groupAlign, schemaVersion; `flags` of the
// options unless they are given.
function openArguments(path, options, flags) {
  const given = toOptions(options);
  return [toOptionalPath(path), flags ?? openFlags(given), given.queueLimit, given.lockTimeout,
    given.groupAlign, given.schemaVersion];
}

module.exports = { openArguments };
