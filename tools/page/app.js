// app.js - the page: sessions on the left, the conversation, and on the right
// the tree, files, usage and facts of the session.

const TABS = [['tree', 'Tree'], ['files', 'Files'], ['usage', 'Usage'], ['facts', 'Facts']];
const HIDABLE = [['user', 'User'], ['assistant', 'Assistant'], ['tools', 'Tools'],
  ['thinking', 'Thinking'], ['notes', 'Notes']];
const REFRESH_MS = 150; // from a change to the question what the session is now
const MANY = 12; // sessions that are asked for at a time
const AGE_MS = 30000; // after which what was now is some time ago
const WIDE = 1180; // pixels from which the right side is open

// Notes are hidden unless they are in `hide`; the others are shown unless.
function isHidden(name) {
  return state.hide.split(',').includes(name) !== (name === 'notes');
}

class App {
  constructor(source) {
    this.source = source;
    Object.assign(state, readState());
    this.tree = new Tree(this);
    this.files = new Files(this);
    this.usage = new Usage(this);
    this.find = new Find(this);
    this.conversation = new Conversation(this);
    this.facts = el('div', { class: 'factspane pane', tabindex: '0' });
    this.sessions = source.hasList ? new SessionList(this) : null;
    this.keys = new Keys(this);
    this.changed = new Set(); // ids of sessions
    this.build();
    window.addEventListener('beforeprint', () => this.conversation.print(true));
    window.addEventListener('afterprint', () => this.conversation.print(false));
    setInterval(() => {
      this.sessions?.list.redraw();
      if (this.session) this.showHead();
    }, AGE_MS);
    window.addEventListener('popstate', () => this.followAddress());
    window.addEventListener('hashchange', () => this.followAddress());
  }

  build() {
    this.headTitle = el('h1', { class: 'title' });
    this.headFacts = el('div', { class: 'facts dim' });
    this.live = el('span', { class: 'live', hidden: true });
    this.refused = el('div', { class: 'refused', role: 'status', hidden: true },
      'The server was started again: open the link that it printed.');
    this.branchNote = el('div', { class: 'branchnote', hidden: true });
    this.filters = el('div', { class: 'filters', role: 'group', 'aria-label': 'Show' },
      HIDABLE.map(([name, text], at) => button(text, 'hide or show (' + (at + 1) + ')',
        () => this.toggleHidden(name), 'chip')));
    this.tabs = el('div', { class: 'tabs', role: 'tablist' }, TABS.map(([name, text]) =>
      el('button', {
        type: 'button', role: 'tab', 'data-tab': name, onclick: () => this.toggleTab(name),
      }, text)));
    this.side = el('aside', { class: 'side', 'aria-label': 'About the session' },
      this.pane = el('div', { class: 'sidebody' }));
    this.header = el('header', { class: 'bar' },
      this.sessions ? button('\u2630', 'sessions (s)', () => this.showList(), 'plain menu') : null,
      el('div', { class: 'names' }, this.headTitle, this.headFacts), this.live,
      this.tabs,
      button('\u2315', 'find in the session (/)', () => this.find.open()),
      button('\u25d0', 'dark or light (x)', () => this.toggleTheme()),
      button('?', 'keys', () => this.keys.help.showModal()));
    this.main = el('main', {}, this.branchNote, this.filters, this.find.node,
      this.conversation.node);
    this.home = el('div', { class: 'homebox', hidden: true });
    this.root = document.getElementById('app');
    replace(this.root, this.sessions?.node, this.header, this.refused, this.main, this.home,
      this.side, this.keys.help);
    this.root.classList.toggle('single', !this.sessions);
    const theme = setting('theme');
    if (theme) document.documentElement.dataset.theme = theme;
  }

  async start() {
    this.applyHidden();
    if (!state.session && !this.sessions) state.session = this.source.data.session.id;
    // Events begin before what they change is loaded, and wait for that.
    const held = [];
    let each = (...event) => held.push(event);
    await this.source.listen((name, data) => each(name, data));
    try {
      await Promise.all([this.sessions?.start(), this.show()]);
    } finally {
      each = (name, data) => this.onEvent(name, data);
      for (const event of held) each(...event);
    }
  }

  // --- a session ---

