'use strict';

// The load generator, in its own process so that nothing else delays its clock. One process runs all loads,
// so it is warm when latencies count. Forked with an IPC channel: it receives a load to run, and reports
// every latency, then totals.

const autocannon = require('autocannon');
const { pacedClients } = require('./paced-client');
const { REQUESTS } = require('./traffic');

const REPORT_EVERY_MS = 200;
const TIMEOUT_SECONDS = 10;

process.on('disconnect', () => process.exit(0));
process.on('message', message => {
  if (message.type === 'run') runLoad(message);
});

async function runLoad({ url, rate, amount }) {
  let sent = 0;
  let latencies = [];
  const reportProgress = () => {
    process.send({ type: 'progress', latencies });
    latencies = [];
  };
  // Two requests per second and client: a client that waits for an answer does not delay the others.
  const clients = Math.max(1, Math.min(amount, Math.round(rate / 2)));
  const timer = setInterval(reportProgress, REPORT_EVERY_MS);
  const { requests, errors, timeouts } = await autocannon({
    url,
    amount,
    connections: clients,
    reconnectRate: 1,
    requests: REQUESTS,
    timeout: TIMEOUT_SECONDS,
    sampleInt: REPORT_EVERY_MS,
    setupClient: pacedClients({
      rate,
      clients,
      requests: REQUESTS,
      onAnswer: latency => latencies.push(latency),
      onSend: () => sent++,
    }),
  });
  clearInterval(timer);
  reportProgress();
  process.send({ type: 'done', totals: { sent, answered: requests.total, errors, timeouts } });
}
