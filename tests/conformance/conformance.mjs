// Runs the cases of bindings/conformance.json by the package for Node.js:
// conformance.mjs FILE, in the current directory. Reports each case that fails.
// bindings/conformance.md describes the file.
import { readFileSync } from 'node:fs';

import { Store, WalError } from '../../bindings/node/index.mjs';

/** A text of a step: a string, {"repeat": [text, count]} or {"hex": digits}. */
function textOf(value) {
  if (value === null || typeof value !== 'object') {
    return value;
  }
  if (value.repeat !== undefined) {
    return value.repeat[0].repeat(value.repeat[1]);
  }
  return value.hex === undefined ? value : Buffer.from(value.hex, 'hex');
}

/** The members of a step that are there. */
const pick = (step, ...names) => Object.fromEntries(
  names.filter((name) => name in step).map((name) => [name, textOf(step[name])]));

const changeOf = (change) => ({ ...change, ...pick(change, 'title') });

function entryInput(value) {
  return { ...value, ...pick(value, 'id', 'parentId', 'type', 'timestamp', 'runId', 'text',
    'line') };
}

function entryResult(entry) {
  const { id, parentId, type, timestamp, runId, stream, depth, isLine, isRedacted, meta } = entry;
  const content = isLine ? { text: entry.text } : { payload: entry.payload };
  return { id, parentId, type, timestamp, runId, stream, depth, isLine, isRedacted, meta,
    ...content };
}

function infoResult(info) {
  const text = (value) => value === '' ? null : value;
  return { id: info.id, title: text(info.title), cwd: text(info.cwd), project: text(info.project),
    parentId: text(info.parentId), source: text(info.source), head: info.head,
    firstText: text(info.firstText), entries: info.entries, inherited: info.inherited,
    isFork: info.isFork, metadata: info.metadata };
}

const SESSION_OPTIONS = ['id', 'cwd', 'project', 'title', 'parentId', 'source', 'metadata'];

class Runner {
  sessions = new Map();
  saved = {};

  constructor(path) {
    this.path = path;
  }

  /** Members with saved numbers that "$name" names. */
  numbers(step, ...names) {
    return Object.fromEntries(names.filter((name) => name in step).map((name) => [name,
      typeof step[name] === 'string' ? this.saved[step[name].slice(1)] : step[name]]));
  }

  session(step) {
    return this.sessions.get(step.session);
  }

  documents(step) {
    return step.session === undefined ? this.store.documents : this.session(step).documents;
  }

  add(session) {
    this.sessions.set(session.id, session);
  }

  openOptions(step) {
    return { create: !step.readOnly, ...pick(step, 'create', 'exclusive', 'readOnly') };
  }

