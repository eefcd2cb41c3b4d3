// conversation.js - the branch of a session, from its end backwards. Entries
// are in chunks; a chunk far from what is seen is an empty space of its height.

const CHUNK = 40;
const PAGE = 100;
const PAGE_MAX = 1000;
const ESTIMATE = 110; // pixels of an entry that was not drawn yet

class Conversation {
  constructor(app) {
    this.app = app;
    this.redacted = new Map(); // entries by id; an answer may have them as they were
    this.body = el('div', { class: 'branch', role: 'feed', 'aria-label': 'Conversation' });
    this.top = el('div', { class: 'top dim' });
    this.more = button('', 'go to the end', () => this.goBottom(), 'newer');
    this.node = el('div', { class: 'scroll', tabindex: '0' }, this.top, this.body);
    this.seen = new IntersectionObserver((changes) => this.onSeen(changes),
      { root: this.node, rootMargin: '1200px 0px' });
    this.seen.observe(this.top);
    this.node.addEventListener('scroll', () => this.onScroll(), { passive: true });
    this.clear();
  }

  clear() {
    this.turn = (this.turn || 0) + 1;
    this.chunks = [];
    this.byId = new Map();
    this.calls = new Map();
    this.results = new Map();
    this.before = null;
    this.isComplete = false;
    this.current = null;
    this.unseen = 0;
    this.isStale = false;
    this.body.replaceChildren();
    this.top.textContent = '';
    this.more.remove();
  }

  async open() {
    this.clear();
    const turn = this.turn;
    const { isLive } = this.app.source;
    const range = { limit: isLive ? PAGE : Infinity };
    if (state.leaf) range.leaf = state.leaf;
    else if (state.head) range.head = state.head;
    this.range = range;
    const answer = await this.app.source.entries(state.session, range);
    if (turn !== this.turn) return false;
    this.prepend(answer);
    // What runs is read from its end, what was written to a file from its beginning.
    for (const chunk of isLive ? this.chunks.slice(-3) : this.chunks.slice(0, 3)) this.draw(chunk);
    const scroll = () => { this.node.scrollTop = isLive ? this.node.scrollHeight : 0; };
    scroll();
    requestAnimationFrame(() => {
      if (turn === this.turn && !state.entry) scroll();
    });
    if (state.entry) await this.jump(state.entry);
    this.showPlace();
    return true;
  }

  // --- entries ---

  note(entry) {
    for (const part of entry.parts) {
      if (part.kind === 'call' && part.id) this.calls.set(part.id, entry);
      if (part.kind === 'result' && part.id) this.results.set(part.id, part);
    }
  }

  makeChunk(found) {
    const entries = found.map((entry) => this.redacted.get(entry.id) || entry);
    const chunk = { entries, node: el('div', { class: 'chunk' }), isDrawn: false };
    chunk.node.style.height = entries.length * ESTIMATE + 'px';
    chunk.node.chunk = chunk;
    for (const entry of entries) this.byId.set(entry.id, { entry, chunk });
    this.seen.observe(chunk.node);
    return chunk;
  }

  prepend(answer) {
    const fromEnd = this.node.scrollHeight - this.node.scrollTop;
    const made = [];
    answer.entries.forEach((entry) => this.note(this.redacted.get(entry.id) || entry));
    for (let end = answer.entries.length; end > 0; end -= CHUNK) {
      made.unshift(this.makeChunk(answer.entries.slice(Math.max(0, end - CHUNK), end)));
    }
    this.chunks.unshift(...made);
    this.body.prepend(...made.map((chunk) => chunk.node));
    this.before = answer.before;
    this.isComplete = !answer.before;
    const first = this.chunks[made.length];
    if (first?.isDrawn) this.redraw(first); // a result may belong to a call above
    this.node.scrollTop = this.node.scrollHeight - fromEnd;
    this.topText(answer.damaged);
  }

  isRedacted(id) {
    return (this.redacted.get(id) || this.byId.get(id)?.entry)?.redacted;
  }

