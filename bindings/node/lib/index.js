'use strict';

const { native } = require('./native.js');
const { ConflictError, LockedError, NotFoundError, WalError } = require('./errors.js');
const imports = require('./exchange/imports.js');
const { Session } = require('./session.js');
const { Store } = require('./store.js');
const { isBundle } = require('./exchange/transfer.js');
const { viewDialects } = require('./exchange/views.js');

module.exports = {
  Store, Session, WalError, ConflictError, NotFoundError, LockedError,
  version: native.version(),
  viewDialects,
  importDialects: imports.importDialects,
  importClients: imports.importClients,
  scanImport: imports.scanImport,
  isBundle,
};