  async show() {
    const { session } = state;
    this.tree.clear();
    this.files.clear();
    this.usage.clear();
    this.session = null;
    this.sessions?.mark();
    this.main.hidden = !session;
    this.home.hidden = Boolean(session);
    this.root.classList.toggle('nosession', !session);
    if (!session) {
      document.title = 'agentwal';
      this.headTitle.textContent = 'agentwal';
      this.headTitle.title = '';
      this.headFacts.textContent = '';
      this.conversation.clear();
      this.showTab(null);
      replace(this.home, await homeNode(this));
      return;
    }
    this.showBranch();
    try {
      const [one, isOpen] = await Promise.all([this.source.session(session).then((found) => {
        if (state.session !== session) return found;
        this.session = found;
        this.showHead();
        return found;
      }), this.conversation.open()]);
      if (state.session !== session || !isOpen) return;
      if (one.subagent) this.conversation.redrawAll();
      this.conversation.topText();
      this.sessions?.reach(one).catch(() => {});
      if (!document.activeElement.matches('input, select')) {
        this.conversation.node.focus({ preventScroll: true });
      }
      this.showTab(state.tab || (window.innerWidth >= WIDE ? 'tree' : null));
      if (state.find) {
        this.find.node.hidden = false;
        this.find.input.value = state.find;
        await this.find.run(state.find, Boolean(state.entry));
      }
    } catch (error) {
      if (state.session !== session) return;
      document.title = 'agentwal';
      this.headTitle.textContent = plain(session);
      this.headTitle.title = '';
      replace(this.headFacts);
      replace(this.facts);
      this.conversation.top.textContent = plain(error.message);
    }
  }

  showHead() {
    const one = this.session;
    const title = titleOf(one);
    document.title = title + ' \u2013 agentwal';
    this.headTitle.textContent = title;
    this.headTitle.title = title;
    replace(this.headFacts, plain([lastName(one.cwd), one.client,
      countText(one.entries, 'entry', 'entries'), ageText(one.updated)].filter(Boolean)
      .join(' \u00b7 ')));
    if (this.tab === 'facts') this.showFacts();
  }

  showFacts() {
    const one = this.session;
    const rows = [
      ['Title', one.title], ['Begins', one.text], ['Directory', one.cwd],
      ['Client', one.client], ['Id', one.id], ['Agent', one.startedBy?.agent],
      [one.subagent ? 'Started by' : 'Fork of', one.parentId],
      ['Created', timeText(one.created)], ['Updated', timeText(one.updated)],
      ['Lasted', one.created && one.updated ? durationText(one.updated - one.created) : null],
      ['Entries', one.entries.toLocaleString('en')], ['In the log', bytesText(one.bytes)],
    ];
    const url = this.source.exportUrl(one.id, 'entries');
    replace(this.facts, el('dl', { class: 'args' }, rows.filter(([, text]) => text)
      .map(([name, text]) => [el('dt', {}, name), el('dd', {}, text === one.parentId ?
        this.parentLink() : plain(text))])),
    one.resume ? [el('h3', {}, 'Resume'), el('div', { class: 'code' },
      el('div', { class: 'codebar' }, el('span', {}, 'shell'),
        copyButton(one.resume, 'copy the command (r)')),
      el('pre', {}, el('code', {}, plain(one.resume))))] : null,
    url ? el('p', {}, el('a', { href: url, download: one.id + '.jsonl' },
      'Download the entries')) : null,
    this.source.data?.struck ? el('p', { class: 'dim' },
      countText(this.source.data.struck, 'place was', 'places were') +
      ' hidden when this file was written.') : null);
    if (this.sessions) this.showSubagents(one).catch(() => {});
  }

  sessionLink(id, text = plain(id), entry = null) {
    return this.sessions ? el('a', { href: stateHash({ session: id, entry }) }, text) : text;
  }

  // The session that this one came from, at the call that started it.
  parentLink() {
    const { parentId, startedBy } = this.session;
    return this.sessionLink(parentId, plain(parentId), startedBy?.entryId);
  }

  // Links to the subagents of the session.
  async showSubagents(session) {
    const { sessions } = await this.source.sessions({ parent: session.id, limit: 1000 });
    const found = sessions.filter((one) => one.subagent);
    if (found.length === 0 || session !== this.session) return;
    this.facts.append(el('h3', {}, 'Subagents'), el('ul', { class: 'subagents' },
      found.map((one) => el('li', {}, this.sessionLink(one.id,
        titleOf(one))))));
  }