  // Puts what is left of an entry in its place, or what is shown again.
  redact(entry) {
    this.redacted.set(entry.id, entry);
    const known = this.byId.get(entry.id);
    if (!known) return;
    const { chunk } = known;
    chunk.entries[chunk.entries.indexOf(known.entry)] = entry;
    this.byId.set(entry.id, { entry, chunk });
    this.calls.clear();
    this.results.clear();
    this.all().forEach((one) => this.note(one));
    this.redrawAll();
  }

  topText(damaged) {
    if (damaged) this.damaged = damaged;
    const first = this.chunks[0]?.entries[0];
    const text = !this.isComplete ? 'loading what is above \u2026' :
      first ? 'Beginning of the session' + (first.time ? ' \u00b7 ' + timeText(first.time) : '') :
      'No entries yet.';
    this.top.textContent = text + (this.damaged ?
      ' \u00b7 ' + countText(this.damaged, 'damaged record') + ' left out' : '');
    const others = (this.app.session?.entries || 0) - this.all().length;
    if (this.isComplete && !this.range.leaf && others > 0) {
      this.top.append(' \u00b7 ', button(countText(others, 'entry', 'entries') +
        ' on other branches', 'show the tree', () => this.app.showTab('tree'), 'plain link'));
    }
  }

  async loadAbove(limit = PAGE) {
    if (this.isComplete || !this.before) return false;
    if (this.loading) return this.loading;
    const turn = this.turn;
    this.loading = this.app.source.entries(state.session,
      { ...this.range, before: this.before, limit })
      .then((answer) => {
        if (turn === this.turn) this.prepend(answer);
        return turn === this.turn;
      })
      .finally(() => { this.loading = null; });
    return this.loading;
  }

  async loadAll() {
    while (!this.isComplete) {
      if (!await this.loadAbove(PAGE_MAX)) return false;
    }
    return true;
  }

  all() {
    return this.chunks.flatMap((chunk) => chunk.entries);
  }

  last() {
    const chunk = this.chunks[this.chunks.length - 1];
    return chunk ? chunk.entries[chunk.entries.length - 1] : null;
  }

  // --- drawing ---

  context() {
    const { tree } = this.app;
    return {
      resultOf: (id) => (id ? this.results.get(id) : undefined),
      hasCall: (id) => Boolean(id) && this.calls.has(id),
      sessionLink: (id, text) => this.app.sessionLink(id, text),
      isFork: (id) => tree.isFork(id),
      isSubagent: Boolean(this.app.session?.subagent),
      headsAt: (id) => tree.headsAt(id),
      image: (part) => this.app.source.image(part),
      link: (id) => this.app.link(id),
      whole: this.app.source.isLive ? (entry, node) => this.whole(entry, node) : null,
    };
  }

  draw(chunk) {
    if (chunk.isDrawn) return;
    const context = this.context();
    let previous = this.previousOf(chunk, 0, context);
    const nodes = chunk.entries.map((entry) => {
      const node = entryNode(entry, previous, context);
      if (!isNote(entry) && !isAttached(entry, context)) previous = entry;
      return node;
    });
    chunk.node.replaceChildren(...nodes);
    chunk.node.style.height = '';
    chunk.isDrawn = true;
    if (this.current && chunk === this.byId.get(this.current)?.chunk) this.markCurrent();
    this.app.find?.mark(chunk.node);
  }

  // The entry above that is shown separately: what follows may go on in its turn.
  previousOf(chunk, end, context) {
    for (let at = this.chunks.indexOf(chunk); at >= 0; at--) {
      const { entries } = this.chunks[at];
      for (let i = (this.chunks[at] === chunk ? end : entries.length) - 1; i >= 0; i--) {
        if (!isNote(entries[i]) && !isAttached(entries[i], context)) return entries[i];
      }
    }
    return undefined;
  }

  empty(chunk) {
    if (!chunk.isDrawn || this.isPrinting) return;
    chunk.node.style.height = chunk.node.offsetHeight + 'px';
    chunk.node.replaceChildren();
    chunk.isDrawn = false;
  }

  redraw(chunk) {
    chunk.isDrawn = false;
    this.draw(chunk);
  }

  redrawAll() {
    for (const chunk of this.chunks) {
      if (chunk.isDrawn) this.redraw(chunk);
    }
  }

