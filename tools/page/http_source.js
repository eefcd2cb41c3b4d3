// http_source.js - sessions from agentwal serve (docs/server.md).

class HttpSource {
  constructor() {
    this.isLive = true;
    this.hasList = true;
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
  checkpoints(id) { return this.get(this.at(id) + '/checkpoints'); }
  diff(id, before, after) { return this.get(this.at(id) + '/diff', { before, after }); }
  usage(id) { return this.get(this.at(id) + '/usage'); }
  totals(by) { return this.get('/usage', { by }); }
  search(q, project, signal) { return this.get('/search', { q, project, limit: 50 }, signal); }
  image(part) { return '/api/v1/blobs/' + encodeURIComponent(part.digest); }

  exportUrl(id, dialect) {
    return '/api/v1' + this.at(id) + '/export?dialect=' + encodeURIComponent(dialect);
  }

  // Calls each(name, data) for what happens in the store from now on. The
  // browser connects again with the number of the last event.
  listen(each) {
    const events = new EventSource('/api/v1/events');
    for (const name of ['entry', 'session', 'deleted', 'head', 'checkpoint']) {
      events.addEventListener(name, (event) => each(name, JSON.parse(event.data)));
    }
    events.addEventListener('open', () => each('open', null));
    events.addEventListener('error', () => each('error', null));
  }
}
