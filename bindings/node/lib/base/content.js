'use strict';

// Bytes as arguments.

const { invalid } = require('./errors.js');

// Throws for bytes that detached buffers had, which have the length 0, and for
// undefined and null. The addon refuses all else that is neither a string nor a
// Uint8Array.
function checkContent(content, what) {
  if (content === undefined || content === null) {
    throw invalid(`${what} is a string or a Uint8Array, not ${content}`);
  }
  if (ArrayBuffer.isView(content) && content.byteLength === 0) {
    try {
      Uint8Array.prototype.at.call(content, 0);
    } catch (error) {
      throw invalid(`${what} is a Uint8Array whose buffer is there, not one that was ` +
        'transferred or made shorter', error);
    }
  }
}

module.exports = { checkContent };
