'use strict';

// What the figures of the article's benchmark rest on: its paced clients, in simulated time, and the ratio of
// two runs. benchmark-article-run.alone.test.js tests a whole run.

const assert = require('node:assert/strict');
const { EventEmitter } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it } = require('node:test');
const { compare } = require('../../benchmarks/article/comparison.js');
const { withHeadline } = require('../../benchmarks/article/headline.js');
const { PacedClients } = require('../../benchmarks/article/paced-clients.js');
const { segmentOf } = require('../../benchmarks/article/segment.js');
const { simulateTime } = require('./fixtures/simulated-time.js');

const REUSED_CONNECTIONS = 64;
const KINDS = [
  { reused: false, name: 'new connections', clients: 200 },
  { reused: true, name: 'reused connections', clients: REUSED_CONNECTIONS },
];

/** What PacedClients uses of autocannon's client; a connection opens at once. */
class SimulatedClient extends EventEmitter {
  conn = { bytesRead: 0 };
  isDestroyed = false;
  #serve;
  #answer;

  /** @param {(respond: (status: number, wait: number) => void, breakConnection: () => void) => void} serve */
  constructor(serve) {
    super();
    this.#serve = serve;
  }

  _connect() {
    this._doRequest();
  }

  _doRequest() {
    const respond = (statusCode, wait) => {
      this.#answer = setTimeout(() => {
        this.emit('headers', { statusCode });
        this._resetConnection();
      }, wait);
    };
    this.#serve(respond, () => setTimeout(() => this._connect(), 1));
  }

  /** Runs after each response; without `reconnectRate` autocannon sends the next request here. */
  _resetConnection() {
    this._doRequest();
  }

  _destroyConnection() {
    clearTimeout(this.#answer);
  }

  destroy() {
    this.isDestroyed = true;
  }
}

/**
 * Runs a load in simulated time against a simulated server.
 *
 * @param {import('node:test').TestContext} t
 * @param {object} pace of PacedClients
 * @param {(request: number, respond: (status: number, wait: number) => void, breakConnection: () => void) =>
 *   void} serve called with the number of each request from 1, without those that open reused connections
 * @returns {{paced: PacedClients, arrivals: number[]}} with the times at which requests were sent, ms from
 *   the first
 */
function simulateLoad(t, pace, serve) {
  const time = simulateTime(t);
  const arrivals = [];
  let opening = pace.reused ? pace.clients : 0;
  const paced = new PacedClients(pace, () => {});
  const clients = Array.from({ length: pace.clients }, () => {
    const client = new SimulatedClient((respond, breakConnection) => {
      if (opening > 0) {
        opening -= 1;
        respond(200, 1);
        return;
      }
      arrivals.push(time.now());
      serve(arrivals.length, respond, breakConnection);
    });
    paced.setup(client);
    client._connect();
    return client;
  });
  time.passUntil(() => clients.every(({ isDestroyed }) => isDestroyed));
  paced.end();
  return { paced, arrivals: arrivals.map(at => at - arrivals[0]) };
}

describe('paced clients', () => {
  for (const { reused, name, clients } of KINDS) {
    it(`requests are sent at an even pace (${name})`, t => {
      const { paced, arrivals } = simulateLoad(t, { rate: 200, seconds: 2, reused, clients }, (_, respond) =>
        respond(200, 3),
      );
      assert.deepEqual(
        arrivals,
        Array.from({ length: 400 }, (_unused, request) => request * 5),
      );
      assert.deepEqual([paced.latencies.length, paced.failed], [400, 0]);
      for (const latency of paced.latencies) assert.ok(latency === 3 || latency === 4, `${latency}`);
    });

    it(`latencies run from the time a request was due, even while the server stalls (${name})`, t => {
      let stallsUntil = 0;
      const { paced } = simulateLoad(t, { rate: 200, seconds: 2, reused, clients }, (request, respond) => {
        if (request === 100) stallsUntil = performance.now() + 600;
        respond(200, Math.max(1, stallsUntil - performance.now()));
      });
      assert.deepEqual([paced.latencies.length, paced.failed], [400, 0]);
      // 120 requests are due in the 600 ms of the stall. Reused connections cannot send all of them
      // meanwhile, but the latency of each includes its wait.
      const longest = paced.latencies.toSorted((a, b) => b - a).slice(0, 119);
      longest.forEach((latency, place) => {
        const expected = 600 - place * 5;
        assert.ok(Math.abs(latency - expected) <= 2, `${latency}, not ${expected}`);
      });
    });

    it(`requests answered late, with an error or never have failed (${name})`, t => {
      const pace = { rate: 100, seconds: 1, reused, clients: Math.min(clients, 100), patience: 400 };
      const { paced } = simulateLoad(t, pace, (request, respond, breakConnection) => {
        if (request === 20) breakConnection();
        else if (request === 40) respond(200, 450);
        else if (request !== 30) respond(request === 10 ? 500 : 200, 1);
      });
      assert.deepEqual([paced.latencies.length, paced.failed], [96, 4]);
    });
  }
});

describe('a comparison', () => {
  it('a comparison is the median of the ratios within repetitions, not the ratio of medians', () => {
    // A disturbance that comes and goes: both sides of a repetition are slower by it.
    const pairs = [
      [1, 10],
      [100, 1000],
      [3, 27],
    ];
    const segments = pairs.flatMap(([plain, scraped], repetition) => [
      { repetition, run: 'stock', figures: { p99: plain } },
      { repetition, run: 'stock-scraped', figures: { p99: scraped } },
    ]);
    const { median } = compare({ segments }, { of: 'stock-scraped', by: ['stock'] }, 'p99');
    assert.equal(median.toFixed(6), '10.000000');
  });

  it('a request that failed counts as 10 seconds', () => {
    const latencies = Array.from({ length: 98 }, (_, index) => index + 1);
    const scrapes = { milliseconds: [], failures: [] };
    const { figures } = segmentOf({ repetition: 0, run: 'stock' }, { latencies, failed: 2 }, scrapes, null);
    assert.deepEqual(figures, { p50: 50, p99: 10_000, p995: 10_000, p999: 10_000, max: 10_000 });
  });
});

describe('the table at the top of README.md', () => {
  const read = file => fs.readFileSync(path.join(__dirname, '../..', file), 'utf8');
  const medians = JSON.parse(read('benchmarks/pictures/article.json'));

  it('README.md has the numbers of the stored results, with the conditions of their measurement', () => {
    const text = read('README.md');
    assert.equal(withHeadline(text, medians), text);
  });

  it('a result without one of the rounds at the top leaves README.md alone', () => {
    const rounds = medians.rounds.filter(({ key }) => key !== 'large-new');
    assert.equal(withHeadline('no marks', { ...medians, rounds }), 'no marks');
  });
});