  calls = {
    close: () => this.store.close(),
    reopen: async (step) => {
      await this.store.close();
      this.sessions.clear();
      this.store = await Store.open(this.path, this.openOptions(step));
    },
    open: async (step) => {
      const path = `${this.path}${step.path ?? ''}`;
      await (await Store.open(path, this.openOptions(step))).close();
    },
    sync: () => this.store.sync(),
    create: async (step) => this.add(await this.store.create(pick(step, ...SESSION_OPTIONS))),
    session: (step) => this.add(this.store.session(textOf(step.id))),
    fork: async (step) => this.add(await this.session(step).fork(
      pick(step, 'at', ...SESSION_OPTIONS))),
    info: (step) => infoResult(this.session(step).info()),
    update: (step) => this.session(step).update(() => changeOf(step.change)),
    delete: (step) => this.session(step).delete(),
    trash: (step) => this.session(step).trash(),
    undelete: (step) => this.store.undelete(step.id),
    list: (step) => [...this.store.sessions(
      pick(step, 'prefix', 'project', 'cwd', 'source', 'parent', 'trash'))].map(({ id }) => id),
    append: async (step) => {
      const documents = (step.documents ?? []).map((one) => ({ ...one, key: textOf(one.key),
        ...this.numbers(one, 'expect') }));
      const heads = (step.heads ?? []).map(({ entry, ...head }) => ({ entryId: entry, ...head }));
      const { appended, duplicates, lastId } = await this.session(step).commit({
        entries: (step.entries ?? []).map(entryInput), documents, heads,
        ...'change' in step ? { change: changeOf(step.change) } : {},
      }, pick(step, 'expectTail'));
      return { appended, duplicates, lastId };
    },
    commit: (step) => this.calls.append(step),
    read: (step) => this.session(step).entries(
      pick(step, 'mode', 'stream', 'upTo', 'head', 'skip', 'last', 'redacted', 'deltas'))
      .toArray().map(entryResult),
    entry: (step) => {
      const entry = this.session(step).entry(step.id);
      return entry === null ? null : entryResult(entry);
    },
    redact: (step) => this.session(step).redact(step.id, step.reason).then(() => undefined),
    unredact: (step) => this.session(step).unredact(step.id),
    head: (step) => this.session(step).head(step.name ?? 'main'),
    heads: (step) => this.session(step).heads().map(({ name, entryId, note }) =>
      ({ name, entryId, note: note === '' ? null : note })),
    moveHead: (step) => this.session(step).moveHead(textOf(step.entry),
      pick(step, 'name', 'note', 'expect')),
    putDocument: (step) => this.documents(step).put(textOf(step.key), step.value,
      this.numbers(step, 'expect')),
    deleteDocument: (step) => this.documents(step).delete(step.key, this.numbers(step, 'expect'))
      .then(() => undefined),
    getDocument: (step) => {
      const found = this.documents(step).get(step.key, this.numbers(step, 'version'));
      return found === null ? null : { value: found.value };
    },
    listDocuments: (step) => this.documents(step).list(pick(step, 'prefix'))
      .map(({ key }) => key),
    putBlob: (step) => this.store.blobs.put(Buffer.from(textOf(step.content))),
    search: async (step) => {
      const search = this.store.openSearch();
      const found = await search.find(textOf(step.text), pick(step, 'project', 'cwd', 'session',
        'tool', 'roles', 'hits', 'limit', 'snippet', 'deep', 'substring'));
      return found.map(({ sessionId, title, matches: count, hits }) => ({
        sessionId, title, matches: count,
        hits: hits.map(({ entryId, role, tool, snippet, matches }) => ({ entryId, role, tool,
          snippet, marked: matches.map(([start, end]) => snippet.slice(start, end)) })),
      }));
    },
    blobSize: async (step) => (await this.store.blobs.get(step.digest))?.length ?? null,
  };

  /** Makes the call of a step; returns what is wrong with its outcome, or null. */
  async run(step) {
    let result;

    try {
      result = await this.calls[step.call](step) ?? null;
    } catch (error) {
      if (!(error instanceof WalError)) {
        throw error;
      }
      return error.code === step.error ? null : `${error.code}: ${error.message}`;
    }
    if (step.save !== undefined) {
      this.saved[step.save] = result;
    }
    return step.error !== undefined || 'returns' in step && !isExpected(result, step.returns)
      ? `succeeded, ${JSON.stringify(result)}`
      : null;
  }
}

/** Whether a result has all that is expected: members that are not named may have
 * any value. */
function isExpected(result, expected) {
  if (Array.isArray(expected)) {
    return Array.isArray(result) && result.length === expected.length &&
      expected.every((value, index) => isExpected(result[index], value));
  }
  if (expected !== null && typeof expected === 'object') {
    return result !== null && typeof result === 'object' && Object.entries(expected).every(
      ([name, value]) => name in result && isExpected(result[name], value));
  }
  return result === expected;
}

async function runCase({ name, steps }, number) {
  const runner = new Runner(`store-${number}`);
  runner.store = await Store.open(runner.path);

  try {
    for (const [index, step] of steps.entries()) {
      const fault = await runner.run(step);
      if (fault !== null) {
        console.error(`${name}, step ${index + 1}: ${step.call}: ${fault}`);
        return false;
      }
    }
    return true;
  } finally {
    await runner.store.close();
  }
}

const { cases } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
let failed = 0;

for (const [number, one] of cases.entries()) {
  failed += await runCase(one, number) ? 0 : 1;
}
console.log(`${cases.length} cases, ${failed} failed`);
process.exitCode = failed > 0 || cases.length === 0 ? 1 : 0;
