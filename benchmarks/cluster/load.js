'use strict';

// A load generator in a process of its own: a new connection for each request, and either a number of
// requests always pending (to find saturation) or a fixed rate, regardless of response times.

const net = require('node:net');
const { quantile } = require('../shared/statistics.js');

const REQUEST = 'GET /api/v1/resources/1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
const ANSWER = 'HTTP/1.1 200';
const PATIENCE = 10_000; // for requests that are pending at the end

/**
 * @typedef {object} Load
 * @property {number} port
 * @property {number} seconds
 * @property {number} [rate] requests a second; else:
 * @property {number} [connections] always under way
 */

/**
 * @typedef {object} LoadResult latencies in milliseconds from connecting to the last byte
 * @property {number} requests answered
 * @property {number} errors
 * @property {number} perSecond
 * @property {number} p50
 * @property {number} p99
 * @property {number} longest
 */

process.on('message', async ({ id, load }) => process.send({ id, result: await generate(load) }));
process.on('disconnect', () => process.exit(0));

/**
 * @param {Load} load
 * @returns {Promise<LoadResult>}
 */
async function generate(load) {
  const outcome = { latencies: [], errors: 0 };
  const began = performance.now();
  await (load.rate ? atRate(load, outcome) : alwaysUnderWay(load, outcome));
  const seconds = (performance.now() - began) / 1e3;
  const { latencies, errors } = outcome;
  const [p50, p99, longest] = [0.5, 0.99, 1].map(share => quantile(latencies, share));
  return { requests: latencies.length, errors, perSecond: latencies.length / seconds, p50, p99, longest };
}

function alwaysUnderWay({ port, seconds, connections }, outcome) {
  const until = performance.now() + seconds * 1e3;
  const chain = async () => {
    while (performance.now() < until) await request(port, outcome);
  };
  return Promise.all(Array.from({ length: connections }, chain));
}

/** Starts the due requests each millisecond; a late response delays no later request. */
async function atRate({ port, seconds, rate }, outcome) {
  const began = performance.now();
  const underWay = new Set();
  let started = 0;
  await new Promise(resolve => {
    const timer = setInterval(() => {
      const elapsed = Math.min((performance.now() - began) / 1e3, seconds);
      for (; started < elapsed * rate; started++) {
        const one = request(port, outcome).then(() => underWay.delete(one));
        underWay.add(one);
      }
      if (elapsed === seconds) {
        clearInterval(timer);
        resolve();
      }
    }, 1);
  });
  await Promise.all(underWay);
}

/** One request; always settles. */
function request(port, outcome) {
  return new Promise(resolve => {
    const began = performance.now();
    const socket = net.connect({ port, host: '127.0.0.1', noDelay: true });
    let answered = false;
    socket.setTimeout(PATIENCE, () => socket.destroy());
    socket.once('data', chunk => (answered = chunk.toString('latin1').startsWith(ANSWER)));
    socket.on('error', () => {}); // 'close' follows
    socket.once('close', () => {
      if (answered) outcome.latencies.push(performance.now() - began);
      else outcome.errors += 1;
      resolve();
    });
    socket.write(REQUEST);
  });
}
