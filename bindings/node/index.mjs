// The names of the package, for import.
import agentwal from './lib/index.js';

export const {
  Store, Session, WalError, ConflictError, NotFoundError, LockedError, version,
} = agentwal;