  onSeen(changes) {
    for (const change of changes) {
      if (change.target === this.top) {
        if (change.isIntersecting && this.chunks.length > 0) this.onTop();
      } else if (change.isIntersecting) {
        this.draw(change.target.chunk);
      } else if (change.target.isConnected) {
        this.empty(change.target.chunk);
      }
    }
  }

  // Loads what is above while the top is near.
  async onTop() {
    try {
      while (await this.loadAbove()) {
        await new Promise((done) => requestAnimationFrame(done));
        if (this.node.scrollTop > 1200) return;
      }
    } catch (error) {
      this.top.textContent = plain(error.message);
    }
  }

  async whole(entry, node) {
    const loaded = await this.app.source.entry(state.session, entry.id);
    Object.assign(entry, loaded);
    this.note(entry);
    const chunk = this.byId.get(entry.id)?.chunk;
    if (chunk && node.isConnected) this.redraw(chunk);
  }

  // --- places ---

  isAtEnd() {
    return this.node.scrollHeight - this.node.scrollTop - this.node.clientHeight < 60;
  }

  onScroll() {
    if (this.unseen > 0 && !this.isStale && this.isAtEnd()) this.showUnseen(0);
    clearTimeout(this.placeTimer);
    this.placeTimer = setTimeout(() => this.showPlace(), 80);
  }

  // Has the tree show what is seen here: the current entry, or else the first one, or at the end
  // the last one; not while somebody moves in the tree.
  showPlace(isAnew) {
    const { tree } = this.app;
    if (this.app.tab !== 'tree' || document.activeElement === tree.list.node) return;
    const known = this.byId.get(this.current);
    const box = known?.chunk.isDrawn ? this.entryNode(this.current).getBoundingClientRect() : null;
    const view = this.node.getBoundingClientRect();
    const isSeen = box && box.height > 0 && box.bottom > view.top && box.top < view.bottom;
    const isEnd = this.app.source.isLive && this.isAtEnd();
    tree.setCurrent(isSeen ? this.current : isEnd ? this.last()?.id : this.firstSeen(),
      isAnew);
  }

  // A printed page has all that is loaded.
  print(isPrinting) {
    this.isPrinting = isPrinting;
    for (const chunk of this.chunks) {
      if (isPrinting) this.draw(chunk);
      this.seen.unobserve(chunk.node);
      if (!isPrinting) this.seen.observe(chunk.node);
    }
  }

  showUnseen(count) {
    this.unseen = count;
    this.more.remove();
    if (count > 0) {
      this.more.textContent = '\u2193 ' + countText(count, 'new entry', 'new entries');
      this.node.append(this.more);
    }
  }

  async goTop() {
    if (!await this.loadAll()) return;
    this.node.scrollTop = 0;
    const first = this.chunks[0]?.entries[0];
    if (first) this.select(first.id, true);
    this.node.scrollTop = 0;
  }

  goBottom() {
    if (this.isStale) {
      setState({ entry: null });
      return this.open();
    }
    const last = this.last();
    if (!last) return;
    this.draw(this.chunks[this.chunks.length - 1]);
    this.select(last.id, true);
    this.node.scrollTop = this.node.scrollHeight;
    this.showUnseen(0);
    return null;
  }

  // Shows an entry of this branch, or of the branch on which it is.
  async jump(id) {
    while (!this.byId.has(id) && !this.isComplete) {
      if (!await this.loadAbove(PAGE_MAX)) return;
    }
    if (!this.byId.has(id)) {
      const leaf = await this.app.tree.leafOf(id);
      if (!leaf || state.leaf === leaf) {
        notice('This entry is not in the session.');
        return;
      }
      setState({ leaf, entry: id });
      this.app.showBranch();
      await this.open();
      return;
    }
    this.select(id);
    const node = this.entryNode(id);
    node?.scrollIntoView({ block: 'start' });
    requestAnimationFrame(() => this.entryNode(id)?.scrollIntoView({ block: 'start' }));
  }

  entryNode(id) {
    const found = this.byId.get(id);
    if (!found) return null;
    this.draw(found.chunk);
    return found.chunk.node.children[found.chunk.entries.indexOf(found.entry)];
  }

  markCurrent() {
    this.node.querySelector('.current')?.classList.remove('current');
    this.entryNode(this.current)?.classList.add('current');
  }

