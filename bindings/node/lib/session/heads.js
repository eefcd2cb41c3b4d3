'use strict';

// Moves of heads.

const { HEAD_EXPECT } = require('../base/flags.js');
const { entryId } = require('./entry_id.js');
const { invalid } = require('../base/errors.js');

// entryId, name, note, expected, flags, stream
function moveArguments(target, options) {
  if (target === undefined) {
    throw invalid('a head moves to an entry, or with null is removed');
  }
  const expect = entryId(options?.expect, 'expect');
  return [entryId(target, 'entryId'), options?.name, options?.note, expect, expect === undefined ? 0 : HEAD_EXPECT,
    options?.stream];
}

function flattenHeads(moves) {
  const flat = [];
  for (const move of moves ?? []) {
    flat.push(...moveArguments(move.entryId, move));
  }
  return flat;
}

module.exports = { moveArguments, flattenHeads };
