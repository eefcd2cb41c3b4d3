// usage.js - tokens and costs: of a session by model and by turn, and of the
// store by day, model and project.

const BAR_WIDTH = 4;
const BAR_COUNT = 400;
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

function usageTable(rows, nameOf, title) {
  const heads = [title, 'calls', 'input', 'cached', 'output', 'cost'];
  const body = rows.map((row) => el('tr', {},
    el('td', { title: plain(nameOf(row)) }, plain(nameOf(row))),
    el('td', {}, (row.requests || 0).toLocaleString('en')),
    el('td', {}, tokensText((row.inputTokens || 0) + (row.cacheWriteTokens || 0))),
    el('td', {}, tokensText(row.cacheReadTokens || 0)),
    el('td', {}, tokensText(row.outputTokens || 0)),
    el('td', {}, costText(row))));
  return el('div', { class: 'tablebox' }, el('table', { class: 'usage' },
    el('thead', {}, el('tr', {}, heads.map((head) => el('th', {}, head)))),
    el('tbody', {}, body)));
}

function legend() {
  return el('div', { class: 'legend' }, SHARES.map(([key, name]) =>
    el('span', {}, el('i', { class: key }), name)));
}

// Bars of the tokens of each row; a click calls choose(row).
function barsNode(rows, titleOf, choose) {
  const list = rows.slice(-BAR_COUNT);
  const height = 120;
  const max = Math.max(1, ...list.map((row) => SHARES.reduce((sum, [key]) =>
    sum + (row[key] || 0), 0)));
  const width = Math.max(list.length, 12) * BAR_WIDTH;
  const chart = svg('svg', {
    viewBox: '0 0 ' + width + ' ' + height, preserveAspectRatio: 'none', role: 'img',
    'aria-label': 'tokens of each turn',
  });
  list.forEach((row, at) => {
    const group = svg('g', { class: 'bar' }, svg('title', {}, titleOf(row)),
      svg('rect', { x: at * BAR_WIDTH, y: 0, width: BAR_WIDTH, height, class: 'hit' }));
    let y = height;
    for (const [key] of SHARES) {
      const size = (row[key] || 0) / max * (height - 4);
      y -= size;
      group.append(svg('rect', {
        x: at * BAR_WIDTH + 0.4, y, width: BAR_WIDTH - 0.8, height: size, class: key,
      }));
    }
    if (choose) group.addEventListener('click', () => choose(row));
    chart.append(group);
  });
  return el('div', { class: 'chart' }, chart);
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
    const titleOf = (row) => [plain(row.model || 'unknown model'), timeText(row.time),
      ...SHARES.map(([key, name]) => name + ' ' + (row[key] || 0).toLocaleString('en')),
      row.cost === null ? '' : costText(row)].join('\n');
    replace(this.node, tilesNode(turns),
      el('h3', {}, 'Tokens of each turn'),
      barsNode(turns, titleOf, (row) => this.app.jump(row.entryId)), legend(),
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

async function homeNode(app) {
  const node = el('div', { class: 'home pane', tabindex: '0' });
  const info = app.sessions?.info || await app.source.info();
  append(node, [el('h1', {}, 'Sessions of agents'),
    el('p', { class: 'dim' }, countText(info.sessions, 'session') + ' in ' +
      plain(info.store || 'this store') + '. Choose one, or press ? for the keys.')]);
  const named = [['day', 'Days', (row) => row.day], ['model', 'Models', (row) => row.model],
    ['project', 'Projects', (row) => row.cwd || row.projectId],
    ['client', 'Clients', (row) => row.client]];
  for (const [by, title, nameOf] of named) {
    app.source.totals(by).then(({ usage }) => {
      if (usage.length === 0) return;
      const place = node.querySelector('[data-by=' + by + ']');
      append(place, [el('h2', {}, title)]);
      if (by === 'day') {
        append(place, [tilesNode(usage), barsNode(usage.slice(-120), (row) =>
          row.day + '\n' + tokensText(row.totalTokens) + ' tokens\n' + costText(row)),
        legend()]);
      } else {
        append(place, [usageTable(usage.slice(0, 15), (row) => nameOf(row) || 'unknown', by)]);
      }
    }).catch(() => {});
    node.append(el('section', { 'data-by': by }));
  }
  return node;
}
