// tree.js - all branches of a session: heads, forks, compactions. A run of
// entries is one column; each further branch begins one column to the right. A
// branch in which nobody says anything, such as the result of one of several
// calls at a time, is part of the run.

const LANES = 12; // deeper branches share a column

class Tree {
  constructor(app) {
    this.app = app;
    this.list = new VirtualList({
      name: 'node', label: 'Tree', rowHeight: 26, render: (row, at) => this.row(row, at),
    });
    this.onlyUser = false;
    this.box = el('input', {
      type: 'checkbox', onchange: () => {
        this.onlyUser = this.box.checked;
        this.layout();
      },
    });
    this.heads = [];
    this.node = el('div', { class: 'treepane' },
      el('div', { class: 'panetop' }, this.headsNode = el('div', { class: 'heads' }),
        el('label', {}, this.box, ' user messages only')),
      this.list.node);
    this.clear();
  }

  clear() {
    this.nodes = new Map();
    this.children = new Map();
    this.said = new Set(); // ids of entries at or below which somebody says something
    this.places = new Map();
    this.loaded = null;
    this.heads = [];
    clearTimeout(this.timer);
    this.list.reset();
    replace(this.headsNode);
  }

  load() {
    if (!this.loaded) {
      const session = state.session;
      this.loaded = this.app.source.tree(session).then((tree) => {
        if (session !== state.session) return;
        this.heads = tree.heads;
        for (const node of tree.nodes) this.note(node);
        this.layout();
        this.app.conversation.showPlace(true);
        if (tree.heads.length > 1 || tree.nodes.some((node) => this.isFork(node.id))) {
          this.app.conversation.redrawAll();
        }
      });
    }
    return this.loaded;
  }

  note(node) {
    if (this.nodes.has(node.id)) return;
    this.nodes.set(node.id, node);
    const above = this.nodes.has(node.parentId) ? node.parentId : null;
    if (!this.children.has(above)) this.children.set(above, []);
    this.children.get(above).push(node);
    if (node.role !== 'user' && node.role !== 'assistant') return;
    for (let at = node; at && !this.said.has(at.id); at = this.nodes.get(at.parentId)) {
      this.said.add(at.id);
    }
  }

  isFork(id) {
    return (this.children.get(id) || []).filter((one) => this.said.has(one.id)).length > 1;
  }

  headsAt(id) {
    return this.heads.length > 1 ?
      this.heads.filter((head) => head.entryId === id).map((head) => head.name) : [];
  }

  // The newest entry below an entry.
  async leafOf(id) {
    await this.load();
    if (!this.nodes.has(id)) return null;
    let at = id;
    for (let below = this.children.get(at); below?.length; below = this.children.get(at)) {
      at = below[below.length - 1].id;
    }
    return at;
  }

  leaf() {
    if (state.leaf) return state.leaf;
    const name = state.head || 'main';
    return this.heads.find((head) => head.name === name)?.entryId ||
      [...this.nodes.keys()].pop();
  }

  // The rows from top to bottom: a run, then the branches at its end, the one
  // that goes on last.
  layout() {
    this.path = new Set();
    for (let at = this.nodes.get(this.leaf()); at && !this.path.has(at.id);
      at = this.nodes.get(at.parentId)) {
      this.path.add(at.id);
    }
    const rows = [];
    const todo = (this.children.get(null) || []).map((node) => ({ node, lane: 0 })).reverse();
    while (todo.length > 0) {
      const { node, lane, isFirst, isPart } = todo.pop();
      const isOn = isPart || this.path.has(node.id);
      rows.push({ node, lane, isFirst, isOn });
      const below = this.children.get(node.id) || [];
      const main = below.find((one) => this.path.has(one.id)) ||
        below.find((one) => this.said.has(one.id)) || below[0];
      if (main) todo.push({ node: main, lane, isPart });
      for (const one of below.slice().reverse()) {
        if (one === main) continue;
        todo.push(this.said.has(one.id) ? { node: one, lane: lane + 1, isFirst: true } :
          { node: one, lane, isPart: isOn });
      }
    }
    this.lanes(rows);
    const isEmpty = (node) => !node.text && !node.type.includes('compact');
    const isPlain = (node) => (this.onlyUser && node.role !== 'user') ||
      (isEmpty(node) && isHidden('notes'));
    const isShown = (row) => !isPlain(row.node) || row.isFirst || this.isFork(row.node.id) ||
      this.headsAt(row.node.id).length > 0;
    const active = this.list.rows[this.list.active]?.node.id || state.entry;
    this.list.rows = rows.filter(isShown);
    this.list.isComplete = true;
    this.list.total = this.list.rows.length;
    this.places = new Map(this.list.rows.map((row, at) => [row.node.id, at]));
    this.list.active = this.placeOf(active);
    this.list.redraw();
    this.headButtons();
  }

