'use strict';
// Which session of a store has the transcript of a key.
//
// A key is {projectKey, sessionId, subpath}. The session's `source` identifies
// it: it names the file that Claude Code keeps the transcript in, as an import
// of that file does (docs/clients.md), so that a mirrored and an imported session
// are the same one:
//
//   claude 0 projects/PROJECTKEY/SESSIONID.jsonl
//   claude 0 projects/PROJECTKEY/SESSIONID/SUBPATH.jsonl
//
// The id is the session id, or a name derived from it; where another key has
// that id, a digest of the source follows it. Parts that cannot be part of a
// path are percent-encoded, long ones are a digest, and metadata has the text.

const { createHash } = require('node:crypto');

const ID_BYTES = 160; // of a session id that is the store's, so that a
                      // subpath has room after it
const ID_BYTES_MAX = 255;
const PART_BYTES = 1000; // of a project key or session id within a source
const SUBPATH_BYTES = 1500;
const PROJECT_BYTES = 1024;
const FOLDER_UNITS = 200; // of a folder of Claude Code, before its hash
const SUFFIX = '.jsonl';

const digest = (text) => createHash('sha256').update(text).digest('hex');
// Distinct for any two strings, also those with half a surrogate pair.
const digestOf = (text) => digest(JSON.stringify(text));
const size = (text) => Buffer.byteLength(text);
const hasLoneSurrogate = (text) => /\p{Surrogate}/u.test(text);
// eslint-disable-next-line no-control-regex
const hasControl = (text) => /[\0-\x1f\x7f]/.test(text);

/** Percent-encodes what a part of a path cannot have, injectively. */
function encodePart(text) {
  if (text === '') {
    return '%';
  }
  // eslint-disable-next-line no-control-regex
  return text.replace(/^\.+|[\0-\x1f\x7f%/\\]|\p{Surrogate}/gu, (found) => {
    const bytes = /\p{Surrogate}/u.test(found)
      ? surrogateBytes(found.charCodeAt(0))
      : [...Buffer.from(found)];
    return bytes.map((b) => `%${b.toString(16).toUpperCase().padStart(2, '0')}`)
      .join('');
  });
}

/** The three bytes that UTF-8 would give half a surrogate pair. */
function surrogateBytes(unit) {
  return [0xe0 | unit >> 12, 0x80 | unit >> 6 & 0x3f, 0x80 | unit & 0x3f];
}

/** The reverse of encodePart; what it did not make is returned unchanged. */
function decodePart(part) {
  if (part === '%') {
    return '';
  }
  if (/%(?![0-9A-F]{2})/.test(part)) {
    return part;
  }
  return part.replace(/(?:%[0-9A-F]{2})+/g, (run) => {
    const bytes = Buffer.from(run.replace(/%/g, ''), 'hex');
    if (bytes.length % 3 === 0 && bytes[0] === 0xed && bytes[1] >= 0xa0) {
      let text = '';
      for (let i = 0; i < bytes.length; i += 3) {
        text += String.fromCharCode(
          (bytes[i] & 15) << 12 | (bytes[i + 1] & 63) << 6 | bytes[i + 2] & 63);
      }
      return text;
    }
    return bytes.toString();
  });
}

const isDigestPart = (part) => part.startsWith('%~');

function shorten(encoded, text, limit) {
  return size(encoded) > limit ? `%~${digestOf(text)}` : encoded;
}

const keyPart = (text) => shorten(encodePart(text), text, PART_BYTES);

function subpathPart(subpath) {
  const encoded = subpath.split('/').map(encodePart).join('/');

  return shorten(encoded, subpath, SUBPATH_BYTES);
}

/** Escapes a path as the sources of imports are. */
// eslint-disable-next-line no-control-regex
const escapeSource = (path) => path.replace(/[%\0-\x1f\x7f]/g, (c) =>
  `%${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`);

const unescapeSource = (text) => text.replace(/%([0-9A-F]{2})/g, (_, hex) =>
  String.fromCharCode(parseInt(hex, 16)));

/** The folder that Claude Code keeps the sessions of a directory in. */
function folderOf(cwd) {
  const folder = cwd.replace(/[^A-Za-z0-9]/g, '-');
  let hash = 0;

  if (folder.length <= FOLDER_UNITS) {
    return folder;
  }
  for (let i = 0; i < cwd.length; i++) {
    hash = hash * 31 + cwd.charCodeAt(i) | 0;
  }
  return `${folder.slice(0, FOLDER_UNITS)}-${Math.abs(hash).toString(36)}`;
}

/** A project key as the text of a session's `project`. */
function projectText(projectKey) {
  return hasLoneSurrogate(projectKey) || size(projectKey) > PROJECT_BYTES
    ? `~${digestOf(projectKey)}`
    : projectKey;
}

function isUsableId(id, limit) {
  return id !== '' && id[0] !== '~' && size(id) <= limit && !hasControl(id) &&
    !hasLoneSurrogate(id);
}

