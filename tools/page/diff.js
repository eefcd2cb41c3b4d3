// diff.js - differences of texts: those of checkpoints, as unified diffs, and
// those of calls that change a text.

const DIFF_LINES = 400;

function diffRow(kind, before, after, text) {
  const words = el('span', { class: 'dtext' });
  appendText(words, text);
  return el('div', { class: 'dline ' + kind },
    el('span', { class: 'dnum' }, before || ''), el('span', { class: 'dnum' }, after || ''),
    el('span', { class: 'dmark' }, kind === 'add' ? '+' : kind === 'del' ? '\u2212' : ' '), words);
}

// Rows of a unified diff: { kind, before, after, text }.
function patchRows(patch) {
  const rows = [];
  let before = 0;
  let after = 0;
  for (const line of patch.replace(/\n$/, '').split('\n')) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(line);
    if (hunk) {
      before = Number(hunk[1]);
      after = Number(hunk[2]);
      rows.push({ kind: 'hunk', text: line });
    } else if (line.startsWith('+')) {
      rows.push({ kind: 'add', after: after++ || '', text: line.slice(1) });
    } else if (line.startsWith('-')) {
      rows.push({ kind: 'del', before: before++ || '', text: line.slice(1) });
    } else if (/^\*\*\* |^\\/.test(line)) {
      rows.push({ kind: 'hunk', text: line });
    } else {
      rows.push({ kind: 'same', before: before++ || '', after: after++ || '',
        text: line.slice(1) });
    }
  }
  return rows;
}

function rowsNode(rows, limit = DIFF_LINES) {
  const node = el('div', { class: 'diff' });
  let shown = 0;
  const show = (count) => {
    const end = Math.min(rows.length, shown + count);
    for (; shown < end; shown++) {
      const row = rows[shown];
      node.append(diffRow(row.kind, row.before, row.after, row.text));
    }
    if (shown < rows.length) {
      const more = button('\u25be show ' + countText(rows.length - shown, 'further line'),
        'show more', () => {
          more.remove();
          show(5000);
        }, 'more');
      node.append(more);
    }
  };
  show(limit);
  return node;
}

function patchNode(patch, limit) {
  return rowsNode(patchRows(patch), limit);
}

// The longest common lines of two lists, as pairs of positions.
function commonLines(a, b) {
  const width = b.length + 1;
  const table = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      table[i * width + j] = a[i] === b[j] ? table[(i + 1) * width + j + 1] + 1 :
        Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
    }
  }
  const pairs = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) pairs.push([i++, j++]);
    else if (table[(i + 1) * width + j] >= table[i * width + j + 1]) i++;
    else j++;
  }
  return pairs;
}

function lineRows(before, after) {
  const a = before.split('\n');
  const b = after.split('\n');
  const pairs = a.length * b.length <= 400000 ? commonLines(a, b) : [];
  const rows = [];
  let i = 0;
  let j = 0;
  for (const [x, y] of [...pairs, [a.length, b.length]]) {
    while (i < x) rows.push({ kind: 'del', text: a[i++] });
    while (j < y) rows.push({ kind: 'add', text: b[j++] });
    if (x < a.length) {
      rows.push({ kind: 'same', text: a[i] });
      i++;
      j++;
    }
  }
  return rows;
}

function linesDiff(before, after) {
  const rows = lineRows(before === '' ? after : before, after);
  const node = rowsNode(before === '' ? rows.map((row) => ({ kind: 'add', text: row.text })) : rows,
    40);
  node.classList.add('bare');
  return node;
}

// --- the checkpoints of a session ---

class Files {
  constructor(app) {
    this.app = app;
    this.node = el('div', { class: 'filespane pane', tabindex: '0' });
  }

  clear() {
    this.loaded = false;
    replace(this.node);
  }

  async load() {
    if (this.loaded) return;
    this.loaded = true;
    const session = state.session;
    const { checkpoints } = await this.app.source.checkpoints(session);
    if (session !== state.session) return;
    if (checkpoints.length === 0) {
      replace(this.node, el('p', { class: 'dim' },
        'No checkpoints of files. A program records them with agentwal checkpoint.'));
      return;
    }
    const items = checkpoints.map((one, at) => this.item(one, checkpoints[at + 1]));
    replace(this.node, items.map((item) => item.node));
    await items[0].open();
  }

  item(checkpoint, before) {
    const body = el('div', { class: 'changes' });
    const head = el('summary', {},
      el('span', { class: 'cid' }, plain(checkpoint.id.slice(0, 40))),
      el('span', { class: 'dim' }, timeText(checkpoint.time) + ' \u00b7 ' +
        countText(checkpoint.files, 'file') + ' \u00b7 ' + bytesText(checkpoint.bytes)),
      checkpoint.entryId ? button('\u2192 entry', 'show the entry at which the files were so',
        () => this.app.jump(checkpoint.entryId), 'plain') : null);
    const node = el('details', { class: 'checkpoint' }, head, body);
    const load = async () => {
      if (node.isLoaded) return;
      node.isLoaded = true;
      await this.fill(body, checkpoint, before);
    };
    node.addEventListener('toggle', () => { if (node.open) load(); });
    return { node, open: () => { node.open = true; return load(); } };
  }

  async fill(body, checkpoint, before) {
    if (!before) {
      replace(body, el('p', { class: 'dim' },
        'The first checkpoint: there is none to compare it with.'));
      return;
    }
    try {
      const { files } = await this.app.source.diff(state.session, before.id, checkpoint.id);
      if (files.length === 0) replace(body, el('p', { class: 'dim' }, 'No file changed.'));
      else replace(body, files.map((file) => this.file(file, files.length <= 6)));
    } catch (error) {
      replace(body, el('p', { class: 'warn' }, plain(error.message)));
    }
  }

  file(file, isOpen) {
    const letter = { added: 'A', modified: 'M', deleted: 'D' }[file.change] || '?';
    const node = el('details', { class: 'file' }, el('summary', {},
      el('span', { class: 'letter ' + file.change, title: file.change }, letter),
      el('span', { class: 'path' }, plain(file.path)),
      file.binary ? el('span', { class: 'dim' }, 'binary') : [
        el('span', { class: 'plus' }, '+' + file.added),
        el('span', { class: 'minus' }, '\u2212' + file.removed)]));
    const fill = () => {
      if (node.childNodes.length > 1) return;
      node.append(file.patch ? patchNode(file.patch) : el('p', { class: 'dim' },
        file.binary ? 'The content is not text.' : 'No lines, or too many to show.'));
    };
    node.addEventListener('toggle', () => { if (node.open) fill(); });
    if (isOpen) {
      fill();
      node.open = true;
    }
    return node;
  }
}
