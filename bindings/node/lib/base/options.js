'use strict';

const { invalid } = require('./errors.js');

const NONE = Object.freeze({});

// The options of a call, which are an object or undefined.
function toOptions(options) {
  if (options === undefined) {
    return NONE;
  }
  if (options === null || typeof options !== 'object') {
    throw invalid(`options are an object, not ${options === null ? 'null' : typeof options}`);
  }
  return options;
}

// An array, which is empty for undefined.
function toArray(items, what) {
  if (items !== undefined && !Array.isArray(items)) {
    throw invalid(`${what} are an array`);
  }
  return items ?? [];
}

function checkSignal(signal) {
  if (signal !== undefined && typeof signal?.throwIfAborted !== 'function') {
    throw invalid('the signal is not an AbortSignal');
  }
}

module.exports = { checkSignal, toArray, toOptions };
