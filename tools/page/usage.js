// usage.js - tokens and costs: of a session by model and by turn, and of the
// store by day, model and project.

const BAR_WIDTH = 4;
const BAR_COUNT = 1200;
const DAYS_MAX = 200; // of a chart; months otherwise
const RANGES = [7, 30, 90, 0]; // days; 0: all
const SHARES = [
  ['cacheReadTokens', 'cache read'], ['cacheWriteTokens', 'cache write'],
  ['inputTokens', 'input'], ['outputTokens', 'output'],
];

function sumOf(rows, key) {
  return rows.reduce((sum, row) => sum + (row[key] || 0), 0);
}

function tile(value, label) {
  return el('div', { class: 'tile' }, el('b', {}, value), el('span', {}, label));
}

function costOf(rows) {
  const known = rows.filter((row) => row.cost !== null && row.cost !== undefined);
  return { cost: known.length > 0 ? sumOf(known, 'cost') : null,
    computed: sumOf(known, 'computed') };
}

function tilesNode(rows) {
  const cost = costOf(rows);
  const read = sumOf(rows, 'cacheReadTokens');
  const prompt = read + sumOf(rows, 'inputTokens') + sumOf(rows, 'cacheWriteTokens');
  return el('div', { class: 'tiles' },
    tile(costText(cost), cost.computed ? 'cost, by list prices' : 'cost'),
    tile(tokensText(sumOf(rows, 'totalTokens')), 'tokens'),
    tile(tokensText(sumOf(rows, 'outputTokens')), 'output'),
    tile(prompt > 0 ? Math.round(read / prompt * 100) + '%' : '\u2013', 'cached'));
}

// A table of sums; those after the first `limit` are shown on demand.
function usageTable(rows, nameOf, title, limit = Infinity) {
  const heads = [title, 'calls', 'input', 'cached', 'output', 'cost'];
  const made = (row) => el('tr', {},
    el('td', { title: plain(nameOf(row)) }, plain(nameOf(row))),
    el('td', {}, (row.requests || 0).toLocaleString('en')),
    el('td', {}, tokensText((row.inputTokens || 0) + (row.cacheWriteTokens || 0))),
    el('td', {}, tokensText(row.cacheReadTokens || 0)),
    el('td', {}, tokensText(row.outputTokens || 0)),
    el('td', {}, costText(row)));
  const body = el('tbody', {}, rows.slice(0, limit).map(made));
  const more = rows.length > limit ? button('\u25be show all (' + rows.length + ')', 'show all',
    () => {
      append(body, rows.slice(limit).map(made));
      more.remove();
    }, 'more') : null;
  return el('div', { class: 'tablebox' }, el('table', { class: 'usage' },
    el('thead', {}, el('tr', {}, heads.map((head) => el('th', {}, head)))), body), more);
}

// The number above a maximum at which a scale ends: 1, 2 or 5 and zeros.
function scaleEnd(max) {
  const unit = 10 ** Math.floor(Math.log10(max));
  return [1, 2, 5, 10].map((times) => times * unit).find((end) => end >= max);
}

// Bars of the tokens of each row, with a scale, the first and the last of the labels, and of the
// bar that is pointed at what it shows; a click calls choose(row).
function chartNode(rows, { name, labelOf, choose }) {
  const list = rows.slice(-BAR_COUNT);
  const height = 120;
  const sums = list.map((row) => SHARES.reduce((sum, [key]) => sum + (row[key] || 0), 0));
  const end = scaleEnd(Math.max(1, ...sums));
  const width = Math.max(list.length, 12) * BAR_WIDTH;
  const shown = el('div', { class: 'pointed dim', role: 'status' });
  const textOf = (row, at) => [labelOf(row), row.model ? plain(row.model) : null,
    tokensText(sums[at]) + ' tokens',
    ...SHARES.filter(([key]) => row[key]).map(([key, text]) => text + ' ' + tokensText(row[key])),
    row.cost ? costText(row) : null].filter(Boolean).join(' \u00b7 ');
  const chart = svg('svg', {
    viewBox: '0 0 ' + width + ' ' + height, preserveAspectRatio: 'none', role: 'img',
    'aria-label': name,
  }, [0, 0.5].map((part) => svg('line', {
    x1: 0, x2: width, y1: height * part + 0.5, y2: height * part + 0.5, class: 'grid',
  })));
  list.forEach((row, at) => {
    const text = textOf(row, at);
    const group = svg('g', { class: 'bar' }, svg('title', {}, text),
      svg('rect', { x: at * BAR_WIDTH, y: 0, width: BAR_WIDTH, height, class: 'hit' }));
    let y = height;
    for (const [key] of SHARES) {
      const size = (row[key] || 0) / end * height;
      y -= size;
      group.append(svg('rect', {
        x: at * BAR_WIDTH + 0.4, y, width: BAR_WIDTH - 0.8, height: size, class: key,
      }));
    }
    group.addEventListener('pointerenter', () => { shown.textContent = text; });
    if (choose) group.addEventListener('click', () => choose(row));
    chart.append(group);
  });
  return el('div', { class: 'chart' },
    el('div', { class: 'scale' }, [end, end / 2, 0].map((at) => el('span', {}, tokensText(at)))),
    chart, el('div', { class: 'ends' }, el('span', {}, labelOf(list[0])),
      list.length > 1 ? el('span', {}, labelOf(list[list.length - 1])) : null),
    el('div', { class: 'legend' }, SHARES.map(([key, text]) =>
      el('span', {}, el('i', { class: key }), text))), shown);
}

