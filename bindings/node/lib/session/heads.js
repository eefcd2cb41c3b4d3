'use strict';

// Moves of heads.

const { HEAD_EXPECT } = require('../base/flags.js');
const { entryId } = require('../base/entry_id.js');
const { invalid } = require('../base/errors.js');
const { toArray, toOptions } = require('../base/options.js');

// entryId, name, note, expected, flags, stream
function moveArguments(target, options) {
  if (target === undefined) {
    throw invalid('a head moves to an entry, or with null is removed');
  }
  const { name, note, expect, stream } = toOptions(options);
  return [entryId(target, 'entryId'), name, note, entryId(expect, 'expect'),
    expect === undefined ? 0 : HEAD_EXPECT, stream];
}

function flattenHeads(moves) {
  const flat = [];
  for (const move of toArray(moves, 'the heads of a batch')) {
    if (move === null || typeof move !== 'object') {
      throw invalid('a move of a head is not an object');
    }
    flat.push(...moveArguments(move.entryId, move));
  }
  return flat;
}

module.exports = { moveArguments, flattenHeads };
