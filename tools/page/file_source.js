// file_source.js - the one session that agentwal view wrote into the page.
// It has the methods of HttpSource.

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
