'use strict';

const { native } = require('./native.js');
const { ConflictError, LockedError, NotFoundError, WalError } = require('./errors.js');
const { Session } = require('./session.js');
const { Store } = require('./store.js');

module.exports = {
  Store, Session, WalError, ConflictError, NotFoundError, LockedError,
  version: native.version(),
};
