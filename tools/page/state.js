// state.js - what is shown, as the part of the address after '#':
// #/SESSION?head=...&leaf=...&entry=...&tab=...&q=...&project=...&hide=...

const state = {
  session: null, head: null, leaf: null, entry: null, tab: null, q: '', find: '', project: null,
  hide: '',
};
const KEYS = ['head', 'leaf', 'entry', 'tab', 'q', 'find', 'project', 'hide'];

const EMPTY = new Set(['q', 'find', 'hide']);

function readState() {
  const hash = location.hash.replace(/^#\/?/, '');
  const at = hash.indexOf('?');
  const path = at < 0 ? hash : hash.slice(0, at);
  const query = new URLSearchParams(at < 0 ? '' : hash.slice(at + 1));
  let session = null;
  try {
    session = path ? decodeURIComponent(path) : null;
  } catch {
    session = null;
  }
  const next = { session };
  for (const key of KEYS) next[key] = query.get(key) ?? (EMPTY.has(key) ? '' : null);
  return next;
}

function stateHash(value) {
  const query = new URLSearchParams();
  for (const key of KEYS) {
    if (value[key]) query.set(key, value[key]);
  }
  const text = query.toString();
  return '#/' + (value.session ? encodeURIComponent(value.session) : '') + (text ? '?' + text : '');
}

// Changes what is shown. `isNew` adds it to the history of the browser.
function setState(changes, isNew) {
  Object.assign(state, changes);
  const hash = stateHash(state);
  if (hash === location.hash || (hash === '#/' && location.hash === '')) return;
  if (isNew) {
    history.pushState(null, '', hash);
  } else {
    history.replaceState(null, '', hash);
  }
}

// What a reader chose, kept by the browser where it may be.
function setting(name, value) {
  try {
    if (value === undefined) return localStorage.getItem('agentwal.' + name);
    localStorage.setItem('agentwal.' + name, value);
  } catch {
    // A file or a private window may have no storage.
  }
  return null;
}
