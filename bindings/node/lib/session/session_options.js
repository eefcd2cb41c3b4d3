'use strict';

const { toJsonObject } = require('../base/json.js');

// id, cwd, project, title, parentId, source, metadata, schemaVersion, created
function sessionArguments(options) {
  return [options.id, options.cwd, options.project, options.title, options.parentId,
    options.source, toJsonObject(options.metadata, 'the metadata'), options.schemaVersion,
    options.created === undefined ? undefined : Number(options.created)];
}

module.exports = { sessionArguments };
