'use strict';

// Errors of the library: made by the addon through makeError, and by checks of
// arguments here.

const EXPECTATIONS = [null, 'tail', 'head', 'document', 'metadata', 'sequence'];

class WalError extends Error {
  constructor(message, fields = {}) {
    super(message, fields.cause === undefined ? undefined : { cause: fields.cause });
    this.code = fields.code;
    this.errno = fields.errno ?? 0;
    this.holder = fields.holder ?? 0;
    this.file = fields.file ?? '';
    this.offset = fields.offset ?? 0;
    this.actual = fields.actual ?? '';
    this.expectation = fields.expectation ?? null;
    this.result = fields.result ?? null;
  }
}

class ConflictError extends WalError {}
class NotFoundError extends WalError {}
class LockedError extends WalError {}

for (const type of [WalError, ConflictError, NotFoundError, LockedError]) {
  Object.defineProperty(type.prototype, 'name', {
    value: type.name, configurable: true, writable: true,
  });
}

const CLASSES = {
  WAL_ECONFLICT: ConflictError,
  WAL_ENOTFOUND: NotFoundError,
  WAL_ELOCKED: LockedError,
  WAL_ECLAIMED: LockedError,
};

// Called by the addon with what struct wal_error has.
function makeError(code, message, errno, holder, file, offset, actual, expectation) {
  const type = CLASSES[code] ?? WalError;
  return new type(message, {
    code, errno, holder, file, offset, actual, expectation: EXPECTATIONS[expectation],
  });
}

// The error of an argument.
function invalid(message, cause) {
  return new WalError(message, { code: 'WAL_EINVAL', cause });
}

// The error of a batch that is durable: only the remote may not have it.
function notShipped(error, result) {
  return new error.constructor(error.message, { ...error, cause: error.cause, result });
}

function closed(what) {
  return new WalError(`the ${what} was closed`, { code: 'WAL_ECLOSED' });
}

module.exports = {
  WalError, ConflictError, NotFoundError, LockedError, makeError, invalid, closed,
  notShipped,
};
