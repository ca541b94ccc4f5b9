'use strict';

// The load generator, in a process of its own: autocannon, with clients that take turns.

const autocannon = require('autocannon');
const { PacedClients } = require('./paced-clients.js');

const REUSED_CONNECTIONS = 64;
const MOST_CLIENTS = 1024; // with a connection per request; with more, the generator itself stalls
const CLIENTS_TO_SATURATE = 64;
const LOOK_FOR_THE_END_EVERY = 50; // ms
const NEVER = 3600; // seconds; a request times out by its turn instead of by when it was sent

/**
 * @typedef {object} Load
 * @property {number} port
 * @property {number} seconds
 * @property {number} [rate] requests a second; without it as many as the service answers, to find saturation
 * @property {boolean} reused whether connections are reused, see paced-clients.js
 * @property {number} [patience] ms after which a request has failed, instead of 10,000
 */

/**
 * @typedef {object} LoadResult
 * @property {number[]} latencies of the requests that were answered, ms
 * @property {number} failed requests that were not, or not in time
 * @property {number} perSecond answered
 */

process.on('disconnect', () => process.exit(0));
process.on('message', async ({ id, settings }) => {
  try {
    process.send({ id, answer: await generate(settings, () => process.send({ id, hasBegun: true })) });
  } catch (error) {
    process.send({ id, error: String(error?.message ?? error) });
  }
});

/**
 * @param {Load} load
 * @param {() => void} onBegin
 * @returns {Promise<LoadResult>}
 */
async function generate({ port, seconds, rate, reused, patience }, onBegin) {
  const clients = rate ? clientsFor({ rate, seconds, reused }) : CLIENTS_TO_SATURATE;
  const paced = new PacedClients({ rate, seconds, clients, reused, patience }, onBegin);
  await autocannon({
    url: `http://127.0.0.1:${port}/api/v1/resources/1`,
    connections: clients,
    reconnectRate: reused ? undefined : 1,
    duration: NEVER,
    timeout: NEVER,
    sampleInt: LOOK_FOR_THE_END_EVERY,
    setupClient: paced.setup,
  });
  paced.end();
  const { latencies, failed, elapsed } = paced;
  if (rate && latencies.length + failed !== paced.turns) {
    throw new Error(`${latencies.length + failed} of ${paced.turns} requests were counted`);
  }
  return { latencies, failed, perSecond: latencies.length / elapsed };
}

/** With a connection per request, a client sends about one request a second: many can be pending at once. */
function clientsFor({ rate, seconds, reused }) {
  const most = reused ? REUSED_CONNECTIONS : Math.min(rate, MOST_CLIENTS);
  return Math.max(1, Math.min(most, Math.round(rate * seconds)));
}
