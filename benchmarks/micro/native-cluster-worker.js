'use strict';

// A worker of native-cluster.js: node native-cluster-worker.js CLIENT SERIES NUMBER

const { loadClient } = require('../shared/clients.js');
const { labelSet } = require('../shared/label-sets.js');
const { randomFrom } = require('../shared/random.js');
const { fillHistogram, histogramOf } = require('./native-workload.js');

const OBSERVATIONS = 20;

const [client, series, number] = process.argv.slice(2);
const { library } = loadClient(client);
const random = randomFrom(Number(number));
const histogram = histogramOf({ client, library });
fillHistogram(histogram, { series: Number(series), observations: OBSERVATIONS });

process.on('message', message => {
  if (!('round' in message)) return;
  for (let i = message.round % 10; i < Number(series); i += 10) histogram.observe(labelSet(i), random());
  process.send({ changed: message.round });
});
process.send({ changed: 0 });