  select(id, isQuiet) {
    this.current = id;
    this.markCurrent();
    if (!isQuiet) setState({ entry: id });
    this.app.tree.setCurrent(id);
  }

  // The entry at the top of what is seen.
  firstSeen() {
    const top = this.node.getBoundingClientRect().top;
    for (const chunk of this.chunks) {
      if (!chunk.isDrawn) continue;
      for (const node of chunk.node.children) {
        const box = node.getBoundingClientRect();
        if (box.height > 0 && box.bottom > top + 30) return node.dataset.id;
      }
    }
    return null;
  }

  // Moves to the next entry (by 1 or -1) that is shown and fits.
  move(by, fits = () => true) {
    const list = this.all();
    const start = this.current && this.byId.has(this.current) ? this.current : null;
    let at = list.findIndex((entry) => entry.id === (start || this.firstSeen()));
    if (start || by < 0) at += by;
    for (; at >= 0 && at < list.length; at += by) {
      if (!fits(list[at])) continue;
      const node = this.entryNode(list[at].id);
      if (!node || node.offsetHeight === 0) continue;
      this.select(list[at].id);
      this.reveal(node);
      return;
    }
    if (by < 0 && !this.isComplete) {
      this.loadAbove().then((isLoaded) => { if (isLoaded) this.move(by, fits); });
    } else if (by > 0) {
      this.node.scrollTop = this.node.scrollHeight;
    }
  }

  reveal(node) {
    const view = this.node.getBoundingClientRect();
    const box = node.getBoundingClientRect();
    if (box.top < view.top + 8 || box.bottom > view.bottom - 8) {
      node.scrollIntoView({ block: box.height > view.height ? 'start' : 'nearest' });
    }
  }

  scrollBy(part) {
    this.node.scrollBy({ top: this.node.clientHeight * part });
  }

  // Opens or closes what can be in an entry.
  toggle(id) {
    const node = this.entryNode(id);
    if (!node) return;
    const items = [...node.querySelectorAll('.callhead[aria-expanded], summary')];
    const more = node.querySelector('button.more');
    if (items.length > 0) items.forEach((item) => item.click());
    else if (more) more.click();
  }

  // --- live ---

  // The branch has another end, a head that was moved or an entry that goes on elsewhere: it is
  // read anew, where its end is seen or soon will be.
  async moveEnd(entryId, isMoved) {
    const isKnown = isMoved ? this.last()?.id === entryId : this.byId.has(entryId);
    if (state.leaf || isKnown || this.end === entryId) return;
    this.end = entryId; // also one that is never shown
    this.isStale = !this.isAtEnd();
    if (this.isStale) this.showUnseen(this.unseen + 1);
    else await this.open();
  }

  // An entry was appended to the session.
  add(entry) {
    const last = this.last();
    if (this.byId.has(entry.id) || state.leaf || (last && entry.parentId !== last.id)) return;
    const wasAtEnd = this.isAtEnd();
    let chunk = this.chunks[this.chunks.length - 1];
    this.note(entry);
    if (!chunk || chunk.entries.length >= CHUNK) {
      chunk = this.makeChunk([]);
      chunk.isDrawn = true;
      chunk.node.style.height = '';
      this.chunks.push(chunk);
      this.body.append(chunk.node);
    }
    chunk.entries.push(entry);
    this.byId.set(entry.id, { entry, chunk });
    const context = this.context();
    if (chunk.isDrawn) {
      chunk.node.append(entryNode(entry,
        this.previousOf(chunk, chunk.entries.length - 1, context), context));
    }
    this.complete(entry);
    if (wasAtEnd) {
      this.node.scrollTop = this.node.scrollHeight;
    } else {
      this.showUnseen(this.unseen + 1);
    }
    if (!last) this.topText();
  }

  // Draws the calls anew whose results an entry has.
  complete(entry) {
    for (const part of entry.parts) {
      const call = part.kind === 'result' && this.calls.get(part.id);
      const found = call && this.byId.get(call.id);
      if (!found || !found.chunk.isDrawn) continue;
      const at = found.chunk.entries.indexOf(call);
      const node = found.chunk.node.children[at];
      const context = this.context();
      node.replaceWith(entryNode(call, this.previousOf(found.chunk, at, context), context));
    }
  }
}
