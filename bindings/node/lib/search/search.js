'use strict';

// Full-text search over the sessions of a store.

const { native } = require('../base/native.js');
const {
  SEARCH, SEARCH_MEMORY, SEARCH_NO_UPDATE, SEARCH_ROLE, SEARCH_UPDATE_DEEP,
} = require('../base/flags.js');
const { closed, invalid } = require('../base/errors.js');
const { Gate } = require('../base/gate.js');
const { toArray, toFlags, toOptions, toTime } = require('../base/options.js');
const { runWatched } = require('../base/progress.js');

const ROLE_NAMES = Object.fromEntries(
  Object.entries(SEARCH_ROLE).map(([name, role]) => [role, name]));

// What the addon found, which has the numbers of roles.
function toSessions(found) {
  for (const hit of found.flatMap(({ hits }) => hits)) {
    hit.role = ROLE_NAMES[hit.role];
  }
  return found;
}

function rolesOf(roles) {
  let set = 0;
  for (const role of toArray(roles, 'roles')) {
    if (!(role in SEARCH_ROLE)) {
      throw invalid(`a role is one of ${Object.keys(SEARCH_ROLE).join(', ')}, not ${String(role)}`);
    }
    set |= SEARCH_ROLE[role];
  }
  return set;
}

// A number from 1 on; 0 would be the default of the library.
function positive(options, name) {
  const value = options[name];
  if (value !== undefined && !(Number.isSafeInteger(value) && value > 0)) {
    throw invalid(`${name} is a number from 1 on, not ${String(value)}`);
  }
  return value;
}

// text, project, cwd, session, tool, flags, roles, since, until, limit, hits,
// snippet
function findArguments(text, given) {
  const options = toOptions(given);
  if (typeof text !== 'string') {
    throw invalid(`the text of a search is a string, not ${text === null ? 'null' : typeof text}`);
  }
  const flags = toFlags(SEARCH, options) | (options.update === false ? SEARCH_NO_UPDATE : 0);
  return [text, options.project, options.cwd, options.session, options.tool, flags,
    rolesOf(options.roles), toTime(options.since, 'since'), toTime(options.until, 'until'),
    positive(options, 'limit'), positive(options, 'hits'), positive(options, 'snippet')];
}

class Search {
  #core;
  #hold;
  #handle;
  // The close of the store does not wait for it, but stops what runs.
  #gate = new Gate(new Set());
  #isOpen = true;

  constructor(core, hold, handle) {
    this.#core = core;
    this.#hold = hold;
    this.#handle = handle;
  }

  #check() {
    this.#core.check();
    if (!this.#isOpen) {
      throw closed('search');
    }
  }

  // Calls the addon after the calls that were made before, once what was appended
  // before is written.
  async #run(options, call) {
    this.#check();
    const handle = this.#handle;
    const written = this.#core.written();
    written.catch(() => {});
    return this.#hold(this.#gate.run(async () => {
      await written;
      return runWatched(options, (watch) => {
        this.#core.check();
        return call(handle, watch);
      });
    }));
  }

  async find(text, options) {
    const given = findArguments(text, options);
    return toSessions(await this.#run(options,
      (handle, watch) => native.searchFind(handle, ...given, watch)));
  }

  findSync(text, options) {
    const given = findArguments(text, options);
    this.#check();
    return toSessions(native.searchFindSync(this.#handle, ...given));
  }

  async update(options) {
    const flags = toOptions(options).deep ? SEARCH_UPDATE_DEEP : 0;
    return this.#run(options, (handle, watch) => native.searchUpdate(handle, flags, watch));
  }

  // Calls that were made before are completed.
  close() {
    if (this.#isOpen) {
      this.#isOpen = false;
      this.#gate.end(() => { native.closeHandle(this.#handle); });
    }
  }
}

if (Symbol.dispose !== undefined) {
  Object.defineProperty(Search.prototype, Symbol.dispose, {
    value: Search.prototype.close, configurable: true, writable: true,
  });
}

function openSearch(core, hold, options) {
  const flags = toOptions(options).memory ? SEARCH_MEMORY : 0;
  return new Search(core, hold, native.openSearch(core.handle, flags));
}

module.exports = { openSearch };
