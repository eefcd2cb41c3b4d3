'use strict';

const { native } = require('./base/native.js');
const { ConflictError, LockedError, NotFoundError, WalError } = require('./base/errors.js');
const imports = require('./exchange/imports.js');
const { isBundle } = require('./exchange/transfer.js');
const { viewDialects } = require('./exchange/views.js');
const { Session } = require('./session/session.js');
const { Store } = require('./store/store.js');

module.exports = {
  Store, Session, WalError, ConflictError, NotFoundError, LockedError,
  version: native.version(),
  viewDialects,
  importDialects: imports.importDialects,
  importClients: imports.importClients,
  scanImport: imports.scanImport,
  isBundle,
};
