// made_server.mjs - a server with made sessions in the form of docs/seeing.md,
// for tests of the page alone: many sessions, long ones, hostile ones, events.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const START = 1790000000000;

export function madeSession(at, entries = 12) {
  return {
    id: 'session-' + at, number: at, title: at % 3 === 0 ? null : 'Made session ' + at,
    text: 'The first message of session ' + at, cwd: '/srv/project-' + at % 40,
    projectId: 'p' + at % 40, client: at % 2 ? 'claude' : 'codex', parentId: null,
    created: START - at * 60000, updated: START - at * 60000 + 5000, entries, bytes: entries * 400,
    sequence: 1000000 - at, head: 'e' + (entries - 1), damaged: false, resume: 'agentwal cat x',
  };
}

function madeParts(at) {
  if (at % 3 === 0) {
    return [{ kind: 'text', text: 'Question ' + at + ': where is the time spent?' }];
  }
  if (at % 3 === 1) {
    return [{ kind: 'text', text: 'I **measure** it with `perf` (' + at + ').\n\n- one\n- two' },
      { kind: 'call', id: 'c' + at, name: 'bash', arguments: { command: 'perf stat run ' + at } }];
  }
  return [{ kind: 'result', id: 'c' + (at - 1), error: at % 30 === 2,
    text: Array.from({ length: 12 }, (_, line) => line + ' cycles of ' + at).join('\n') }];
}

export function madeEntry(at, parts = madeParts(at)) {
  return {
    id: 'e' + at, parentId: at > 0 ? 'e' + (at - 1) : null, type: 'message',
    time: START + at * 1000, sequence: at + 1, depth: at,
    role: ['user', 'assistant', 'tool'][at % 3],
    model: at % 3 === 1 ? 'made-model' : null, redacted: false, damaged: false, bytes: 400, parts,
  };
}

// options: sessions, entries (a list of entries of every session).
export class MadeServer {
  constructor(html, options) {
    this.html = readFileSync(html);
    this.policy = options.policy;
    this.sessions = options.sessions || 1;
    this.entries = options.entries;
    this.streams = new Set();
    this.server = createServer((request, response) => this.answer(request, response));
  }

  async start() {
    await new Promise((done) => this.server.listen(0, '127.0.0.1', done));
    this.origin = 'http://127.0.0.1:' + this.server.address().port;
    return this;
  }

  stop() {
    for (const stream of this.streams) stream.end();
    this.server.closeAllConnections();
    this.server.close();
  }

  send(name, data) {
    for (const stream of this.streams) {
      stream.write('event: ' + name + '\ndata: ' + JSON.stringify(data) + '\n\n');
    }
  }

  answer(request, response) {
    const url = new URL(request.url, this.origin);
    if (url.pathname === '/') {
      response.writeHead(200, {
        'content-type': 'text/html; charset=utf-8', 'content-security-policy': this.policy,
      });
      response.end(this.html);
      return;
    }
    if (url.pathname === '/api/v1/events') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('event: hello\ndata: {}\n\n');
      this.streams.add(response);
      return;
    }
    const body = this.body(url.pathname.replace('/api/v1', ''), url.searchParams);
    response.writeHead(body ? 200 : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body ||
      { error: { status: 'NOT_FOUND', text: 'No such resource.' } }));
  }

  body(path, query) {
    const part = /^\/sessions\/([^/]+)(?:\/(.*))?$/.exec(path);
    if (part) return this.sessionBody(decodeURIComponent(part[1]), part[2], query);
    switch (path) {
      case '/info':
        return { version: '0', store: '/srv/store', writable: false, sessions: this.sessions,
          sequence: 1, search: true };
      case '/projects':
        return { projects: [{ id: 'p1', cwd: '/srv/project-1', name: 'project-1', sessions: 9,
          updated: START }] };
      case '/sessions':
        return this.list(query);
      case '/search':
        return { sessions: [{ sessionId: 'session-7', title: 'Found', cwd: '/srv', updated: START,
          matches: 2, hits: [{ entryId: 'e3', snippet: 'a found word' }] }] };
      case '/usage':
        return { usage: [] };
      default:
        return null;
    }
  }

  list(query) {
    const from = Number(query.get('cursor') || 0);
    const end = Math.min(this.sessions, from + Number(query.get('limit') || 50));
    const title = query.get('title');
    const sessions = [];
    for (let at = from; at < end && !title; at++) {
      sessions.push(madeSession(at, this.entries.length));
    }
    return { sessions, next: end < this.sessions && !title ? String(end) : null };
  }

  sessionBody(id, what, query) {
    const { entries } = this;
    switch (what) {
      case undefined:
        return madeSession(Number(id.replace(/\D/g, '')), entries.length);
      case 'entries': {
        const before = query.get('before');
        const end = before ? entries.findIndex((one) => one.id === before) : entries.length;
        const from = Math.max(0, end - Number(query.get('limit') || 100));
        return { entries: entries.slice(from, end), before: from > 0 ? entries[from].id : null };
      }
      case 'tree':
        return {
          nodes: entries.map((one) =>
            ({ ...one, parts: undefined, text: one.parts[0]?.text || '' })),
          heads: this.sessionBody(id, 'heads').heads,
        };
      case 'heads':
        return { heads: [{ name: 'main', entryId: entries[entries.length - 1].id }] };
      case 'checkpoints':
        return { checkpoints: [] };
      case 'usage':
        return { turns: [], models: [] };
      default:
        return null;
    }
  }
}
