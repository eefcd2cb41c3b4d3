// search.js - finds words in the branch that is shown, and marks them.

const MARKS = 400; // ranges that are marked at a time

function partText(part) {
  if (part.kind === 'call') {
    return (part.name || '') + ' ' + (typeof part.arguments === 'string' ? part.arguments :
      JSON.stringify(part.arguments ?? ''));
  }
  return part.text || part.name || '';
}

class Find {
  constructor(app) {
    this.app = app;
    this.hits = [];
    this.at = -1;
    this.input = el('input', {
      type: 'search', placeholder: 'Find in this session', 'aria-label': 'Find in this session',
      spellcheck: 'false', autocomplete: 'off',
      oninput: () => this.later(),
      onkeydown: (event) => this.keydown(event),
    });
    this.count = el('span', { class: 'dim', role: 'status' });
    this.node = el('div', { class: 'find', hidden: true }, this.input, this.count,
      button('\u2191', 'the match before (N)', () => this.next(-1)),
      button('\u2193', 'the next match (n)', () => this.next(1)),
      button('\u2715', 'close (Esc)', () => this.close()));
  }

  open() {
    this.node.hidden = false;
    this.input.focus();
    this.input.select();
  }

  close() {
    this.node.hidden = true;
    this.hits = [];
    this.words = '';
    setState({ find: '' });
    this.mark();
    this.app.conversation.node.focus();
  }

  keydown(event) {
    if (event.key === 'Enter') {
      this.next(event.shiftKey ? -1 : 1);
      if (!event.shiftKey) this.app.conversation.node.focus();
    } else if (event.key === 'Escape') {
      this.close();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.run(this.input.value), 150);
  }

  // Finds the words; the hit nearest to the end is the first.
  async run(words, isQuiet) {
    this.words = words.trim().toLowerCase();
    setState({ find: this.words });
    this.hits = [];
    this.at = -1;
    this.mark();
    if (!this.words) {
      this.count.textContent = '';
      return;
    }
    this.count.textContent = '\u2026';
    const asked = this.words;
    await this.app.conversation.loadAll();
    if (asked !== this.words) return;
    for (const entry of this.app.conversation.all()) {
      if (entry.parts.some((part) => partText(part).toLowerCase().includes(asked))) {
        this.hits.push(entry.id);
      }
    }
    const current = this.hits.indexOf(state.entry);
    this.at = current >= 0 ? current : this.hits.length - 1;
    this.show(isQuiet);
  }

  next(by) {
    if (this.hits.length === 0) return;
    this.at = (this.at + by + this.hits.length) % this.hits.length;
    this.show();
  }

  show(isQuiet) {
    this.count.textContent = this.hits.length === 0 ? 'not found' :
      (this.at + 1) + ' of ' + this.hits.length;
    if (this.hits.length > 0 && !isQuiet) {
      const { conversation } = this.app;
      conversation.select(this.hits[this.at]);
      const node = conversation.entryNode(this.hits[this.at]);
      this.reveal(node);
    }
    this.mark();
  }

  // Opens what is closed in an entry, when the words are in it.
  reveal(node) {
    for (const call of node.querySelectorAll('.call.closed')) {
      if (call.textContent.toLowerCase().includes(this.words)) call.classList.remove('closed');
    }
    const mark = this.rangesIn(node, 1)[0];
    const place = mark ? mark.startContainer.parentElement : node;
    place.scrollIntoView({ block: 'center' });
  }

  rangesIn(node, limit) {
    const ranges = [];
    const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
    while (ranges.length < limit && walker.nextNode()) {
      const text = walker.currentNode.data.toLowerCase();
      for (let at = text.indexOf(this.words); at >= 0 && ranges.length < limit;
        at = text.indexOf(this.words, at + this.words.length)) {
        if (at + this.words.length > walker.currentNode.length) break;
        const range = new Range();
        range.setStart(walker.currentNode, at);
        range.setEnd(walker.currentNode, at + this.words.length);
        ranges.push(range);
      }
    }
    return ranges;
  }

  // Marks the words in what is drawn, without a change of the document.
  mark() {
    if (!window.CSS?.highlights) return;
    clearTimeout(this.markTimer);
    if (!this.words) {
      CSS.highlights.delete('found');
      return;
    }
    this.markTimer = setTimeout(() => {
      CSS.highlights.set('found',
        new Highlight(...this.rangesIn(this.app.conversation.body, MARKS)));
    }, 30);
  }
}
