'use strict';

// One worker of a loaded service: every request computes a little, answers with JSON, and records in seven
// metrics, each time in other series, so nearly all series change between two scrapes.

const http = require('node:http');
const { isControl } = require('../cluster/control-messages.js');
const { loadClient } = require('../shared/clients.js');
const { Workload } = require('../shared/workload.js');
const { BARE } = require('./runs.js');

/** @type {import('../cluster/tree.js').TreeSettings & {seed: number}} */
const settings = JSON.parse(process.argv[2]);
const { library, workload } = settings.client === BARE ? {} : recorded();

const commands = {
  async ready() {
    const server = http.createServer(handleRequest);
    await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
    return { port: server.address().port };
  },

  totals: () => workload.totals(),

  exposition: async () => Buffer.byteLength(await library.register.metrics()),

  stop: () => process.exit(0),
};

process.on('message', async message => {
  if (!isControl(message)) return;
  const answer = await commands[message.bench]();
  process.send({ bench: message.bench, id: message.id, answer });
});

function recorded() {
  const client = loadClient(settings.client);
  return { library: client.library, workload: new Workload(client.library, settings) };
}

function handleRequest(request, response) {
  const values = Array.from({ length: 50 }, (_, index) => index * 1.5);
  response.setHeader('Content-Type', 'application/json');
  response.end(JSON.stringify({ path: request.url, values }));
  workload?.recordRequest();
}
