// session_list.js - the sessions of a store: by project, by words, newest
// first; and the results of a search, which take the same place.

class SessionList {
  constructor(app) {
    this.app = app;
    this.list = new VirtualList({
      name: 'session', label: 'Sessions', rowHeight: 58,
      render: (row, at) => this.row(row, at), more: () => this.more(),
    });
    this.input = el('input', {
      type: 'search', placeholder: 'Search sessions', 'aria-label': 'Search sessions',
      spellcheck: 'false', autocomplete: 'off',
      oninput: () => this.typed(),
      onkeydown: (event) => this.keydown(event),
    });
    this.select = el('select', {
      'aria-label': 'Project', onchange: () => this.choose(this.select.value),
    });
    this.count = el('span', { class: 'dim count' });
    this.node = el('nav', { class: 'sessions', 'aria-label': 'Sessions' },
      el('div', { class: 'navtop' }, this.input,
        el('div', { class: 'navrow' }, this.select, this.count)),
      this.list.node);
  }

  async start() {
    this.input.value = state.q;
    const [info] = await Promise.all([this.app.source.info(), this.reload()]);
    this.info = info;
    this.list.add([], this.total(), this.list.isComplete);
    this.countText();
    const { projects } = await this.app.source.projects();
    this.projects = projects;
    this.fillProjects();
  }

  fillProjects() {
    const names = this.projects.map((one) => one.name || lastName(one.cwd) || one.id ||
      'no directory');
    replace(this.select, el('option', { value: '' }, 'All projects'),
      this.projects.map((one, at) => el('option', { value: one.id, title: plain(one.cwd) },
        plain(names.indexOf(names[at]) === names.lastIndexOf(names[at]) ? names[at] :
          one.cwd === one.id ? one.cwd : one.cwd + ' \u2013 ' + one.id) +
        ' (' + one.sessions + ')')));
    this.select.value = state.project || '';
  }

  countText() {
    const known = this.list.isComplete ? this.list.rows.length : this.total();
    this.count.textContent = known ? countText(known, 'session') +
      (state.q ? ', best first' : '') : '';
  }

  // The number of sessions in the list, as far as it is known.
  total() {
    if (state.q) return 0;
    if (state.project) {
      return this.projects?.find((one) => one.id === state.project)?.sessions || 0;
    }
    return this.info?.sessions || 0;
  }

  choose(project) {
    setState({ project: project || null });
    this.reload();
  }

