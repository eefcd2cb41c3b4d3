// markdown.js - a subset of Markdown as nodes: paragraphs, headings, lists,
// tables, quotes, code, emphasis, links. Everything else is text. HTML is text.

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const TABLE_RULE = /^\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$/;
const INLINE = new RegExp([
  '(`+)(?!`)([\\s\\S]{1,2000}?[^`])\\1(?!`)', // 1, 2: code
  '\\*\\*(?=\\S)([^*\\n]{1,1000}?)\\*\\*', // 3: strong
  '(?<![\\w*])\\*(?=[^\\s*])([^*\\n]{1,1000}?)\\*(?![\\w*])', // 4: emphasis
  '(?<![\\w_])_(?=[^\\s_])([^_\\n]{1,1000}?)_(?![\\w_])', // 5: emphasis
  '~~(?=\\S)([^~\\n]{1,1000}?)~~', // 6: struck
  '!?\\[([^\\]\\n]{0,500})\\]\\(([^()\\s]{1,2000}(?:\\([^()\\s]*\\))?)\\)', // 7, 8: link
  '(https?:\\/\\/[^\\s<>"\'`\\])]{3,2000})', // 9: address
].join('|'), 'g');

function link(address, text) {
  const url = safeUrl(address);
  if (!url) {
    const span = el('span', { class: 'nolink', title: 'not a link to the web' });
    appendText(span, text === address ? text : text + ' (' + address + ')');
    return span;
  }
  const node = el('a', {
    href: url, rel: 'noreferrer noopener', target: '_blank', title: plain(url),
  });
  appendText(node, text);
  return node;
}

function inlineNode(match, depth) {
  const [, , code, strong, star, line, struck, text, address, bare] = match;
  if (code !== undefined) {
    const node = el('code');
    appendText(node, code.replace(/^ (.*) $/, '$1'));
    return node;
  }
  if (text !== undefined) return link(address, text || address);
  if (bare !== undefined) return link(bare, bare);
  const name = strong !== undefined ? 'strong' : struck !== undefined ? 's' : 'em';
  const node = el(name);
  inline(node, strong ?? star ?? line ?? struck, depth + 1);
  return node;
}

function inline(node, text, depth = 0) {
  let at = 0;
  if (depth < 4 && text.length < 100000) {
    for (const match of text.matchAll(INLINE)) {
      appendText(node, text.slice(at, match.index));
      node.append(inlineNode(match, depth));
      at = match.index + match[0].length;
    }
  }
  appendText(node, text.slice(at));
}

function codeBlock(text, language) {
  const code = el('code');
  appendText(code, text);
  return el('div', { class: 'code' },
    el('div', { class: 'codebar' }, el('span', {}, plain(language)),
      copyButton(text, 'copy the code')),
    el('pre', {}, code));
}

function cells(line) {
  return line.trim().replace(/^\|/, '').replace(/\|$/, '').split('|').map((s) => s.trim());
}

// Each reader takes lines from `at`, appends a node and returns the next line,
// or -1 when the lines are something else.
function readFence(lines, at, node) {
  const open = FENCE.exec(lines[at]);
  if (!open) return -1;
  const body = [];
  let next = at + 1;
  const close = new RegExp('^ {0,3}' + open[1][0] + '{' + open[1].length + ',}\\s*$');
  while (next < lines.length && !close.test(lines[next])) body.push(lines[next++]);
  node.append(codeBlock(body.join('\n'), open[2]));
  return next + 1;
}

function readTable(lines, at, node) {
  if (!lines[at].includes('|') || at + 1 >= lines.length || !TABLE_RULE.test(lines[at + 1]) ||
      !lines[at + 1].includes('|')) {
    return -1;
  }
  const row = (line, name) => el('tr', {}, cells(line).slice(0, 50).map((cell) => {
    const made = el(name);
    inline(made, cell);
    return made;
  }));
  const body = el('tbody');
  let next = at + 2;
  while (next < lines.length && lines[next].includes('|')) body.append(row(lines[next++], 'td'));
  node.append(el('div', { class: 'tablebox' },
    el('table', {}, el('thead', {}, row(lines[at], 'th')), body)));
  return next;
}

