'use strict';

const { toJsonObject } = require('../base/json.js');
const { toOptions, toTime } = require('../base/options.js');

// id, cwd, project, title, parentId, source, metadata, schemaVersion, created
function sessionArguments(options) {
  const given = toOptions(options);
  return [given.id, given.cwd, given.project, given.title, given.parentId,
    given.source, toJsonObject(given.metadata, 'the metadata'), given.schemaVersion,
    toTime(given.created, 'created')];
}

module.exports = { sessionArguments };
