// bench.mjs [ROUNDS [FILE]]: what JavaScript costs, next to the library alone, and
// what durable appends cost, next to other ways to keep them. FILE gets the latter as
// JSON, and README.md has them.
//
// Prints the medians of ROUNDS (default 5) runs of each, which take turns so that
// both meet the same disk. Needs the program agentwal_node_bench of the build tree
// that AGENTWAL_NODE_BINARY names; BETTER_SQLITE3 names a folder with better-sqlite3
// in its node_modules, if that is to be compared.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const rounds = Number(process.argv[2] ?? 5);
const binary = process.env.AGENTWAL_NODE_BINARY;
if (binary === undefined) {
  throw new Error('AGENTWAL_NODE_BINARY is not set: it names agentwal.node of a build tree');
}
const native = path.join(path.dirname(binary), 'agentwal_node_bench');
const work = fileURLToPath(new URL('./work.mjs', import.meta.url));
const folder = mkdtempSync(path.join(tmpdir(), 'agentwal-bench-'));
let stores = 0;

function run(program, ...numbers) {
  const [what, ...rest] = numbers;
  const store = path.join(folder, `store-${stores++}`);
  const before = program === native ? [] : [work];
  const output = execFileSync(program, [...before, what, store, ...rest.map(String)],
    { encoding: 'utf8' });
  rmSync(store, { recursive: true, force: true });
  return JSON.parse(output);
}

function median(values) {
  return [...values].sort((a, b) => a - b)[values.length >> 1];
}

// Runs each of some programs in turns; returns the medians of what they print.
function compare(programs) {
  const results = programs.map(() => []);
  for (let round = 0; round < rounds; round++) {
    programs.forEach((program, i) => results[i].push(run(...program)));
  }
  return results.map((list) => ({
    rate: median(list.map((one) => one.rate)), p50: median(list.map((one) => one.p50)),
  }));
}

function row(name, c, js, ratio, goal) {
  console.log([name.padEnd(42), c.padStart(12), js.padStart(12), ratio.toFixed(2).padStart(8),
    goal].join(' '));
}

const node = process.execPath;
try {
  console.log(`Node.js ${process.versions.node}, ${rounds} rounds\n`);
  console.log(`${''.padEnd(42)} ${'C'.padStart(12)} ${'JavaScript'.padStart(12)}    ratio goal`);
  {
    const [c, js] = compare([[native, 'append', 4000, 1, 1000], [node, 'append', 4000, 1, 1000]]);
    row('durable append, 1 in flight: median us', c.p50.toFixed(0), js.p50.toFixed(0),
      js.p50 / c.p50, '<= 1.25');
  }
  {
    // Enough that JavaScript is compiled for most of them.
    const numbers = ['append', 200_000, 64, 1000];
    const [c, js] = compare([[native, ...numbers], [node, ...numbers]]);
    row('durable append, 64 in flight: a second', String(c.rate), String(js.rate),
      js.rate / c.rate, '>= 0.80');
  }
  {
    const [c, js] = compare([[native, 'read', 100_000, 2000], [node, 'read', 100_000, 2000]]);
    row('read entries of 2 KB: a second', String(c.rate), String(js.rate), js.rate / c.rate,
      '>= 400,000');
  }
  const peers = { jsonl: 'lines of a file' };
  if (process.env.BETTER_SQLITE3 !== undefined) {
    peers.sqlite = 'better-sqlite3';
  }
  const rows = [];
  for (const writers of [1, 16, 64]) {
    const programs = ['append', ...Object.keys(peers)]
      .map((what) => [node, what, 2000 * Math.sqrt(writers), writers, 1000]);
    const [js, ...others] = compare(programs);
    Object.values(peers).forEach((peer, i) => {
      const ratio = js.rate / others[i].rate;
      row(`${writers} in flight, ${peer} and agentwal`, String(others[i].rate), String(js.rate),
        ratio, writers === 16 && peer === 'better-sqlite3' ? '>= 5' : '');
      rows.push({ writers, peer, ratio: Number(ratio.toFixed(1)) });
    });
  }
  if (process.argv[3] !== undefined) {
    const found = { node: process.versions.node, rounds, rows };
    writeFileSync(process.argv[3], `${JSON.stringify(found, null, 2)}\n`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