  open(changes, isNew) {
    setState({ head: null, leaf: null, entry: null, find: '', ...changes }, isNew);
    this.find.node.hidden = true;
    this.find.words = '';
    this.root.classList.remove('navopen');
    return this.show();
  }

  followAddress() {
    const next = readState();
    const isSame = ['session', 'head', 'leaf'].every((key) => next[key] === state[key]);
    const { entry } = state;
    Object.assign(state, next);
    this.applyHidden();
    if (!isSame) {
      this.show();
    } else if (next.entry && next.entry !== entry) {
      this.conversation.jump(next.entry);
    }
  }

  // --- branches ---

  async openBranch(changes) {
    setState({ entry: null, head: state.head, ...changes }, true);
    this.showBranch();
    await this.conversation.open();
    this.tree.later();
  }

  showBranch() {
    const text = state.leaf ? 'A branch that is not the head.' :
      state.head ? 'The head ' + plain(state.head) + '.' : '';
    this.branchNote.hidden = text === '';
    replace(this.branchNote, text, text ? button('back to the head main (H)',
      'show the branch of the head main',
      () => this.openBranch({ leaf: null, head: null }), 'plain link') : null);
    if (this.tree.loaded) this.tree.later();
  }

  async jump(id) {
    await this.conversation.jump(id);
    if (window.innerWidth < WIDE) this.showTab(null);
  }

  // --- the right side ---

  toggleTab(name) {
    this.showTab(this.tab === name ? null : name);
    setState({ tab: this.tab });
  }

  showTab(name) {
    const panes = {
      tree: this.tree.node, files: this.files.node, usage: this.usage.node, facts: this.facts,
    };
    this.tab = Object.hasOwn(panes, name || '') && state.session ? name : null;
    const { conversation } = this;
    const isEnd = this.source.isLive && conversation.isAtEnd();
    this.root.classList.toggle('sideopen', this.tab !== null);
    if (isEnd) conversation.node.scrollTop = conversation.node.scrollHeight;
    for (const tab of this.tabs.children) {
      tab.setAttribute('aria-selected', String(tab.dataset.tab === this.tab));
    }
    if (!this.tab) {
      this.pane.replaceChildren();
      return;
    }
    this.pane.replaceChildren(panes[this.tab]);
    if (this.tab === 'facts' && this.session) this.showFacts();
    const load = { tree: this.tree, files: this.files, usage: this.usage }[this.tab];
    load?.load().catch((error) => notice(error.message));
    if (this.tab === 'tree') {
      this.tree.list.schedule();
      conversation.showPlace(true);
    }
  }

  // --- what is shown ---

  toggleHidden(name) {
    const hidden = new Set(state.hide.split(',').filter(Boolean));
    if (!hidden.delete(name)) hidden.add(name);
    setState({ hide: [...hidden].join(',') });
    this.applyHidden();
  }

  applyHidden() {
    HIDABLE.forEach(([name], at) => {
      this.conversation.node.classList.toggle('hide-' + name, isHidden(name));
      this.filters.children[at].setAttribute('aria-pressed', String(!isHidden(name)));
    });
    if (this.tree.loaded) this.tree.later();
  }

  toggleTheme() {
    const root = document.documentElement;
    const isDark = root.dataset.theme ? root.dataset.theme === 'dark' :
      matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = isDark ? 'light' : 'dark';
    setting('theme', root.dataset.theme);
  }

  showList() {
    if (!this.sessions) return;
    this.root.classList.toggle('navopen');
    this.sessions.list.node.focus();
    if (this.sessions.list.active < 0) this.sessions.list.move(1);
  }

  showSearch() {
    if (!this.sessions) return;
    this.root.classList.add('navopen');
    this.sessions.input.focus();
  }

  escape() {
    if (!this.find.node.hidden) this.find.close();
    else if (this.root.classList.contains('navopen')) this.root.classList.remove('navopen');
    else if (this.tab && window.innerWidth < WIDE) this.showTab(null);
    this.conversation.node.focus({ preventScroll: true });
  }

