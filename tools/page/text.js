// text.js - texts of sessions as plain text: control characters, escapes of
// terminals and characters that change the direction of text become visible;
// colors of terminals are dropped; times for people.

// A joiner between two emoji makes one of them.
const JOINER = '(?<!\\p{Extended_Pictographic}[\\ufe0f\\u{1f3fb}-\\u{1f3ff}]?)\\u200d|' +
  '\\u200d(?!\\p{Extended_Pictographic})';
const VISIBLE = new RegExp('[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u061c' +
  '\\u200b\\u200c\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff\\ufff9-\\ufffb]|' +
  JOINER, 'u');
const ESCAPES = new RegExp(
  '(\\u001b\\[[0-9;?]*[ -\\/]*[@-~]|\\u001b\\][^\\u0007\\u001b]{0,200}(?:\\u0007|\\u001b\\\\)' +
  '|' + VISIBLE.source + ')', 'gu');
const COLORS = new RegExp('\\u001b\\[[0-9;:]*m', 'g');

const NAMES = {
  '\u061c': 'ALM', '\u200b': 'ZWSP', '\u200c': 'ZWNJ', '\u200d': 'ZWJ',
  '\u200e': 'LRM', '\u200f': 'RLM', '\u2028': 'LS', '\u2029': 'PS',
  '\u202a': 'LRE', '\u202b': 'RLE', '\u202c': 'PDF', '\u202d': 'LRO',
  '\u202e': 'RLO', '\u2060': 'WJ', '\u2066': 'LRI', '\u2067': 'RLI',
  '\u2068': 'FSI', '\u2069': 'PDI', '\ufeff': 'BOM',
};

// The symbol of one character that would not be seen: ^[ as in a pager, or a name.
function symbolOf(c) {
  const code = c.codePointAt(0);
  if (code < 0x20) return '^' + String.fromCharCode(0x40 + code);
  if (code === 0x7f) return '^?';
  return '\u2039' + (NAMES[c] || 'U+' + code.toString(16).toUpperCase().padStart(4, '0')) +
    '\u203a';
}

// A text whose characters are all seen, for places without markup.
function plain(text) {
  const s = String(text ?? '');
  return VISIBLE.test(s) ?
    s.replace(COLORS, '').replace(new RegExp(VISIBLE.source, 'gu'), symbolOf) : s;
}

// Appends a text to a node; what is not seen becomes a symbol that is marked.
function appendText(node, text) {
  if (!VISIBLE.test(text)) {
    node.append(text);
    return;
  }
  for (const piece of text.replace(/\r\n/g, '\n').replace(COLORS, '').split(ESCAPES)) {
    if (piece === '') continue;
    if (VISIBLE.test(piece)) {
      node.append(el('span', { class: 'ctl' }, plain(piece)));
    } else {
      node.append(piece);
    }
  }
}

function countText(count, one, many) {
  return count.toLocaleString('en') + ' ' + (count === 1 ? one : many || one + 's');
}

function bytesText(bytes) {
  if (bytes < 1000) return bytes + ' B';
  const units = ['kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = -1;
  while (value >= 999.5 && unit < 3) {
    value /= 1000;
    unit++;
  }
  return (value < 10 ? value.toFixed(1) : Math.round(value)) + ' ' + units[unit];
}

function tokensText(count) {
  if (count < 1000) return String(count);
  if (count < 999500) return (count / 1000).toFixed(count < 9950 ? 1 : 0) + 'k';
  return (count / 1e6).toFixed(count < 9.95e6 ? 2 : 1) + 'M';
}

// The cost of a row of usage; ~: in part computed with list prices.
function costText({ cost, computed }) {
  if (cost === null || cost === undefined) return '\u2013';
  return (computed ? '~$' : '$') + (cost >= 100 ? cost.toFixed(0) : cost >= 0.1 ?
    cost.toFixed(2) : cost.toFixed(cost >= 0.01 ? 3 : 4));
}

function lastName(path) {
  const parts = String(path || '').split('/').filter(Boolean);
  return parts.length > 0 ? parts[parts.length - 1] : '';
}

function titleOf(session) {
  return plain(session.title || session.text || '(no messages) ' + session.id);
}

// The first lines of a text, and the number of its lines.
function firstLines(text, lines, characters) {
  let at = 0;
  let count = 0;
  while (count < lines && at < text.length) {
    const next = text.indexOf('\n', at);
    if (next < 0) {
      at = text.length;
    } else {
      at = next + 1;
    }
    count++;
  }
  at = Math.min(at, characters);
  return text.slice(0, at);
}

function lineCount(text) {
  let count = text.length > 0 && !text.endsWith('\n') ? 1 : 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++;
  return count;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' });
const dayOfYear = new Intl.DateTimeFormat(undefined,
  { year: 'numeric', month: 'short', day: 'numeric' });
const complete = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

function ageText(ms) {
  if (!ms) return '';
  const seconds = (Date.now() - ms) / 1000;
  if (seconds < 60) return 'now';
  if (seconds < 3600) return Math.floor(seconds / 60) + ' min';
  if (seconds < 86400) return Math.floor(seconds / 3600) + ' h';
  if (seconds < 7 * 86400) return Math.floor(seconds / 86400) + ' d';
  const sameYear = new Date(ms).getFullYear() === new Date().getFullYear();
  return (sameYear ? day : dayOfYear).format(ms);
}

function clockText(ms) {
  return ms ? clock.format(ms) : '';
}

function timeText(ms) {
  return ms ? complete.format(ms) : '';
}

function isSameDay(a, b) {
  return new Date(a).toDateString() === new Date(b).toDateString();
}

function dayText(ms) {
  return dayOfYear.format(ms);
}

function durationText(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return seconds + ' s';
  if (seconds < 3600) return Math.round(seconds / 60) + ' min';
  if (seconds < 86400) {
    return Math.floor(seconds / 3600) + ' h ' + Math.round(seconds % 3600 / 60) + ' min';
  }
  return Math.round(seconds / 86400) + ' d';
}