class Usage {
  constructor(app) {
    this.app = app;
    this.node = el('div', { class: 'usagepane pane', tabindex: '0' });
  }

  clear() {
    this.loaded = false;
    replace(this.node);
  }

  async load() {
    if (this.loaded) return;
    this.loaded = true;
    const session = state.session;
    const { turns, models } = await this.app.source.usage(session);
    if (session !== state.session) return;
    if (turns.length === 0) {
      replace(this.node, el('p', { class: 'dim' }, 'No answer states tokens or a cost.'));
      return;
    }
    replace(this.node, tilesNode(turns),
      el('h3', {}, 'Tokens of each turn'),
      chartNode(turns, {
        name: 'tokens of each turn',
        labelOf: (row) => timeText(row.time),
        choose: (row) => this.app.jump(row.entryId),
      }),
      el('h3', {}, 'Models'),
      usageTable(models, (row) => row.model || 'unknown', 'model'),
      el('h3', {}, 'Most expensive turns'), this.dearest(turns));
  }

  dearest(turns) {
    const hasCost = turns.some((turn) => turn.cost);
    const value = (turn) => (hasCost ? turn.cost || 0 : turn.totalTokens);
    const list = turns.slice().sort((a, b) => value(b) - value(a)).slice(0, 8);
    return el('ol', { class: 'dearest' }, list.map((turn) => el('li', {},
      button(timeText(turn.time) || turn.entryId, 'show the answer',
        () => this.app.jump(turn.entryId), 'plain link'),
      el('span', { class: 'dim' }, ' ' + tokensText(turn.totalTokens) + ' tokens' +
        (turn.cost ? ', ' + costText(turn) : '')))));
  }
}

// --- the whole store, where no session is open ---

// The last `count` days, or 0: those from the first to the last that has usage.
function daysOf(usage, count) {
  const known = new Map(usage.filter((row) => row.day).map((row) => [row.day, row]));
  const days = [...known.keys()].sort();
  const at = count ? new Date() : new Date(days[0] + 'T12:00');
  if (count) at.setDate(at.getDate() - count + 1);
  const dateOf = () => [at.getFullYear(), at.getMonth() + 1, at.getDate()]
    .map((part) => String(part).padStart(2, '0')).join('-');
  const last = count || Infinity;
  const rows = [];
  for (let i = 0; i < last && (count || dateOf() <= days[days.length - 1]); i++) {
    rows.push(known.get(dateOf()) || { day: dateOf() });
    at.setDate(at.getDate() + 1);
  }
  return rows;
}

// The sums of the months of days.
function monthsOf(rows) {
  const months = new Map();
  for (const row of rows) {
    const day = row.day.slice(0, 7);
    const month = months.get(day) || { day, cost: null };
    for (const [key] of SHARES) month[key] = (month[key] || 0) + (row[key] || 0);
    if (row.cost) month.cost += row.cost;
    if (row.computed) month.computed = true;
    months.set(day, month);
  }
  return [...months.values()];
}

// Sums, a chart and a table of the days in a range that is chosen.
function daysNode(usage) {
  const node = el('div');
  const show = (count) => {
    const rows = count || usage.some((row) => row.day) ? daysOf(usage, count) : [];
    const used = count ? rows.filter((row) => row.requests) : usage;
    replace(node, tilesNode(used),
      el('div', { class: 'ranges', role: 'group', 'aria-label': 'Days' },
        RANGES.map((one) => el('button', {
          type: 'button', class: 'chip', 'aria-pressed': String(one === count),
          onclick: () => show(one),
        }, one ? one + ' days' : 'all days'))),
      rows.length > 0 ? chartNode(rows.length > DAYS_MAX ? monthsOf(rows) : rows,
        { name: 'tokens of each day', labelOf: (row) => row.day }) : null,
      usageTable(used.slice().reverse(), (row) => row.day || 'unknown', 'day', 10));
  };
  const isRecent = daysOf(usage, RANGES[1]).some((row) => row.requests);
  show(isRecent ? RANGES[1] : 0);
  return node;
}

async function homeNode(app) {
  const node = el('div', { class: 'home pane', tabindex: '0' });
  const info = app.sessions?.info || await app.source.info();
  append(node, [el('h1', {}, 'Agent sessions'),
    el('p', { class: 'dim' }, 'Choose one of the sessions in ' +
      plain(info.store || 'this store') + ', or press ? for the keys.')]);
  const named = [['day', 'Usage'], ['model', 'Models', (row) => row.model],
    ['project', 'Projects', (row) => row.cwd || row.projectId],
    ['client', 'Clients', (row) => row.client]];
  for (const [by, title, nameOf] of named) {
    const place = el('section', { 'data-by': by });
    node.append(place);
    app.source.totals(by).then(({ usage }) => {
      if (usage.length === 0) return;
      append(place, [el('h2', {}, title), nameOf ?
        usageTable(usage, (row) => nameOf(row) || 'unknown', by, 15) : daysNode(usage)]);
    }).catch(() => {});
  }
  return node;
}
