'use strict';

// Paths as arguments.

const { fileURLToPath } = require('node:url');

const { invalid } = require('./errors.js');

// The text of a path, which is a string or a URL of a file.
function toPath(path) {
  if (path instanceof URL) {
    try {
      return fileURLToPath(path);
    } catch (error) {
      throw invalid(`the URL of a path is not valid: ${error.message}`, error);
    }
  }
  if (typeof path !== 'string') {
    throw invalid(`a path is a string or a URL, not ${path === null ? 'null' : typeof path}`);
  }
  return path;
}

// The same; undefined stays undefined.
function toOptionalPath(path) {
  return path === undefined ? undefined : toPath(path);
}

// The texts of one path, or of an array of them.
function toPaths(paths) {
  return (Array.isArray(paths) ? paths : [paths]).map(toPath);
}

module.exports = { toPath, toOptionalPath, toPaths };
