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

// Milliseconds since 1970 of a Date or a number; undefined stays undefined.
function toTime(time, what) {
  const isDate = Object.prototype.toString.call(time) === '[object Date]';
  if (time !== undefined && typeof time !== 'number' && !isDate) {
    throw invalid(`${what} is a Date or a number, not ${time === null ? 'null' : typeof time}`);
  }
  return time === undefined ? undefined : Number(time);
}

// The bits of the options that are set, of those that `flags` has.
function toFlags(flags, options) {
  let bits = 0;
  for (const name of Object.keys(flags)) {
    bits |= options[name] ? flags[name] : 0;
  }
  return bits;
}

function checkSignal(signal) {
  if (signal !== undefined && typeof signal?.throwIfAborted !== 'function') {
    throw invalid('the signal is not an AbortSignal');
  }
}

module.exports = { checkSignal, toArray, toFlags, toOptions, toTime };
