'use strict';

// The load generator, in its own process so that nothing else delays its clock. Forked with an IPC channel.
// On `start`, a number of clients send requests one after the other, each over a keep-alive connection. On
// `stop`, they wait for their last answer, and the totals are reported. With a rate, a client waits for its
// turn between two requests.

const { setMaxListeners } = require('node:events');
const http = require('node:http');
const { setTimeout: wait } = require('node:timers/promises');
const { requestPaths } = require('./tasks');

const TIMEOUT_MS = 60_000;

let stop = new AbortController();

process.on('disconnect', () => process.exit(0));
process.on('message', message => {
  if (message.type === 'start') runLoad(message);
  if (message.type === 'stop') stop.abort();
});

async function runLoad({ url, clients, rate }) {
  stop = new AbortController();
  const { signal } = stop;
  setMaxListeners(clients, signal);
  const totals = { sent: 0, answered: 0, failed: 0 };
  const agent = new http.Agent({ keepAlive: true });
  const begin = performance.now();
  const paths = requestPaths();
  let next = 0;
  const runs = Array.from({ length: clients }, async (_, position) => {
    let turn = position;
    while (!signal.aborted) {
      // The clients take turns, round robin; a client that is late sends at once.
      if (rate && !(await turnComes(begin + (turn * 1000) / rate, signal))) return;
      totals.sent++;
      // One sequence for all clients: otherwise a client that waits for a heavy task would send fewer of
      // these.
      const answered = await isAnswered(`${url}${paths[next++ % paths.length]}`, agent);
      totals[answered ? 'answered' : 'failed']++;
      turn += clients;
    }
  });
  await Promise.all(runs);
  agent.destroy();
  process.send({ type: 'stopped', totals });
}

/** Waits for a time; resolves with false if the load was stopped before. */
function turnComes(time, signal) {
  return wait(Math.max(0, time - performance.now()), true, { signal }).catch(() => false);
}

/** Whether a request got a complete answer with status 200. */
function isAnswered(url, agent) {
  return new Promise(resolve => {
    const request = http.get(url, { agent, timeout: TIMEOUT_MS }, response => {
      response.resume();
      response.on('close', () => resolve(response.complete && response.statusCode === 200));
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve(false));
  });
}
