'use strict';

// The load generator, a process of its own so that nothing else delays its clock, and one for all loads so that it is
// warm when it counts. Forked with an IPC channel: it is told what to run, and reports every latency, then the totals.

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
  // Two requests per second and client: one that waits for an answer holds up none of the others.
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
