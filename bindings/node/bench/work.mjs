// work WHAT STORE NUMBER...: one measurement in a process, which bench.mjs starts.
//
//   append STORE COUNT IN_FLIGHT SIZE   durable appends of one session
//   read STORE COUNT SIZE               entries of one session, text left unparsed
//   sqlite FILE COUNT IN_FLIGHT SIZE    the same appends with better-sqlite3
//   jsonl FILE COUNT IN_FLIGHT SIZE     the same appends as lines of a file
//
// Prints a line of JSON: the rate in a second, and of appends the median time in
// microseconds.

const [, , what, path, ...numbers] = process.argv;
const [count, second, third] = numbers.map(Number);

function makeText(size) {
  const head = '{"role":"user","content":"';
  return `${head}${'x'.repeat(size - head.length - 2)}"}`;
}

// Calls append() `count` times, by `inFlight` writers that each wait for theirs.
async function measure(inFlight, append) {
  const times = [];
  let left = count;
  const begin = performance.now();
  const write = async () => {
    while (left-- > 0) {
      const began = performance.now();
      await append();
      times.push(performance.now() - began);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, write));
  const rate = 1000 * count / (performance.now() - begin);
  times.sort((a, b) => a - b);
  return { rate: Math.round(rate), p50: 1000 * times[times.length >> 1] };
}

async function benchAppend() {
  const { Store } = await import('../index.mjs');
  const store = await Store.open(path);
  const session = await store.create();
  const text = makeText(third);
  const result = await measure(second, () => session.append({ text }));
  await store.close();
  return result;
}

async function benchRead() {
  const { Store } = await import('../index.mjs');
  const store = await Store.open(path);
  const session = await store.create();
  const text = makeText(second);
  for (let done = 0; done < count; done += 1000) {
    session.appendSync(Array.from({ length: 1000 }, () => ({ text })), { durability: 'written' });
  }
  let rate = 0;
  for (let round = 0; round < 5; round++) {
    const begin = performance.now();
    let read = 0;
    for (const entry of session.entries()) {
      read += entry.id.length > 0 ? 1 : 0;
    }
    rate = Math.max(rate, 1000 * read / (performance.now() - begin));
  }
  await store.close();
  return { rate: Math.round(rate) };
}

// As its users write: a prepared statement, each run a transaction that is synced.
async function benchSqlite() {
  const { createRequire } = await import('node:module');
  const Database = createRequire(`${process.env.BETTER_SQLITE3}/`)('better-sqlite3');
  const db = new Database(path);
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.exec('CREATE TABLE entry (id INTEGER PRIMARY KEY, session TEXT, parent INTEGER, type TEXT, ' +
    'timestamp TEXT, payload TEXT)');
  const insert = db.prepare('INSERT INTO entry (session, parent, type, timestamp, payload) ' +
    'VALUES (?, ?, ?, ?, ?)');
  const text = makeText(third);
  let last = null;
  const result = await measure(second, async () => {
    last = insert.run('s', last, 'message', new Date().toISOString(), text).lastInsertRowid;
  });
  db.close();
  return result;
}

// A line, synced before it is acknowledged.
async function benchJsonl() {
  const { open } = await import('node:fs/promises');
  const file = await open(path, 'a');
  const line = `${makeText(third)}\n`;
  const result = await measure(second, async () => {
    await file.appendFile(line);
    await file.datasync();
  });
  await file.close();
  return result;
}

const works = { append: benchAppend, read: benchRead, sqlite: benchSqlite, jsonl: benchJsonl };
process.stdout.write(`${JSON.stringify(await works[what]())}\n`);
