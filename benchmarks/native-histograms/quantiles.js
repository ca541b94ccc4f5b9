'use strict';

// The picture of docs/native-histograms.md: node benchmarks/native-histograms/quantiles.js, half a minute.
//
// A server answers requests, most of them at once, some after a query, a few after a slow one. How long the
// client waits for each is recorded in a classic histogram with its default buckets, in a native one, and in
// a list. The picture shows the quantiles of all three.

const { once } = require('node:events');
const http = require('node:http');
const path = require('node:path');
const { setTimeout: delay } = require('node:timers/promises');
const { Histogram, Registry } = require('../..');
const { documentNumbers } = require('../pictures/stored.js');
const { describeMachine } = require('../shared/machine.js');
const { randomFrom } = require('../shared/random.js');

const REQUESTS = 20_000;
const AT_A_TIME = 30;
const STEPS = 120;
const NINES = 3; // up to P99.9
const DIGITS = 4;

const random = randomFrom(1);
const options = { help: 'Duration of requests', registers: [new Registry()] };
const classic = new Histogram({ name: 'classic_seconds', ...options });
const native = new Histogram({
  name: 'native_seconds',
  nativeHistogramBucketFactor: 1.1,
  buckets: [],
  ...options,
});
/** @type {number[]} */
const durations = [];

/** Milliseconds for which a request waits: a cache hit, a query, or a query without an index. */
function waitingTime() {
  const share = random();
  if (share < 0.6) return 0;
  return share < 0.95 ? 18 + 22 * random() ** 2 : 280 + 500 * random() ** 3;
}

async function answer(request, response) {
  const wait = waitingTime();
  if (wait > 0) await delay(wait);
  response.end('Hello\n');
}

/** As Prometheus does it: linear within a bucket. */
async function classicQuantiles() {
  const { values } = await classic.get();
  const buckets = values.flatMap(({ labels: { le }, value }) =>
    le === undefined ? [] : [{ bound: le === '+Inf' ? Infinity : le, count: value }],
  );
  return share => {
    const rank = share * buckets.at(-1).count;
    const place = buckets.findIndex(({ count }) => count >= rank);
    const below = buckets[place - 1] ?? { bound: 0, count: 0 };
    const { bound, count } = buckets[place];
    if (bound === Infinity) return below.bound;
    return below.bound + ((bound - below.bound) * (rank - below.count)) / (count - below.count);
  };
}

async function load(port) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: AT_A_TIME });
  let started = 0;
  const chain = async () => {
    while (started++ < REQUESTS) {
      const began = performance.now();
      const [response] = await once(http.get({ port, host: '127.0.0.1', agent }), 'response');
      response.resume();
      await once(response, 'end');
      const seconds = (performance.now() - began) / 1000;
      durations.push(seconds);
      classic.observe(seconds);
      native.observe(seconds);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, chain));
  agent.destroy();
}

async function main() {
  const server = http.createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  await load(server.address().port);
  server.close();
  durations.sort((one, other) => one - other);
  const classicQuantile = await classicQuantiles();
  const rounded = number => Number(number.toPrecision(DIGITS));
  const quantiles = Array.from({ length: STEPS + 1 }, (_, step) => {
    const nines = (NINES * step) / STEPS;
    const share = 1 - 10 ** -nines;
    return {
      nines: rounded(nines),
      truth: rounded(durations[Math.min(Math.floor(share * REQUESTS), REQUESTS - 1)]),
      classic: rounded(classicQuantile(share)),
      native: rounded(native.quantile(share)),
    };
  }).slice(1);
  const numbers = { date: new Date().toISOString().slice(0, 10), machine: describeMachine(), quantiles };
  for (const file of await documentNumbers('quantiles', numbers)) {
    console.log(`Written to ${path.relative(process.cwd(), file)}`);
  }
}

void main();
