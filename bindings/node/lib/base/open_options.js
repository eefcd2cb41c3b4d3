'use strict';

// Options of opening a store.

const { OPEN } = require('./flags.js');
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

// path, flags, queueLimit, lockTimeout, groupAlign, schemaVersion
function openArguments(path, options, flags) {
  return [toOptionalPath(path), flags, options.queueLimit, options.lockTimeout,
    options.groupAlign, options.schemaVersion];
}

module.exports = { openArguments, openFlags };
