'use strict';

// The face for require(): of the checkpoint package, it extends the class that
// require() gives.

const peer = require('@langchain/langgraph-checkpoint');

const { Store } = require('../index.js');
const { defineSaver } = require('./checkpointer.js');

module.exports = { AgentwalSaver: defineSaver(peer, Store) };
