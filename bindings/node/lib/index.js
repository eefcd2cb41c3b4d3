'use strict';

const { native } = require('./base/native.js');
const { ConflictError, LockedError, NotFoundError, WalError } = require('./base/errors.js');
const { Session } = require('./session/session.js');
const { Store } = require('./store/store.js');

module.exports = {
  Store, Session, WalError, ConflictError, NotFoundError, LockedError,
  version: native.version(),
};
