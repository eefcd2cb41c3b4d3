'use strict';

// Values as JSON text.

const { invalid } = require('./errors.js');

// Half of a surrogate pair, which UTF-8 cannot express.
const HALF = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

function isWellFormed(text) {
  return typeof text.isWellFormed === 'function' ? text.isWellFormed() : text.search(HALF) < 0;
}

// JSON text with each half of a surrogate pair as an escape.
function escapeHalves(text) {
  return isWellFormed(text)
    ? text
    : text.replace(HALF, (half) => `\\u${half.charCodeAt(0).toString(16)}`);
}

// The JSON text of a value; `what` names it in the error when it has none.
function toJson(value, what) {
  let text;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw invalid(`${what} is no JSON value: ${error.message}`, error);
  }
  if (text === undefined) {
    throw invalid(`${what} is no JSON value: ${typeof value}`);
  }
  return text;
}

// The same for an object; undefined stays undefined.
function toJsonObject(value, what) {
  if (value === undefined) {
    return undefined;
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    throw invalid(`${what} is not an object`);
  }
  return toJson(value, what);
}

module.exports = { toJson, toJsonObject, escapeHalves };
