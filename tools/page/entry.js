// entry.js - one entry of a conversation, and its parts: texts, thinking, calls
// of tools with their results, images, summaries.

const PREVIEW_CHARACTERS = 20000;
const READERS = /^(?:read|view|cat|open|grep|glob|ls|list|search|find)/i;
const IMAGES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif']);

// Members of arguments that say most, in this order.
const SAYING = ['command', 'cmd', 'pattern', 'query', 'file_path', 'filePath', 'path', 'url',
  'description', 'prompt', 'subject', 'name'];
const CHANGES = /^(?:old|new)[_A-Z]|^(?:content|edits|patch|input)/;
const SHORT = 100; // characters of arguments that are shown on the line of the call

function argumentsOf(part) {
  return part.arguments !== null && typeof part.arguments === 'object' ? part.arguments : null;
}

function valueText(value) {
  if (typeof value === 'string') return value;
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value.join(' ');
  return JSON.stringify(value);
}

function isShort(values) {
  if (Object.keys(values).some((name) => CHANGES.test(name))) return false;
  const list = Object.values(values);
  return list.length <= 6 && list.every((one) => one === null || typeof one !== 'object') &&
    list.reduce((sum, one) => sum + String(one).length, 0) <= SHORT &&
    !list.some((one) => String(one).includes('\n'));
}

// Arguments that fit on one line: the one that says most, then the others.
function shortText(values, key) {
  const others = Object.entries(values).filter(([name]) => name !== key)
    .map(([name, value]) => name + '=' + String(value));
  return [key ? String(values[key]) : '', ...others].filter(Boolean).join('  ');
}

// The arguments of a call on one line.
function argumentText(part) {
  const values = argumentsOf(part);
  let text = '';
  if (!values) {
    text = part.arguments ? String(part.arguments) : '';
  } else {
    const key = SAYING.find((name) => values[name]);
    text = isShort(values) ? shortText(values, key) :
      key ? valueText(values[key]) : Object.keys(values).length > 0 ?
      JSON.stringify(values) : '';
  }
  return plain(text.slice(0, 400).replace(/\s+/g, ' ').trim());
}

// A text of which the first lines are shown, and all of it on demand, in steps.
function textBlock(text, lines, className) {
  const pre = el('pre', { class: className || '' });
  let shown = firstLines(text, lines, Math.min(PREVIEW_CHARACTERS, lines * 400));
  if (text.length - shown.length < 200 && lines > 2) shown = text.slice(0, shown.length + 200);
  appendText(pre, shown.length < text.length ? shown.replace(/\n$/, '') : text.replace(/\n$/, ''));
  const node = el('div', { class: 'block' }, pre);
  if (shown.length < text.length) {
    const total = lineCount(text);
    const more = button('', 'show more', () => {
      const next = shown.length < PREVIEW_CHARACTERS * 2 && text.length < PREVIEW_CHARACTERS * 10 ?
        text : text.slice(0, shown.length + PREVIEW_CHARACTERS * 10);
      appendText(pre, (pre.textContent.endsWith('\n') || shown.length === 0 ? '' :
        shown.endsWith('\n') ? '\n' : '') + next.slice(shown.length));
      shown = next;
      label();
    }, 'more');
    const label = () => {
      more.textContent = '\u25be show ' + (text.length - shown.length > PREVIEW_CHARACTERS * 10 ?
        'more' : 'all') + ' (' + countText(total, 'line') + ', ' + bytesText(text.length) + ')';
      if (shown.length >= text.length) more.remove();
    };
    label();
    node.append(more);
  }
  return node;
}

function jsonNode(value) {
  const dl = el('dl', { class: 'args' });
  for (const [key, one] of Object.entries(value)) {
    const text = typeof one === 'string' ? one : JSON.stringify(one, null, 2);
    dl.append(el('dt', {}, plain(key)), el('dd', {}, textBlock(text, 12)));
  }
  return dl;
}

// A call that changes a text shows the change.
function editNode(values) {
  const edits = Array.isArray(values.edits) ? values.edits : [values];
  const node = el('div', { class: 'edits' });
  for (const edit of edits.slice(0, 50)) {
    const before = edit.old_string ?? edit.oldString ?? edit.oldText;
    const after = edit.new_string ?? edit.newString ?? edit.newText;
    if (typeof before === 'string' && typeof after === 'string') {
      node.append(linesDiff(before, after));
    }
  }
  return node.childNodes.length > 0 ? node : null;
}

