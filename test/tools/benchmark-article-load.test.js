'use strict';

// The load of the article's benchmark: its paced clients in simulated time, the load generator against a real
// server, and the measurement of what other programs use of the processors.

const assert = require('node:assert/strict');
const { EventEmitter } = require('node:events');
const fs = require('node:fs');
const http = require('node:http');
const os = require('node:os');
const path = require('node:path');
const { describe, it, before, after } = require('node:test');
const { MeasuringProcess } = require('../../benchmarks/article/measuring-process.js');
const { OtherPrograms } = require('../../benchmarks/article/other-programs.js');
const { PacedClients } = require('../../benchmarks/article/paced-clients.js');
const { simulateTime } = require('./fixtures/simulated-time.js');

const LOAD = path.join(__dirname, '../../benchmarks/article/load.js');
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

  it('clients without a rate send their next request after each response', t => {
    const pace = { seconds: 1, reused: true, clients: REUSED_CONNECTIONS };
    const { paced, arrivals } = simulateLoad(t, pace, (_, respond) => respond(200, 100));
    // Ten times a second each.
    assert.deepEqual([paced.latencies.length, arrivals.length], [640, 640]);
    assert.ok(paced.latencies.every(latency => latency === 100));
    assert.equal(paced.latencies.length / paced.elapsed, 640);
  });
});

describe('the load generator', () => {
  let generator;
  let server;
  let connections = 0;
  let requests = 0;
  /** What the server does with a request. */
  let answer;

  before(async () => {
    generator = new MeasuringProcess(LOAD);
    server = http.createServer((request, response) => {
      requests += 1;
      answer(response);
    });
    // A connection that waits for its turn on a busy machine must not be closed.
    server.keepAliveTimeout = 0;
    server.on('connection', () => (connections += 1));
    await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  });

  after(() => {
    generator.stop();
    server.closeAllConnections();
    server.close();
  });

  function run(load) {
    connections = 0;
    requests = 0;
    return generator.call('load', { port: server.address().port, patience: 120_000, ...load });
  }

  it('new connections: each request has its own', async () => {
    answer = response => response.end('ok');
    const { latencies, failed } = await run({ rate: 200, seconds: 0.5, reused: false });
    assert.deepEqual([latencies.length, failed, connections, requests], [100, 0, 100, 100]);
  });

  it('reused connections: the requests that open them are not counted', async () => {
    answer = response => response.end('ok');
    const { latencies, failed } = await run({ rate: 200, seconds: 0.5, reused: true });
    assert.deepEqual([latencies.length, failed, connections, requests], [100, 0, 64, 164]);
  });

  for (const { reused, name } of KINDS) {
    it(`errors and broken connections have failed (${name})`, async () => {
      answer = response => {
        const counted = requests - (reused ? REUSED_CONNECTIONS : 0);
        if (counted === 10) response.statusCode = 500;
        if (counted === 20) response.destroy();
        else response.end('ok');
      };
      const { latencies, failed } = await run({ rate: 200, seconds: 0.5, reused });
      assert.deepEqual([latencies.length, failed], [98, 2]);
    });
  }

  it('a load without a rate reports how many requests were answered per second', async () => {
    answer = response => response.end('ok');
    const { latencies, perSecond } = await run({ seconds: 0.2, reused: true });
    assert.equal(latencies.length, requests - REUSED_CONNECTIONS);
    assert.ok(perSecond > 0 && perSecond <= latencies.length / 0.2, `${perSecond}`);
  });
});

describe('OtherPrograms', () => {
  const OWN = String(process.pid);
  const proc = fs.mkdtempSync(path.join(os.tmpdir(), 'article-proc-'));
  after(() => fs.rmSync(proc, { recursive: true }));

  /** Writes what /proc has: ticks of a hundredth of a second. */
  function setTicks({ all, processes }) {
    const idle = 99_999;
    fs.writeFileSync(path.join(proc, 'stat'), `cpu  ${all} 0 0 ${idle} 0 0 0 0 0 0\ncpu0 1 2 3\n`);
    for (const [pid, { group, user, system }] of Object.entries(processes)) {
      const fields = [pid, '(a (name) of it)', 'R', 1, group, ...Array(8).fill(0), user, system];
      fs.mkdirSync(path.join(proc, pid), { recursive: true });
      fs.writeFileSync(path.join(proc, pid, 'stat'), `${fields.join(' ')} 0 0\n`);
    }
  }

  it('processors() is the CPU time of all processes outside the given groups and its own, per second', () => {
    let now = 5000;
    setTicks({
      all: 1000,
      processes: {
        [OWN]: { group: 7, user: 10, system: 10 },
        11111: { group: 8, user: 100, system: 0 },
        22222: { group: 9, user: 50, system: 50 },
      },
    });
    const options = { proc, now: () => now };
    const [withIt, withoutIt] = [new OtherPrograms([], options), new OtherPrograms([8], options)];
    now += 2000;
    // Of 300 ticks, 20 are its own, 130 of group 8 and 50 of group 9; the others are of processes that have
    // ended.
    setTicks({
      all: 1300,
      processes: {
        [OWN]: { group: 7, user: 20, system: 20 },
        11111: { group: 8, user: 200, system: 30 },
        22222: { group: 9, user: 100, system: 50 },
      },
    });
    assert.equal(withIt.processors(), 1.4);
    assert.equal(withoutIt.processors(), 0.75);
  });

  it('processors() is null if there is no /proc', () => {
    assert.equal(new OtherPrograms([], { proc: path.join(proc, 'missing') }).processors(), null);
  });
});
