'use strict';

// What a thread of LangGraph has in its session, without LangGraph itself:
// records of checkpoints, pending writes, and the batches that change them.
//
//   entry "NS/ID"                in stream 0, a record: a checkpoint without values, and
//                                what refers to each value
//   entry "value:DIGEST"         in stream 2, a value (values.js)
//   document "c/NS/ID"           which entry is the record: another one than
//                                "NS/ID" after a put with other content
//   document "l/NS"              the greatest id of the namespace
//   document "w/NS/ID/TASK/N"    a pending write
//
// A put is one batch, so that its entries and documents are there together or
// not at all. Ids are compared as strings; those that LangGraph makes rise with time.
// Nothing is put into the blobs of the store, which no deletion frees.

const { damaged, hexDigest, idPart } = require('../adapter/names.js');

const TYPE = 'langgraph.checkpoint';
const BATCH_BYTES = 8 << 20; // of values that go with a record in one batch
const INLINE_WRITE = 4096; // a larger pending write is a value

const namespaceKey = (ns) => idPart(ns, 400);
const checkpointKey = (ns, id) => `${namespaceKey(ns)}/${idPart(id, 400)}`;

/** The id of a record's entry: at most 233 bytes. */
const recordId = (ns, id) => `${idPart(ns, 116)}/${idPart(id, 116)}`;

class Thread {
  constructor(session, values, durability) {
    this.session = session;
    this.values = values;
    this.options = { durability };
  }

  close() {
    this.session.close();
  }

  // --------------------------------------------------------- reading ---