// The tasks of a call that sets them, as a check list.
function todosNode(values) {
  const list = values.todos ?? values.plan;
  if (!Array.isArray(list) || !list.every((one) => one && one.status)) return null;
  return el('ul', { class: 'todos' }, list.map(({ status, content, step }) =>
    el('li', { class: /^(?:completed|in_progress)$/.exec(status)?.[0] },
      (status === 'completed' ? '\u2611 ' : status === 'in_progress' ? '\u25b8 ' : '\u2610 ') +
      plain(content ?? step))));
}

function patchText(part) {
  const values = argumentsOf(part);
  const text = values ? values.patch ?? values.input ?? values.patchText : part.arguments;
  return typeof text === 'string' && /^\*\*\* Begin Patch|^@@ |^--- /m.test(text) ? text : null;
}

function argumentsNode(part) {
  const values = argumentsOf(part);
  const patch = patchText(part);
  if (patch !== null) return patchNode(patch);
  if (!values) {
    const text = String(part.arguments ?? '');
    return text.length > SHORT || text.includes('\n') ? textBlock(text, 12, 'mono') : null;
  }
  const edit = editNode(values) || todosNode(values);
  if (edit) return edit;
  if (isShort(values)) return null;
  const keys = Object.keys(values);
  const command = values.command ?? values.cmd;
  if (command !== undefined && keys.length <= 4) {
    const text = valueText(command);
    return text.includes('\n') || text.length > 90 ? textBlock(text, 20, 'command') : null;
  }
  if (typeof values.content === 'string' && (values.file_path || values.filePath || values.path)) {
    return textBlock(values.content, 14, 'written');
  }
  return keys.length > 0 ? jsonNode(values) : null;
}

function cutNode(part, context) {
  if (!part.cut) return null;
  const text = 'cut: ' + bytesText(part.bytes) + ' in all';
  if (!context.whole) return el('div', { class: 'dim note' }, part.text === '' ? 'left out' : text);
  return button(text + ' \u2013 load it', 'load the whole entry', () => context.whole(), 'more');
}

function resultNode(part, context, lines) {
  const text = part.text || '';
  return el('div', { class: 'result' + (part.error ? ' error' : '') },
    text === '' && !part.cut ? el('div', { class: 'dim note' }, 'no output') : null,
    text === '' ? null : textBlock(text, lines, 'output'), cutNode(part, context));
}

// The session that a call started.
function subagentNode(part, context) {
  if (!part.subagent) return null;
  const { id, title, agent } = part.subagent;
  return el('div', { class: 'subagent' }, '\u2937 ',
    context.sessionLink(id, plain(title || id)),
    agent ? el('span', { class: 'dim' }, ' \u00b7 ' + plain(agent)) : null);
}

function callNode(part, context) {
  const result = context.resultOf(part.id);
  const detail = argumentsNode(part);
  const lines = READERS.test(part.name || '') ? 6 : 8;
  const isLong = READERS.test(part.name || '') && result && lineCount(result.text) > 8;
  const node = el('div', { class: 'call' + (result?.error ? ' error' : '') });
  const status = result ? (result.error ? '\u2717' : '\u2713') : '\u2026';
  const head = el('button', {
    type: 'button', class: 'callhead', 'aria-expanded': isLong ? 'false' : 'true',
    onclick: () => {
      const isOpen = node.classList.toggle('closed');
      head.setAttribute('aria-expanded', String(!isOpen));
    },
  },
  el('span', { class: 'tool' }, plain(part.name || 'tool')),
  el('span', { class: 'saying' }, argumentText(part)),
  result && isLong ? el('span', { class: 'dim' }, countText(lineCount(result.text), 'line')) : null,
  el('span', {
    class: 'status', title: result ? (result.error ? 'failed' : 'done') : 'no result',
  }, status));
  if (isLong) node.classList.add('closed');
  append(node, [head, subagentNode(part, context), el('div', { class: 'callbody' }, detail,
    part.cut ? cutNode(part, context) : null,
    result ? resultNode(result, context, isLong ? 40 : lines) : null)]);
  return node;
}

function thinkingNode(part) {
  const node = el('details', { class: 'thinking' },
    el('summary', {}, 'Thinking', el('span', { class: 'dim' },
      ' ' + plain(part.text.slice(0, 140).replace(/\s+/g, ' ')))));
  node.addEventListener('toggle', () => {
    if (node.open && node.childNodes.length === 1) node.append(markdown(part.text));
  });
  return node;
}

function imageNode(part, context) {
  const url = part.data && IMAGES.has(part.mimeType) ?
    'data:' + part.mimeType + ';base64,' + part.data : part.digest ? context.image(part) : null;
  if (!url) {
    return el('div', { class: 'dim note' }, 'image, ' + plain(part.mimeType || '') + ', ' +
      bytesText(part.bytes || 0));
  }
  const node = el('img', { src: url, alt: 'image of the conversation', loading: 'lazy' });
  node.addEventListener('click', () => node.classList.toggle('large'));
  return el('div', { class: 'imagebox' }, node);
}