  async link(id) {
    if (!id) return;
    setState({ entry: id });
    this.conversation.select(id, true);
    await copyText(location.href);
    notice('The link is copied.');
  }

  async copyResume() {
    if (!this.session?.resume) return;
    await copyText(this.session.resume);
    notice('Copied: ' + this.session.resume);
  }

  // --- live ---

  onEvent(name, data) {
    if (name === 'open' || name === 'error' || name === 'refused') {
      this.live.hidden = false;
      this.live.classList.toggle('off', name !== 'open');
      this.live.title = name === 'open' ? 'Live' : 'No connection; trying again';
      this.refused.hidden = name !== 'refused';
    } else if (name === 'reset') {
      location.reload();
    } else if (name === 'session') {
      this.sessions?.update(data);
      if (data.id === state.session) {
        this.session = data;
        this.showHead();
      }
    } else if (name === 'deleted') {
      this.sessions?.remove(data.sessionId);
      if (data.sessionId === state.session) {
        replace(this.facts);
        this.open({ session: null }, false);
        notice('The session was deleted.');
      }
    } else if (name === 'entry' && data.entry &&
        (data.entry.redacted || this.conversation.isRedacted(data.entry.id))) {
      this.onRedaction(data);
    } else {
      if (name === 'entry' || name === 'head') this.refresh(data.sessionId);
      this.isHeadMoved ||= name === 'head' && data.sessionId === state.session;
      if (data.sessionId === state.session) this.onSessionEvent(name, data);
    }
  }

  // Asks for the sessions that have changed: their counts, times and heads.
  refresh(id) {
    this.changed.add(id);
    this.refreshTimer ??= setTimeout(async () => {
      const ids = [...this.changed];
      this.changed.clear();
      try {
        if (ids.length > MANY) await this.sessions?.reload();
        await Promise.all(ids.filter((one) => ids.length <= MANY || one === state.session)
          .map((one) => this.refreshOne(one)));
      } catch (error) {
        notice(error.message);
      }
      this.refreshTimer = null;
      if (this.changed.size > 0) this.refresh([...this.changed][0]);
    }, REFRESH_MS);
  }

  async refreshOne(id) {
    const isOpen = id === state.session;
    const [one, heads] = await Promise.all([this.source.session(id).catch(() => null),
      isOpen ? this.source.heads(id).then((answer) => answer.heads, () => null) : null]);
    if (!one) return; // it was deleted meanwhile
    this.sessions?.update(one);
    if (!isOpen || id !== state.session || !heads) return;
    this.session = one;
    this.showHead();
    this.tree.setHeads(heads);
    const head = heads.find((found) => found.name === (state.head || 'main'));
    if (head?.entryId) await this.conversation.moveEnd(head.entryId, this.isHeadMoved);
    this.isHeadMoved = false;
  }

  // Forks show the entries of other sessions too, and the text that is found, or
  // that a session begins with, may be that of the entry.
  onRedaction({ sessionId, entry }) {
    this.conversation.redact(entry);
    this.tree.redact(entry);
    if (this.find.words) this.find.run(this.find.words, true);
    this.sessions?.reload();
    const { session } = state;
    if (session && session !== sessionId) {
      this.source.session(session).then((one) => {
        if (state.session === session) this.session = one;
        if (state.session === session) this.showHead();
      }).catch((error) => notice(error.message));
    }
  }

  onSessionEvent(name, data) {
    if (name === 'entry' && data.entry) {
      this.tree.add(data.entry);
      this.conversation.add(data.entry);
      if (this.tab === 'usage') {
        clearTimeout(this.usageTimer);
        this.usageTimer = setTimeout(() => {
          this.usage.loaded = false;
          this.usage.load();
        }, 1000);
      }
    } else if (name === 'document') {
      clearTimeout(this.documentTimer);
      this.documentTimer = setTimeout(() => {
        this.conversation.open();
        this.tree.clear();
        if (this.tab === 'tree') this.tree.load();
      }, 300);
    } else if (name === 'checkpoint') {
      this.files.clear();
      if (this.tab === 'files') this.files.load();
    }
  }
}

function startApp() {
  const data = document.getElementById('data');
  const source = data ? new FileSource(JSON.parse(data.textContent)) : new HttpSource();
  const app = new App(source);
  app.start().catch((error) => notice(error.message));
}

startApp();