  /** The record of a checkpoint, or null. */
  record(ns, id) {
    return this.#recordOf(
      this.session.documents.get('c/' + checkpointKey(ns, id)));
  }

  #recordOf(document) {
    if (document === null) {
      return null;
    }
    return this.session.entry(document.value.entry)?.payload ??
      this.#recordBefore(document);
  }

  /** The record that a document named before, when there is no entry for it now:
   * that of a copy which was made while the thread was written. A copy has the
   * entries up to one of them, and documents that may be newer. */
  #recordBefore({ key, value }) {
    const { session } = this;

    if (session.info().isDamaged) {
      throw damaged(`the checkpoint ${value.id}`, session, 'is missing');
    }
    for (const version of session.documents.list({ prefix: key, history: true })) {
      const entry = version.key === key && !version.deleted
        ? session.entry(version.value.entry) : null;

      if (entry !== null) {
        return entry.payload;
      }
    }
    return null;
  }

  /** Null also when it was redacted. */
  #readable(ns, id) {
    try {
      return this.record(ns, id);
    } catch (error) {
      if (error.code !== 'WAL_EREDACTED') {
        throw error;
      }
      return null;
    }
  }

  /** The record with the greatest id of a namespace, or null. */
  latest(ns) {
    const pointer = this.session.documents.get('l/' + namespaceKey(ns));

    if (pointer === null) {
      return null;
    }
    return this.#readable(ns, pointer.value.id) ??
      this.records({ ns }).next().value ?? null;
  }

  /** The records of a namespace, or of all, the greatest id first; without
   * those that were redacted. */
  *records({ ns, id, before }) {
    const prefix = ns === undefined ? 'c/' : `c/${namespaceKey(ns)}/`;
    const listed = this.session.documents.list({ prefix })
      .filter(({ value }) => (id === undefined || value.id === id) &&
        (before === undefined || value.id < before))
      .sort((a, b) => (a.value.id < b.value.id ? 1 : -1));

    for (const document of listed) {
      let record = null;

      try {
        record = this.#recordOf(document);
      } catch (error) {
        if (error.code !== 'WAL_EREDACTED') {
          throw error;
        }
      }
      if (record !== null) {
        yield record;
      }
    }
  }

  /** The pending writes of a checkpoint, in the order of their keys; in a copy,
   * those whose values it has. */
  writes(ns, id) {
    const { session } = this;
    const writes = session.documents.list({ prefix: `w/${checkpointKey(ns, id)}/` })
      .map(({ value }) => value);

    return writes.length > 0 && session.info().isFork
      ? writes.filter(({ value }) => this.values.has(session, value)) : writes;
  }

  readValue(reference) {
    return this.values.read(this.session, reference);
  }

  // --------------------------------------------------------- writing ---

  /** Forks the session as a whole: at its newest entry of any stream. False when
   * it has none. */
  async fork(options) {
    const [newest] = [0, 2].flatMap((stream) =>
      this.session.entries({ mode: 'all', stream, last: 1 }).toArray())
      .sort((a, b) => b.sequence - a.sequence);

    if (newest === undefined) {
      return false;
    }
    (await this.session.fork({ ...options, at: newest.id })).close();
    return true;
  }

  /**
   * Puts a checkpoint: { ns, id, parent, checkpoint, metadata, versions, given,
   * isNew, serialise }. `versions` has the version of each channel, `given` the
   * channels whose values the caller has; isNew(channel) says whether the put
   * changes it, and serialise(channel) fulfils with { type, data }. Fails with
   * WAL_ECONFLICT, WAL_EEXISTS or WAL_ENOTFOUND when another writer was faster;
   * may be called again.
   */
  async putCheckpoint(put) {
    const { ns, id, parent, checkpoint, metadata, versions } = put;
    const before = parent === undefined ? null : this.#readable(ns, parent);
    const entries = [];
    const values = await this.#chooseValues(put, before, entries);
    const text = JSON.stringify({ v: 1, ns, id, parent, checkpoint, metadata,
      versions, values: Object.fromEntries(values) });
    const documents = this.#recordDocuments(ns, id, text, parent, entries);

    if (entries.length + documents.length > 0) {
      await this.#flushValues(entries);
      await this.session.commit({ entries, documents }, this.options);
    }
  }

  /**
   * What refers to the value of each channel: [channel, reference] pairs. A
   * channel that the put does not change has the value that the parent has of
   * the same version. Where there is a parent that does not have it, the value
   * that the caller gives is stored, which loses nothing; without any parent it
   * is not, as the contract of put() has it.
   */
  async #chooseValues({ parent, versions, given, isNew, serialise }, before,
    entries) {
    const values = new Map();

    for (const channel of Object.keys(versions)) {
      if (!isNew(channel) && before !== null && own(before.values, channel) &&
          before.versions[channel] === versions[channel]) {
        values.set(channel, before.values[channel]);
      }
    }
    for (const channel of given) {
      const isUnchanged = own(versions, channel) && !isNew(channel);

      if (values.has(channel) || (isUnchanged && parent === undefined)) {
        continue;
      }
      values.set(channel, this.values.write(this.session, entries, {
        ...await serialise(channel),
        previous: before !== null && own(before.values, channel)
          ? before.values[channel] : undefined,
      }));
    }
    return values;
  }

  /** The changes of documents that make `text` the record, and in `entries` the
   * record itself unless there is such an entry. None when it is the record. */
  #recordDocuments(ns, id, text, parent, entries) {
    const { documents } = this.session;
    const key = 'c/' + checkpointKey(ns, id);
    const present = documents.get(key);
    const pointerKey = 'l/' + namespaceKey(ns);
    const pointer = documents.get(pointerKey);
    const changes = [];
    let entryId = recordId(ns, id);
    let existing = this.#textOf(entryId);

    if (existing !== null && existing !== text) {
      entryId += '/' + hexDigest(text).slice(0, 16);
      existing = this.#textOf(entryId);
    }
    if (existing === null) {
      entries.push({ id: entryId, type: TYPE, text, moveHead: ns === '',
        parentId: this.#parentEntry(ns, parent) });
    }
    if (present?.value.entry !== entryId) {
      changes.push({ key, value: { entry: entryId, ns, id } });
    }
    if (pointer === null || pointer.value.id < id) {
      changes.push({ key: pointerKey, value: { id },
        expect: pointer?.version ?? 0 });
    }
    return changes;
  }

  /** The text of an entry; '' of one that was redacted, null of none. */
  #textOf(id) {
    try {
      return this.session.entry(id)?.text ?? null;
    } catch (error) {
      if (error.code !== 'WAL_EREDACTED') {
        throw error;
      }
      return '';
    }
  }

  #parentEntry(ns, parent) {
    const document = parent === undefined
      ? null : this.session.documents.get('c/' + checkpointKey(ns, parent));

    return document?.value.entry ?? null;
  }

  /** Appends values that do not fit into one batch with the record. Nothing
   * refers to them until that is written; it follows them in the log, so that
   * it is not durable before they are. */
  async #flushValues(entries) {
    let size = 0;
    let start = 0;

    for (let i = 0; i < entries.length; i++) {
      size += entries[i].line?.length ?? 0;
      if (size > BATCH_BYTES && i > start) {
        await this.session.append(entries.slice(start, i),
          { durability: 'written' });
        size = entries[i].line?.length ?? 0;
        start = i;
      }
    }
    entries.splice(0, start);
  }

  /**
   * Puts the pending writes of a task for a checkpoint: [{ channel, index, type,
   * data }]. One with an index below zero replaces that of the same task and
   * index; of the others the first one that was put counts. Fails as
   * putCheckpoint.
   */
  async putWrites(ns, id, { writes, task, path }) {
    const prefix = `w/${checkpointKey(ns, id)}/${idPart(task, 100)}/`;
    const { documents } = this.session;
    const present = new Set(
      documents.list({ prefix, keys: true }).map(({ key }) => key));
    const entries = [];
    const changes = new Map();

    for (const { channel, index, type, data } of writes) {
      const key = prefix + index;

      if (index < 0 || !present.has(key)) {
        const value = this.values.write(this.session, entries,
          { type, data, inline: INLINE_WRITE });

        changes.set(key, { key, value: { task, index, channel, path, value },
          expect: index < 0 ? undefined : 0 });
      }
    }
    if (changes.size > 0) {
      await this.#flushValues(entries);
      await this.session.commit({ entries, documents: [...changes.values()] },
        this.options);
    }
  }
}

const own = (object, key) => Object.prototype.hasOwnProperty.call(object, key);

module.exports = { Thread };