/** The text as an id of the log, or a digest of it. */
const idOf = (text, limit = ID_BYTES_MAX) =>
  isUsableId(text, limit) ? text : `~${digestOf(text)}`;

function subIds(mainId, subpath) {
  const agent = /^subagents\/(?:.*\/)?(agent-[^/]+)$/s.exec(subpath);
  const ids = agent ? [`${mainId}~${agent[1]}`] : [];

  ids.push(`${mainId}/${subpath}`);
  return ids.filter((id) => isUsableId(id, ID_BYTES_MAX - 17))
    .concat(`${mainId}/~${digestOf(subpath)}`);
}

/** Where a transcript is in a store. */
class Key {
  constructor(key) {
    check(key);
    this.projectKey = key.projectKey;
    this.sessionId = key.sessionId;
    this.subpath = key.subpath;
    this.isMain = key.subpath === undefined;
    this.project = keyPart(key.projectKey);
    this.session = keyPart(key.sessionId);
    this.rest = this.isMain ? '' : subpathPart(key.subpath);
    const path = ['projects', this.project, this.session];
    this.source = `claude 0 ${escapeSource(
      (this.isMain ? path : [...path, this.rest]).join('/') + SUFFIX)}`;
    this.mainId = idOf(key.sessionId, ID_BYTES);
    const ids = this.isMain
      ? [this.mainId]
      : subIds(this.mainId, key.subpath);
    /** Ids that its session may have, the first one that is free. */
    this.ids = [...ids, `${ids[0]}@${digest(this.source).slice(0, 16)}`];
    /** The session of the main transcript, and its queue. */
    this.group = `${this.project}/${this.session}`;
  }

  /** The key as the SDK has it. */
  toSdk() {
    const { projectKey, sessionId, subpath } = this;
    return this.isMain ? { projectKey, sessionId } :
      { projectKey, sessionId, subpath };
  }

  /** Texts of which the source has a digest, for the session's metadata. */
  metadata() {
    const names = {};
    if (isDigestPart(this.session)) {
      names.sessionId = this.sessionId;
    }
    if (isDigestPart(this.rest)) {
      names.subpath = this.subpath;
    }
    return Object.keys(names).length > 0 ? { claude: names } : undefined;
  }

  /** Whether the session of this info is the one of the key. */
  matches(info) {
    const place = placeOf(info);
    return place !== null && place.session === this.session &&
      place.rest === this.rest && this.isProjectOf(info, place);
  }

  /** Whether it is the session of the key, or of a subpath of the main key. */
  contains(info) {
    const place = placeOf(info);
    return place !== null && place.session === this.session &&
      (this.isMain || place.rest === this.rest) && this.isProjectOf(info, place);
  }

  isProjectOf(info, place) {
    return isProject(info, place, this.projectKey, this.project);
  }
}

/** Whether a project key is that of a session at a place. */
function isProject(info, place, projectKey, project = keyPart(projectKey)) {
  return place.project !== null
    ? place.project === project
    : info.project === projectText(projectKey) ||
      info.project === '' && info.cwd !== '' && folderOf(info.cwd) === projectKey;
}

/** The encoded parts of a session's key, or null when Claude Code did not
 * write it. `project` is null where the source does not name one: in a fork,
 * and for an import of one file. */
function placeOf(info) {
  if (info.source === '') {
    return info.isFork
      ? { project: null, session: keyPart(info.id), rest: '' }
      : null;
  }
  const found = /^claude \d+ (.+)$/s.exec(info.source);
  const path = found && unescapeSource(found[1]);
  if (!path || !path.endsWith(SUFFIX)) {
    return null;
  }
  const parts = belowProjects(path.slice(0, -SUFFIX.length).split('/'));
  return parts.length === 1
    ? { project: null, session: parts[0], rest: '' }
    : { project: parts[0], session: parts[1], rest: parts.slice(2).join('/') };
}

function belowProjects(parts) {
  if (parts[0] === 'projects' && parts.length > 2) {
    return parts.slice(1);
  }
  const at = parts.indexOf('subagents');
  return at >= 2 ? parts.slice(at - 2) : parts.slice(-2);
}

function check(key) {
  if (key === null || typeof key !== 'object') {
    throw new TypeError('the key is not an object');
  }
  if (typeof key.projectKey !== 'string') {
    throw new TypeError('projectKey is not a string');
  }
  if (typeof key.sessionId !== 'string' || key.sessionId === '') {
    throw new TypeError('sessionId is not a string with characters');
  }
  if (key.subpath !== undefined &&
      (typeof key.subpath !== 'string' || key.subpath === '')) {
    throw new TypeError('subpath is neither undefined nor a string with ' +
      'characters');
  }
}

module.exports = {
  Key, decodePart, folderOf, idOf, isDigestPart, isProject, placeOf, projectText,
};