  typed() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      setState({ q: this.input.value.trim() });
      this.reload();
    }, 90);
  }

  reload() {
    this.ready = this.loadFirst();
    return this.ready;
  }

  async loadFirst() {
    this.abort?.abort();
    this.abort = new AbortController();
    this.cursor = null;
    this.list.reset();
    this.list.loading = false;
    try {
      await (state.q ? this.find() : this.more());
    } catch (error) {
      if (error.name !== 'AbortError') notice(error.message);
    }
    this.mark(false);
  }

  async more() {
    const { signal } = this.abort;
    const answer = await this.app.source.sessions({
      project: state.project, limit: this.cursor ? 1000 : 100, cursor: this.cursor,
    }, signal);
    if (signal.aborted) return;
    this.cursor = answer.next;
    this.list.add(answer.sessions, this.total(), !answer.next);
    this.countText();
  }

  // Sessions whose texts have the words, the best first; then those whose titles have them, and
  // without an index only those.
  async find() {
    const { signal } = this.abort;
    const byText = this.app.source.search(state.q, state.project, signal)
      .catch((error) => {
        if (error.name === 'AbortError') throw error;
        return { sessions: [] };
      });
    const byTitle = this.app.source.sessions(
      { title: state.q, project: state.project, limit: 50 }, signal)
      .catch((error) => ({ sessions: [], error }));
    const found = await byText;
    if (signal.aborted) return;
    const hits = found.sessions.map((one) => ({
      ...one, id: one.sessionId, isHit: true, updated: Date.parse(one.updated) || one.updated,
    }));
    const ids = new Set(hits.map((one) => one.id));
    this.list.add(hits, 0, true);
    const titled = await byTitle;
    if (signal.aborted) return;
    if (titled.error) throw titled.error;
    this.list.add(titled.sessions.filter((one) => !ids.has(one.id)), 0, true);
    this.countText();
  }

  row(row, at) {
    const title = titleOf(row);
    const snippet = row.isHit ? snippetNode(row) : null;
    const facts = [lastName(row.cwd), countText(row.entries || 0, 'entry', 'entries'), row.client]
      .filter(Boolean);
    return el('a', {
      class: 'session' + (row.damaged ? ' damaged' : ''), tabindex: '-1',
      href: stateHash({ session: row.id, project: state.project, q: state.q }),
      title: plain((row.title || row.text || '') + '\n' + (row.cwd || '') + '\n' + row.id),
      onclick: (event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        this.open(at);
      },
    },
    el('span', { class: 'title' }, row.parentId ? el('span', { class: 'fork' }, '\u2937 ') : null,
      title),
    el('span', { class: 'age' }, ageText(row.updated)),
    el('span', { class: 'facts' }, snippet || plain(facts.join(' \u00b7 '))));
  }

  open(at) {
    const row = this.list.rows[at];
    if (!row) return;
    this.list.setActive(at);
    const hit = row.isHit ? row.hits?.[0] : null;
    this.app.open({
      session: row.id, head: null, leaf: null, entry: hit?.entryId || null,
      find: row.isHit ? state.q : '',
    }, true);
  }

  // Opens the session that is n rows further.
  step(by) {
    const at = this.list.active + by;
    if (at >= 0 && at < this.list.rows.length) this.open(at);
  }

  keydown(event) {
    if (event.key === 'Enter' && this.list.rows.length > 0) {
      this.open(Math.max(0, this.list.active));
    } else if (event.key === 'ArrowDown') {
      this.list.node.focus();
      this.list.move(this.list.active < 0 ? 1 : 0);
    } else if (event.key === 'Escape') {
      this.input.value = '';
      this.typed();
      this.input.blur();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  mark(isScrolled = true) {
    const at = this.list.rows.findIndex((row) => row.id === state.session);
    if (at >= 0) this.list.setActive(at, isScrolled);
  }

  has(session) {
    return !state.q && !session.subagent &&
      (!state.project || session.projectId === state.project);
  }

  // Loads the list as far as the open session, and scrolls to it.
  async reach(session) {
    const { list } = this;
    const isAbove = () => list.rows.length > 0 &&
      list.rows[list.rows.length - 1].updated < session.updated;
    await this.ready;
    const isFound = () => isAbove() || list.rows.some((row) => row.id === session.id);
    while (this.has(session) && session.id === state.session && !list.isComplete && !isFound()) {
      if (list.loading) await new Promise((done) => setTimeout(done, 50));
      else await list.load();
    }
    if (session.id === state.session) this.mark();
  }

  // A session was created or changed: it moves to the place of its time.
  update(session) {
    const { list } = this;
    const isRead = list.rows.length > 0 || list.isComplete; // else the answer will have it
    if (!this.has(session) || !isRead) return;
    const at = list.rows.findIndex((row) => row.id === session.id);
    const active = list.rows[list.active]?.id;
    if (at >= 0) {
      list.rows.splice(at, 1);
    } else {
      list.total++;
      if (this.info) this.info.sessions++;
    }
    const place = list.rows.findIndex((row) => (row.updated || 0) <= (session.updated || 0));
    if (place >= 0) list.rows.splice(place, 0, session);
    else if (list.isComplete) list.rows.push(session);
    list.active = list.rows.findIndex((row) => row.id === active);
    list.redraw();
    this.countText();
  }

  remove(id) {
    const at = this.list.rows.findIndex((row) => row.id === id);
    if (at < 0) return;
    this.list.rows.splice(at, 1);
    this.list.total--;
    if (this.info) this.info.sessions--;
    if (this.list.active >= at) this.list.active--;
    this.list.redraw();
    this.countText();
  }
}

// The text of the first hit, with the words that were found marked, after the number of hits. Their
// places are offsets in its UTF-8.
function snippetNode({ hits, matches }) {
  const { snippet = '', matches: places = [] } = hits?.[0] || {};
  const bytes = new TextEncoder().encode(snippet);
  const text = (from, end) => new TextDecoder().decode(bytes.subarray(from, end))
    .replace(/\s+/g, ' ').replace(/\*\*|`/g, '');
  const before = text(0, places[0]?.[0]);
  const node = el('span', { class: 'snippet' },
    el('span', { class: 'count' }, countText(matches || 0, 'match', 'matches') + ' \u00b7 '));
  let at = 0;
  for (const [from, end] of places) {
    appendText(node, at > 0 || before.length < 16 ? text(at, from) : '\u2026' + before.slice(-12));
    node.append(el('mark', {}, plain(text(from, end))));
    at = end;
  }
  appendText(node, text(at));
  return node;
}