function readQuote(lines, at, node, depth) {
  if (!/^ {0,3}>/.test(lines[at]) || depth > 4) return -1;
  const body = [];
  let next = at;
  while (next < lines.length && /^ {0,3}>/.test(lines[next])) {
    body.push(lines[next++].replace(/^ {0,3}> ?/, ''));
  }
  const quote = el('blockquote');
  blocks(quote, body, depth + 1);
  node.append(quote);
  return next;
}

function readList(lines, at, node, depth) {
  const first = ITEM.exec(lines[at]);
  if (!first || depth > 6) return -1;
  const ordered = /\d/.test(first[2]);
  const indent = first[1].length;
  const list = el(ordered ? 'ol' : 'ul', { start: ordered ? parseInt(first[2], 10) : null });
  let next = at;
  while (next < lines.length) {
    const item = ITEM.exec(lines[next]);
    if (!item || item[1].length !== indent || /\d/.test(item[2]) !== ordered) break;
    const body = [item[3]];
    next++;
    while (next < lines.length && (lines[next].trim() === '' ?
      next + 1 < lines.length && /^\s/.test(lines[next + 1]) &&
        lines[next + 1].search(/\S/) > indent :
      lines[next].search(/\S/) > indent)) {
      body.push(lines[next++].replace(new RegExp('^\\s{0,' + (indent + 4) + '}'),
        (s) => s.slice(Math.min(s.length, indent + 2))));
    }
    const made = el('li');
    itemBlocks(made, body, depth + 1);
    list.append(made);
  }
  node.append(list);
  return next;
}

// An item begins with a line of text that is no paragraph.
function itemBlocks(node, lines, depth) {
  const box = /^\[([ xX])\]\s+/.exec(lines[0]);
  if (box) {
    node.classList.add('task');
    node.append(box[1] === ' ' ? '\u2610 ' : '\u2611 ');
    lines[0] = lines[0].slice(box[0].length);
  }
  let end = 1;
  while (end < lines.length && lines[end].trim() !== '' && !isBlockStart(lines[end])) end++;
  inline(node, lines.slice(0, end).join('\n'));
  if (end < lines.length) blocks(node, lines.slice(end), depth);
}

function isBlockStart(line) {
  return FENCE.test(line) || HEADING.test(line) || ITEM.test(line) || /^ {0,3}>/.test(line) ||
    RULE.test(line);
}

function readParagraph(lines, at, node) {
  let next = at + 1;
  while (next < lines.length && lines[next].trim() !== '' && !isBlockStart(lines[next])) next++;
  const paragraph = el('p');
  inline(paragraph, lines.slice(at, next).join('\n'));
  node.append(paragraph);
  return next;
}

function readLine(lines, at, node) {
  const heading = HEADING.exec(lines[at]);
  if (heading) {
    const made = el('h' + Math.min(6, heading[1].length + 2));
    inline(made, heading[2]);
    node.append(made);
    return at + 1;
  }
  if (RULE.test(lines[at])) {
    node.append(el('hr'));
    return at + 1;
  }
  return lines[at].trim() === '' ? at + 1 : -1;
}

function blocks(node, lines, depth) {
  let at = 0;
  while (at < lines.length) {
    let next = readLine(lines, at, node);
    for (const read of [readFence, readTable, readQuote, readList]) {
      if (next < 0) next = read(lines, at, node, depth);
    }
    at = next < 0 ? readParagraph(lines, at, node) : next;
  }
}

function markdown(text) {
  const node = el('div', { class: 'md' });
  blocks(node, text.replace(/\r\n?/g, '\n').split('\n'), 0);
  return node;
}
