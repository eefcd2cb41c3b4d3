// keys.js - the keyboard, as in a terminal pager.

const KEY_HELP = [
  ['Reading', [
    ['j k', 'next, previous entry'], ['} {', 'next, previous turn of the user'],
    ['Space b', 'a page down, up'], ['d u', 'half a page down, up'],
    ['g G', 'beginning, end'], ['Enter', 'open or close what is in the entry'],
    ['/ n N', 'find in the session, next, previous'], ['y', 'copy a link to the entry'],
    ['r', 'copy the command that resumes the session'],
  ]],
  ['Sessions', [
    ['s', 'list of sessions; j k Enter there'], ['S', 'search all sessions'],
    ['[ ]', 'previous, next session'], ['h', 'totals of the store'],
  ]],
  ['Views', [
    ['t', 'tree'], ['f', 'files changed'], ['c', 'tokens and costs'], ['i', 'facts'],
    ['1 2 3 4 5', 'hide or show: user, assistant, tools, thinking, notes'],
    ['H', 'back to the head'],
    ['x', 'dark or light'], ['?', 'these keys'], ['Esc', 'close'],
  ]],
];

class Keys {
  constructor(app) {
    this.app = app;
    this.help = el('dialog', { class: 'help', 'aria-label': 'Keys' },
      el('h2', {}, 'Keys'),
      el('div', { class: 'columns' }, KEY_HELP.map(([title, keys]) => el('section', {},
        el('h3', {}, title),
        el('dl', {}, keys.map(([names, text]) => [
          el('dt', {}, names.split(' ').map((name) => el('kbd', {}, name))),
          el('dd', {}, text)]))))),
      button('Close', 'close', () => this.help.close(), 'plain close'));
    document.addEventListener('keydown', (event) => this.keydown(event));
    this.actions = this.table();
  }

  table() {
    const { app } = this;
    const { conversation } = app;
    const isUser = (entry) => entry.role === 'user';
    return {
      j: () => this.move(1), ArrowDown: () => this.move(1),
      k: () => this.move(-1), ArrowUp: () => this.move(-1),
      '}': () => conversation.move(1, isUser), '{': () => conversation.move(-1, isUser),
      ' ': () => conversation.scrollBy(0.9), PageDown: () => conversation.scrollBy(0.9),
      b: () => conversation.scrollBy(-0.9), PageUp: () => conversation.scrollBy(-0.9),
      d: () => conversation.scrollBy(0.5), u: () => conversation.scrollBy(-0.5),
      g: () => this.end(-1), Home: () => this.end(-1),
      G: () => this.end(1), End: () => this.end(1),
      Enter: () => this.enter(), o: () => this.enter(),
      '/': () => (state.session ? app.find.open() : app.sessions?.input.focus()),
      n: () => app.find.next(1), N: () => app.find.next(-1),
      y: () => app.link(conversation.current || conversation.firstSeen()),
      r: () => app.copyResume(),
      s: () => app.showList(), S: () => app.showSearch(),
      '[': () => app.sessions?.step(-1), ']': () => app.sessions?.step(1),
      h: () => app.open({ session: null }, true),
      t: () => app.toggleTab('tree'), f: () => app.toggleTab('files'),
      c: () => app.toggleTab('usage'), i: () => app.toggleTab('facts'),
      1: () => app.toggleHidden('user'), 2: () => app.toggleHidden('assistant'),
      3: () => app.toggleHidden('tools'), 4: () => app.toggleHidden('thinking'),
      5: () => app.toggleHidden('notes'),
      H: () => app.openBranch({ leaf: null }),
      x: () => app.toggleTheme(), '?': () => this.help.showModal(),
      Escape: () => app.escape(),
    };
  }

  // The list with the focus, if one has it.
  list() {
    const lists = [this.app.sessions?.list, this.app.tree.list];
    return lists.find((list) => list && list.node === document.activeElement);
  }

  move(by) {
    const list = this.list();
    if (list) list.move(by);
    else this.app.conversation.move(by);
  }

  end(by) {
    const list = this.list();
    if (list) {
      list.move(by * list.rows.length);
    } else if (by < 0) {
      this.app.conversation.goTop();
    } else {
      this.app.conversation.goBottom();
    }
  }

  enter() {
    const list = this.list();
    const { conversation, sessions, tree } = this.app;
    if (list && list === sessions?.list) sessions.open(list.active);
    else if (list && list === tree.list) tree.choose(list.active);
    else if (conversation.current) conversation.toggle(conversation.current);
    else conversation.select(conversation.firstSeen());
  }

  keydown(event) {
    if (event.defaultPrevented || event.metaKey || event.altKey || this.help.open) return;
    const { target } = event;
    if (target.matches('input:not([type=checkbox]), select, textarea')) {
      if (event.key === 'Escape') target.blur();
      return;
    }
    if (event.ctrlKey && !'du'.includes(event.key)) return;
    const isButton = target.matches('button, summary, a, input');
    if (isButton && (event.key === 'Enter' || event.key === ' ')) return;
    const isPane = target.matches('.pane') || target.closest('.pane');
    if (isPane && /^(?:Arrow|Page|Home|End| )/.test(event.key)) return;
    const action = Object.hasOwn(this.actions, event.key) ? this.actions[event.key] : null;
    if (!action) return;
    event.preventDefault();
    Promise.resolve(action()).catch((error) => notice(error.message));
  }
}
