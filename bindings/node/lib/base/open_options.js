'use strict';

// Options of opening a store.

const { OPEN } = require('./flags.js');
const { toOptions } = require('./options.js');
const { toOptionalPath } = require('./path.js');

function openFlags(options) {
  let flags = options.create ?? !options.readOnly ? OPEN.create : 0;
  for (const name of ['exclusive', 'readOnly', 'strict', 'networkFs', 'pread', 'noop']) {
    if (options[name]) {
      flags |= OPEN[name];
    }
  }
  return flags;
}

// path, flags, queueLimit, lockTimeout, groupAlign, schemaVersion; `flags` of the
// options unless they are given.
function openArguments(path, options, flags) {
  const given = toOptions(options);
  return [toOptionalPath(path), flags ?? openFlags(given), given.queueLimit, given.lockTimeout,
    given.groupAlign, given.schemaVersion];
}

module.exports = { openArguments };
