// dom.js - makes nodes. Text of sessions enters the document here only, as text.
// A virtual list has rows of one height, of which only those in view are nodes.
// Rows are loaded in their order; there may be more than are loaded.

// el('div', { class: 'a', onclick: f, title: t }, child, ...)
function el(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') {
      node.addEventListener(key.slice(2), value);
    } else {
      node.setAttribute(key, value === true ? '' : value);
    }
  }
  append(node, children);
  return node;
}

function append(node, children) {
  for (const child of children) {
    if (Array.isArray(child)) {
      append(node, child);
    } else if (child !== null && child !== undefined && child !== false) {
      node.append(child);
    }
  }
}

function svg(name, attributes, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
  append(node, children);
  return node;
}

function button(text, title, action, className) {
  return el('button', {
    type: 'button', class: className || 'plain', title,
    'aria-label': text.length < 3 ? title : null,
    onclick: (event) => {
      event.stopPropagation();
      action(event);
    },
  }, text);
}

function replace(node, ...children) {
  node.replaceChildren();
  append(node, children);
}

// Copies a text and says so on the button.
function copyButton(text, title, label) {
  const node = button(label || 'copy', title, async () => {
    await copyText(text);
    const before = node.textContent;
    node.textContent = '\u2713';
    setTimeout(() => { node.textContent = before; }, 900);
  }, 'plain copy');
  return node;
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return;
  } catch {
    // It may be forbidden; what is selected may be copied then.
  }
  const area = el('textarea', { class: 'offscreen' });
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

// Shows a sentence for a moment, also to those who do not see it.
let noticeTimer = 0;
function notice(text) {
  let node = document.getElementById('notice');
  if (!node) {
    node = el('div', { id: 'notice', role: 'status' });
    document.body.append(node);
  }
  node.textContent = plain(text);
  node.classList.add('shown');
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => node.classList.remove('shown'), 2600);
}

// Whether a link may be followed: http and https only.
function safeUrl(text) {
  try {
    const url = new URL(text);
    return url.protocol === 'https:' || url.protocol === 'http:' ? url.href : null;
  } catch {
    return null;
  }
}

class VirtualList {
  // options: rowHeight, render(row, index) -> node, more() loads further rows
  // and returns a promise, label.
  constructor(options) {
    this.options = options;
    this.rows = [];
    this.total = 0;
    this.isComplete = false;
    this.active = -1;
    this.nodes = new Map();
    this.space = el('div', { class: 'vspace' });
    this.node = el('div', {
      class: 'vlist', tabindex: '0', role: 'listbox', 'aria-label': options.label,
    }, this.space);
    this.node.addEventListener('scroll', () => this.schedule(), { passive: true });
    new ResizeObserver(() => this.schedule()).observe(this.node);
  }

  reset() {
    this.rows = [];
    this.total = 0;
    this.isComplete = false;
    this.active = -1;
    this.node.scrollTop = 0;
    this.redraw();
  }

  add(rows, total, isComplete) {
    for (const row of rows) this.rows.push(row);
    this.isComplete = isComplete;
    this.total = isComplete ? this.rows.length : Math.max(total || 0, this.rows.length + 1);
    this.draw();
  }

  redraw() {
    for (const node of this.nodes.values()) node.remove();
    this.nodes.clear();
    this.draw();
  }

  schedule() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  draw() {
    const height = this.options.rowHeight;
    const from = Math.max(0, Math.floor(this.node.scrollTop / height) - 8);
    const end = Math.min(this.total,
      Math.ceil((this.node.scrollTop + (this.node.clientHeight || 800)) / height) + 8);
    this.space.style.height = this.total * height + 'px';
    for (const [at, node] of this.nodes) {
      if (at < from || at >= end || (node.isEmpty && at < this.rows.length)) {
        node.remove();
        this.nodes.delete(at);
      }
    }
    for (let at = from; at < end; at++) {
      if (!this.nodes.has(at)) this.put(at);
    }
    if (end > this.rows.length && !this.isComplete) this.load();
  }

  put(at) {
    const isEmpty = at >= this.rows.length;
    const node = isEmpty ? el('div', { class: 'waiting' }) : this.options.render(this.rows[at], at);
    node.isEmpty = isEmpty;
    node.classList.add('vrow');
    node.style.transform = 'translateY(' + at * this.options.rowHeight + 'px)';
    node.style.height = this.options.rowHeight + 'px';
    if (!isEmpty) {
      node.id = this.options.name + '-' + at;
      node.setAttribute('role', 'option');
      node.setAttribute('aria-selected', at === this.active ? 'true' : 'false');
      node.classList.toggle('active', at === this.active);
    }
    this.nodes.set(at, node);
    this.space.append(node);
  }

  async load() {
    if (this.loading || !this.options.more) return;
    this.loading = true;
    try {
      await this.options.more();
    } finally {
      this.loading = false;
    }
    this.schedule();
  }

  setActive(at, isScrolled = true) {
    const before = this.nodes.get(this.active);
    this.active = at;
    if (before) {
      before.classList.remove('active');
      before.setAttribute('aria-selected', 'false');
    }
    if (isScrolled) this.reveal(at);
    this.draw();
    const node = this.nodes.get(at);
    if (node && !node.isEmpty) {
      node.classList.add('active');
      node.setAttribute('aria-selected', 'true');
      this.node.setAttribute('aria-activedescendant', node.id);
    }
  }

  reveal(at) {
    const height = this.options.rowHeight;
    const view = this.node.clientHeight;
    if (at * height < this.node.scrollTop) {
      this.node.scrollTop = at * height;
    } else if ((at + 1) * height > this.node.scrollTop + view) {
      this.node.scrollTop = (at + 1) * height - view;
    }
  }

  // Moves by a number of rows; not beyond those that are loaded.
  move(by) {
    const last = this.rows.length - 1;
    const at = Math.max(0, Math.min(last, this.active + by));
    if (last >= 0) this.setActive(at);
    if (at === last && !this.isComplete) this.load();
  }
}
