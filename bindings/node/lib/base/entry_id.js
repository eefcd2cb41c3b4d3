'use strict';

const { invalid } = require('./errors.js');

// The id of an entry as an argument. The library takes an empty one for none, as
// which undefined and null are meant.
function entryId(id, what) {
  if (id !== undefined && id !== null && typeof id !== 'string') {
    throw invalid(`${what} is the id of an entry, a string, not ${typeof id}`);
  }
  if (id === '') {
    throw invalid(`${what} is the id of an entry, which has 1 to 255 bytes`);
  }
  return id;
}

module.exports = { entryId };