// What a user writes is Markdown where it has marks of that.
function messageNode(part, role) {
  const isMarkdown = role === 'assistant' || (role === 'user' && lineCount(part.text) <= 60 &&
    /\*\*\S|`|^#{1,6} |^ {0,3}[-*] /m.test(part.text));
  if (!isMarkdown || part.text.length > 200000) return textBlock(part.text, 60, 'said');
  return markdown(part.text);
}

function partNode(part, entry, context) {
  switch (part.kind) {
    case 'text':
      return el('div', { class: 'text' }, messageNode(part, entry.role), cutNode(part, context));
    case 'note':
      return el('div', { class: 'text dim' }, textBlock(part.text, 12), cutNode(part, context));
    case 'thinking':
      return part.text ? thinkingNode(part) : null;
    case 'call':
      return callNode(part, context);
    case 'result':
      if (context.hasCall(part.id)) return null;
      return el('div', { class: 'call' }, el('div', { class: 'callhead' },
        el('span', { class: 'tool' }, 'result')),
      el('div', { class: 'callbody' }, resultNode(part, context, 12)));
    case 'image':
      return imageNode(part, context);
    case 'summary':
      return el('details', { class: 'compaction', open: part.text.length < 1200 },
        el('summary', {}, 'Summary of what is above'), markdown(part.text),
        cutNode(part, context));
    default:
      return el('div', { class: 'other dim' }, plain(part.name || 'other'));
  }
}

const ROLES = {
  user: 'You', assistant: 'Assistant', tool: 'Tool', system: 'System',
};

function isNote(entry) {
  return entry.parts.every((part) => part.kind === 'note' ||
    (part.kind === 'thinking' && !part.text) || (!entry.role && part.kind === 'other'));
}

// Whether an entry has only results of calls that are shown above it.
function isAttached(entry, context) {
  return entry.parts.length > 0 && entry.parts.every((part) =>
    part.kind === 'result' && context.hasCall(part.id));
}

// What a filter hides: the classes of an entry.
function entryClass(entry, context) {
  const kinds = new Set(entry.parts.map((part) => part.kind));
  const names = ['entry', 'role-' + (entry.role || 'none')];
  if (kinds.size > 0 && [...kinds].every((kind) => kind === 'call' || kind === 'result')) {
    names.push('only-tools');
  }
  if (kinds.size === 1 && kinds.has('thinking')) names.push('only-thinking');
  if (kinds.has('summary')) names.push('is-summary');
  if (isAttached(entry, context)) names.push('attached');
  if (isNote(entry)) names.push('is-note');
  if (entry.redacted) names.push('redacted');
  if (entry.damaged) names.push('broken');
  return names.join(' ');
}

// The model and the time, when they differ from those of the entry above.
function entryHead(entry, previous, context) {
  const isSame = previous && previous.role === entry.role && previous.model === entry.model &&
    entry.role === 'assistant';
  const isSummary = entry.parts.some((part) => part.kind === 'summary');
  const name = isSummary ? 'Compaction' :
    entry.role === 'user' && context.isSubagent ? 'Prompt' : ROLES[entry.role] || plain(entry.type);
  return el('header', { class: isSame ? 'same' : '' },
    el('span', { class: 'who' }, name),
    entry.model && !isSame ? el('span', { class: 'model' }, plain(entry.model)) : null,
    context.isFork(entry.id) ? el('span', {
      class: 'badge', title: 'more than one entry follows this one: see the tree',
    }, 'fork') : null,
    context.headsAt(entry.id).map((head) => el('span', { class: 'badge head' }, plain(head))),
    button('#', 'link to this entry', () => context.link(entry.id), 'plain anchor'),
    el('time', { title: timeText(entry.time) }, clockText(entry.time)));
}

function entryNode(entry, previous, context) {
  const node = el('article', {
    class: entryClass(entry, context), 'data-id': entry.id, tabindex: '-1',
    'aria-label': (ROLES[entry.role] || entry.type) + ' ' + timeText(entry.time),
  });
  if (entry.time && previous?.time && !isSameDay(entry.time, previous.time)) {
    node.append(el('div', { class: 'day' }, dayText(entry.time)));
  }
  node.append(entryHead(entry, previous, context));
  if (entry.redacted) node.append(el('div', { class: 'dim note' }, 'This entry was redacted.'));
  if (entry.damaged) {
    node.append(el('div', { class: 'note warn' }, 'This entry is damaged.'));
  }
  const own = { ...context, whole: context.whole ? () => context.whole(entry, node) : null };
  for (const part of entry.parts) append(node, [partNode(part, entry, own)]);
  return node;
}