  // The lanes that go on to the left of a row: those of rows further down.
  lanes(rows) {
    const open = [];
    for (let at = rows.length - 1; at >= 0; at--) {
      const { lane } = rows[at];
      open.length = lane;
      rows[at].open = open.slice(0, LANES);
      open[lane] = true;
      for (let i = 0; i < lane; i++) open[i] = open[i] || false;
      if (rows[at].isFirst) {
        open.length = lane;
        open[lane - 1] = true;
      }
    }
  }

  headButtons() {
    const leaf = this.leaf();
    replace(this.headsNode, this.heads.map((head) => {
      const made = button(plain(head.name), 'show the branch of this head',
        () => this.app.openBranch({ head: head.name === 'main' ? null : head.name, leaf: null }),
        'badge head' + (head.entryId === leaf ? ' on' : ''));
      return made;
    }));
  }

  row(row, at) {
    const { node } = row;
    const lane = Math.min(row.lane, LANES);
    const isSummary = node.type.includes('compact');
    const dot = isSummary ? '\u25c6' : node.role === 'user' ? '\u25cf' : '\u25cb';
    const text = plain((node.text || node.type).replace(/\s+/g, ' ').replace(/\*\*|`/g, ''));
    return el('div', {
      class: 'treerow role-' + (node.role || 'none') + (row.isOn ? ' on' : '') +
        (isSummary ? ' is-summary' : ''),
      title: timeText(node.time) + '\n' + text,
      onclick: () => this.choose(at),
    },
    el('span', { class: 'lanes' }, this.laneNodes(row, lane)),
    el('span', { class: 'dot' }, dot),
    el('span', { class: 'words' }, text),
    this.isFork(node.id) ? el('span', { class: 'badge' }, 'fork') : null,
    this.heads.filter((head) => head.entryId === node.id)
      .map((head) => el('span', { class: 'badge head' }, plain(head.name))));
  }

  laneNodes(row, lane) {
    const nodes = [];
    for (let i = 0; i < lane; i++) {
      const isElbow = row.isFirst && i === lane - 1;
      nodes.push(el('i', { class: isElbow ? 'elbow' : row.open[i] ? 'bar' : '' }));
    }
    return nodes;
  }

  choose(at) {
    const row = this.list.rows[at];
    if (!row) return;
    this.list.setActive(at);
    this.app.jump(row.node.id);
  }

  // The row of an entry, or of the one above it that has a row.
  placeOf(id) {
    let at = this.nodes.get(id);
    while (at && !this.places.has(at.id)) at = this.nodes.get(at.parentId);
    return at ? this.places.get(at.id) : -1;
  }

  setCurrent(id, isAnew) {
    const at = this.placeOf(id);
    if (at >= 0 && (at !== this.list.active || isAnew)) this.list.setActive(at);
  }

  // An entry was appended, or a head moved.
  add(entry) {
    if (!this.loaded || this.nodes.has(entry.id)) return;
    this.note({
      id: entry.id, parentId: entry.parentId, sequence: entry.sequence, time: entry.time,
      role: entry.role, type: entry.type, text: previewOf(entry),
    });
    this.later();
  }

  setHeads(heads) {
    if (!this.loaded) return;
    this.heads = heads;
    this.later();
  }

  redact(entry) {
    const node = this.nodes.get(entry.id);
    if (!node) return;
    Object.assign(node, { role: entry.role, text: entry.redacted ? '' : previewOf(entry) });
    this.later();
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.layout();
      this.app.conversation.showPlace();
    }, 120);
  }
}
