// entry.js - one entry of a conversation.

const ROLES = {
  user: 'You', assistant: 'Assistant', tool: 'Tool', system: 'System',
};

// What a filter hides: the classes of an entry.
function entryClass(entry, context) {
  const kinds = new Set(entry.parts.map((part) => part.kind));
  const names = ['entry', 'role-' + (entry.role || 'none')];
  if (kinds.size > 0 && [...kinds].every((kind) => kind === 'call' || kind === 'result')) {
    names.push('only-tools');
  }
  if (kinds.size === 1 && kinds.has('thinking')) names.push('only-thinking');
  if (kinds.has('summary')) names.push('is-summary');
  if (entry.parts.length > 0 && entry.parts.every((part) =>
    part.kind === 'result' && context.hasCall(part.id))) {
    names.push('attached');
  }
  if (!entry.role && entry.parts.every((part) => part.kind === 'other')) names.push('is-note');
  if (entry.redacted) names.push('redacted');
  if (entry.damaged) names.push('broken');
  return names.join(' ');
}

// The model and the time, when they differ from those of the entry above.
function entryHead(entry, previous, context) {
  const isSame = previous && previous.role === entry.role && previous.model === entry.model &&
    entry.role === 'assistant';
  const isSummary = entry.parts.some((part) => part.kind === 'summary');
  const name = isSummary ? 'Compaction' : ROLES[entry.role] || plain(entry.type);
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
