// source.js - where sessions come from: agentwal serve (docs/seeing.md), or the
// one session that agentwal view wrote into the page, with the same methods.

const EVENTS = ['entry', 'session', 'deleted', 'head', 'document', 'checkpoint'];
const READY_MS = 1000; // to wait for events before the page loads what they change
const AGAIN_MS = 3000; // between attempts after the server has ended the events

class HttpSource {
  constructor() {
    this.isLive = true;
    this.hasList = true;
    this.last = null; // number of the last event
  }

  async get(path, parameters, signal) {
    const query = new URLSearchParams();
    for (const [key, value] of Object.entries(parameters || {})) {
      if (value !== null && value !== undefined && value !== '') query.set(key, value);
    }
    const text = query.toString();
    const answer = await fetch('/api/v1' + path + (text ? '?' + text : ''),
      { signal, headers: { Accept: 'application/json' } });
    let body;
    try {
      body = await answer.json();
    } catch {
      body = null;
    }
    if (!answer.ok || body === null) {
      throw new Error(body?.error?.text || 'The server answered ' + answer.status + '.');
    }
    return body;
  }

  at(session) {
    return '/sessions/' + encodeURIComponent(session);
  }

  info() { return this.get('/info'); }
  projects() { return this.get('/projects'); }
  sessions(filter, signal) { return this.get('/sessions', filter, signal); }
  session(id) { return this.get(this.at(id)); }
  entries(id, range) { return this.get(this.at(id) + '/entries', range); }
  entry(id, entry) { return this.get(this.at(id) + '/entries/' + encodeURIComponent(entry)); }
  tree(id) { return this.get(this.at(id) + '/tree'); }
  heads(id) { return this.get(this.at(id) + '/heads'); }
  checkpoints(id) { return this.get(this.at(id) + '/checkpoints'); }
  diff(id, before, after) { return this.get(this.at(id) + '/diff', { before, after }); }
  usage(id) { return this.get(this.at(id) + '/usage'); }
  totals(by) { return this.get('/usage', { by }); }
  search(q, project, signal) { return this.get('/search', { q, project, limit: 50 }, signal); }
  image(part) { return '/api/v1/blobs/' + encodeURIComponent(part.digest); }

  exportUrl(id, dialect) {
    return '/api/v1' + this.at(id) + '/export?dialect=' + encodeURIComponent(dialect);
  }

  // Calls each(name, data) for what happens in the store, and resolves when
  // events come, or do not for a while. A browser has six connections for a
  // server: the tab that has the lock connects for all, and passes events on.
  // There are also 'open', 'error', 'refused' (the server was started
  // again: this browser needs its new link) and 'reset' (the log is another one).
  listen(each) {
    return new Promise((ready) => {
      setTimeout(ready, READY_MS);
      this.receive = (name, id, data) => {
        if (id) this.last = id;
        each(name, data);
        ready();
      };
      if (!navigator.locks || !window.BroadcastChannel) {
        this.connect();
        return;
      }
      this.channel = new BroadcastChannel('agentwal.events');
      this.channel.addEventListener('message', ({ data }) => {
        if (data.name !== 'ask') this.receive(data.name, data.id, data.data);
        else if (this.status) this.channel.postMessage({ name: this.status, id: this.last });
      });
      this.channel.postMessage({ name: 'ask' });
      navigator.locks.request('agentwal.events', () => {
        this.connect();
        return new Promise(() => {}); // until the tab is closed
      });
    });
  }

  share(name, id, data) {
    this.channel?.postMessage({ name, id, data });
    this.receive(name, id, data);
  }

  setStatus(status) {
    this.status = status;
    this.share(status, null, null);
  }

  // The browser connects again by itself, with the number of the last event,
  // unless the server has answered with an error.
  connect() {
    const events = new EventSource('/api/v1/events' +
      (this.last === null ? '' : '?after=' + this.last));
    for (const name of EVENTS) {
      events.addEventListener(name, (event) =>
        this.share(name, event.lastEventId, JSON.parse(event.data)));
    }
    events.addEventListener('hello', (event) => {
      const { sequence } = JSON.parse(event.data);
      const isOther = this.last !== null && sequence < this.last;
      this.last = sequence;
      if (isOther) this.share('reset', null, null);
      else this.setStatus('open');
    });
    events.addEventListener('error', () => {
      if (events.readyState === EventSource.CLOSED) this.connectLater();
      else this.setStatus('error');
    });
  }

  async connectLater() {
    let answer = null;
    try {
      answer = await fetch('/api/v1/info');
    } catch {
      // The server does not run.
    }
    this.setStatus(answer?.status === 401 ? 'refused' : 'error');
    setTimeout(() => (answer?.ok ? this.connect() : this.connectLater()), AGAIN_MS);
  }
}

class FileSource {
  constructor(data) {
    this.isLive = false;
    this.hasList = false;
    this.data = data;
    this.byId = new Map(data.entries.map((entry) => [entry.id, entry]));
    const main = data.heads.find((head) => head.name === 'main');
    if (main) data.session.head = main.entryId;
  }

  async info() {
    return { version: null, store: null, sessions: 1, writable: false, search: false };
  }

  async projects() { return { projects: [] }; }
  async sessions() { return { sessions: [this.data.session], next: null }; }
  async session() { return this.data.session; }
  async entry(id, entry) { return this.byId.get(entry); }
  async checkpoints() { return { checkpoints: this.data.checkpoints }; }
  async usage() { return this.data.usage; }
  async totals() { return { usage: [] }; }
  async search() { return { sessions: [] }; }
  image() { return null; }
  exportUrl() { return null; }
  listen() {}

  leafOf(range) {
    if (range.leaf && this.byId.has(range.leaf)) return range.leaf;
    const head = this.data.heads.find((one) => one.name === (range.head || 'main'));
    if (head && this.byId.has(head.entryId)) return head.entryId;
    return this.data.entries.length > 0 ? this.data.entries[this.data.entries.length - 1].id : null;
  }

  branch(leaf) {
    if (this.branchLeaf !== leaf) {
      const path = [];
      const seen = new Set();
      for (let at = this.byId.get(leaf); at && !seen.has(at.id); at = this.byId.get(at.parentId)) {
        path.push(at);
        seen.add(at.id);
      }
      this.branchLeaf = leaf;
      this.path = path.reverse();
      this.rank = new Map(this.path.map((entry, at) => [entry.id, at]));
    }
    return this.path;
  }

  async entries(id, range) {
    const path = this.branch(this.leafOf(range));
    const end = range.before ? this.rank.get(range.before) ?? 0 : path.length;
    const from = Math.max(0, end - (range.limit || 100));
    return { entries: path.slice(from, end), before: from > 0 ? path[from].id : null, damaged: 0 };
  }

  async tree() {
    const nodes = this.data.entries.map((entry) => ({
      id: entry.id, parentId: entry.parentId, sequence: entry.sequence, time: entry.time,
      role: entry.role, type: entry.type, text: previewOf(entry),
    }));
    return { nodes, heads: this.data.heads };
  }

  async diff(id, before, after) {
    const found = this.data.diffs.find((one) => one.after === after &&
      (!before || one.before === before));
    return { files: found ? found.files : [] };
  }
}

// The beginning of an entry's texts, as in a tree.
function previewOf(entry) {
  const said = entry.parts.filter((part) => part.kind !== 'thinking');
  for (const part of said.length > 0 ? said : entry.parts) {
    if (part.kind === 'call') return '[' + part.name + '] ' + argumentText(part);
    if (part.text) return part.text.slice(0, 80).replace(/\s+/g, ' ');
  }
  return '';
}
