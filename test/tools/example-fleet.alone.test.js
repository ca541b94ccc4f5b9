'use strict';

// The application of example/kubernetes as plain processes: one box, then eight with four workers each, found
// by Prometheus through a file, as docs/scaling.md describes it. Under load, with one box replaced, the
// totals over all boxes are what the clients counted.

const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');
const { after, before, describe, it } = require('node:test');
const { Program, get } = require('../fixtures/program');
const { PrometheusServer, missingPrograms } = require('../fixtures/prometheus-server');

const EXAMPLE = path.join(__dirname, '../../example/kubernetes');
const BOXES = 8;
const WORKERS = 4;
const CLIENTS_PER_BOX = 2;
const PAUSE_MS = 100; // between two requests of a client
const PATHS = ['/orders', '/orders', '/', '/nowhere'];
// A scrape may take as long as the interval. Forty processes on two cores can take a second to answer.
const SCRAPE_INTERVAL = '3s';
const REQUESTS_TO_ONE_BOX = 100;
const WITHIN_MS = 300_000; // so long that a busy machine does not matter

const required = process.env.REQUIRE_ALL === '1';
const skip = !required && missingPrograms(['prometheus']);

/** One box, with the clients that the load balancer sends to it. */
class Box {
  #program;
  #clients = [];
  #isServing = true;
  /** @type {Map<string, number>} answers by route and status, as the clients saw them */
  answers = new Map();

  /** @param {string} directory for its snapshots */
  constructor(directory) {
    this.#program = new Program([path.join(EXAMPLE, 'app.js')], {
      env: {
        PORT: '0',
        METRICS_PORT: '0',
        WORKERS: String(WORKERS),
        DRAIN_DELAY: '1000',
        LAST_SCRAPES: '1',
        PROM_CLIENT_CLUSTER_DIRECTORY: directory,
        PROM_CLIENT_CLUSTER_CHECKPOINT_INTERVAL: '1000',
      },
    });
  }

  /** Waits until all workers listen. */
  async ready() {
    const [, metrics] = await this.#program.line(/^metrics at http:\/\/(.*)\/metrics$/);
    const [, url] = await this.#program.line(/^worker \d+ at (.*)\/$/, WORKERS);
    this.target = metrics;
    this.url = url;
  }

  /** @param {string} pathname */
  async request(pathname) {
    const { status } = await get(this.url + pathname);
    const route = pathname === '/nowhere' ? 'none' : pathname;
    const key = `${route} ${status}`;
    this.answers.set(key, (this.answers.get(key) ?? 0) + 1);
  }

  startClients() {
    this.#clients = Array.from({ length: CLIENTS_PER_BOX }, async () => {
      for (let i = 0; this.#isServing; i++) {
        await this.request(PATHS[i % PATHS.length]);
        await sleep(PAUSE_MS);
      }
    });
  }

  /** The load balancer sends it nothing more. Rejects if a request failed. */
  async leaveService() {
    this.#isServing = false;
    await Promise.all(this.#clients);
  }

  /** @returns {Promise<number | string>} the exit code, when it has ended by itself */
  async terminate() {
    this.#program.signal('SIGTERM');
    return this.#program.ended();
  }

  async stop() {
    this.#isServing = false;
    await Promise.allSettled(this.#clients);
    this.#program.signal('SIGKILL');
    await this.#program.ended();
  }
}

describe('the application of example/kubernetes', { skip }, () => {
  let directory;
  let prometheus;
  /** @type {Box[]} all that there ever were */
  const boxes = [];
  /** @type {Box[]} those that run */
  let running = [];

  before(async () => {
    assert.strictEqual(missingPrograms(['prometheus']), undefined);
    directory = fs.mkdtempSync(path.join(os.tmpdir(), 'fleet-'));
    fs.mkdirSync(path.join(directory, 'snapshots'));
    const configuration = fs
      .readFileSync(path.join(EXAMPLE, 'files/prometheus.yml'), 'utf8')
      .replaceAll('15s', SCRAPE_INTERVAL)
      .replace('../rules.yml', path.join(EXAMPLE, 'rules.yml'));
    fs.writeFileSync(path.join(directory, 'prometheus.yml'), configuration);
    await startBox();
    writeTargets();
    prometheus = await PrometheusServer.startConfigured(path.join(directory, 'prometheus.yml'));
  });

  after(async () => {
    await Promise.all(boxes.map(box => box.stop()));
    await prometheus?.stop();
    fs.rmSync(directory, { recursive: true, force: true });
  });

  async function startBox() {
    const box = new Box(path.join(directory, 'snapshots'));
    boxes.push(box);
    await box.ready();
    running.push(box);
    return box;
  }

  /** What a deployment does in place of Kubernetes: the list of the addresses to scrape. */
  function writeTargets() {
    const targets = running.map(box => box.target);
    const file = path.join(directory, 'targets.json');
    fs.writeFileSync(`${file}.new`, JSON.stringify([{ targets }]));
    fs.renameSync(`${file}.new`, file);
  }

  /** All answers that the clients of some boxes saw, by route and status. */
  function answersOf(some) {
    const sums = new Map();
    for (const { answers } of some) {
      for (const [key, count] of answers) sums.set(key, (sums.get(key) ?? 0) + count);
    }
    return sums;
  }

  const totalOf = answers => [...answers.values()].reduce((sum, count) => sum + count, 0);

  /** The last value of each series that there ever was, also of those whose box has ended. */
  const totals = (selector = '') => `max_over_time(http_requests_total{${selector}}[1h])`;

  it('one box: Prometheus has each request', async () => {
    const [box] = boxes;
    for (let i = 0; i < REQUESTS_TO_ONE_BOX; i++) await box.request(PATHS[i % PATHS.length]);
    await prometheus.numberWhen('sum(http_requests_total)', n => n === REQUESTS_TO_ONE_BOX, WITHIN_MS);
    assert.strictEqual(await prometheus.number('count(up)'), 1);
  });

  it('eight boxes: the same program and configuration; Prometheus finds them in the file', async () => {
    while (running.length < BOXES) await startBox();
    for (const box of running) box.startClients();
    writeTargets();
    await prometheus.numberWhen('sum(up)', count => count === BOXES, WITHIN_MS);
    assert.strictEqual(
      await prometheus.numberWhen(
        'sum(prom_client_cluster_workers{state="fresh"})',
        count => count === BOXES * WORKERS,
        WITHIN_MS,
      ),
      BOXES * WORKERS,
    );
  });

  it('a box is replaced under load: no request fails, and it ends after its last scrape', async () => {
    const old = running[2];
    const replacement = await startBox();
    replacement.startClients();
    writeTargets();
    await prometheus.numberWhen(`up{instance="${replacement.target}"}`, value => value === 1, WITHIN_MS);
    const left = old.leaveService();
    assert.strictEqual(await old.terminate(), 0);
    await left;
    running = running.filter(box => box !== old);
    writeTargets();
    // What it counted last has arrived: nobody can scrape it any more.
    assert.deepStrictEqual(await seriesOf(totals(`instance="${old.target}"`)), answersOf([old]));
  });

  it('totals over all boxes are exactly what the clients counted', async () => {
    await Promise.all(running.map(box => box.leaveService()));
    const expected = answersOf(boxes);
    await prometheus.numberWhen(`sum(${totals()})`, n => n === totalOf(expected), WITHIN_MS);
    assert.deepStrictEqual(await seriesOf(`sum by (route, status) (${totals()})`), expected);
    for (const box of boxes) {
      assert.deepStrictEqual(await seriesOf(totals(`instance="${box.target}"`)), answersOf([box]));
    }
    assert.strictEqual(await prometheus.number('sum(resets(http_requests_total[1h]))'), 0);
    const observed = await prometheus.number('sum(max_over_time(http_request_duration_seconds_count[1h]))');
    assert.strictEqual(observed, totalOf(expected));
  });

  it('every recording rule has a result, which a federating server reads', async () => {
    const { groups } = await prometheus.ask('rules', {});
    const recorded = groups.flatMap(({ rules }) => rules).filter(({ type }) => type === 'recording');
    for (const { name } of recorded) await prometheus.numberWhen(`count(${name})`, n => n > 0, WITHIN_MS);
    // With the selector of docs/scaling.md.
    const federated = await prometheus.query('count by (__name__) ({__name__=~"job(_[a-z]+)*:.+"})');
    assert.strictEqual(federated.length, recorded.length);
  });

  it('all boxes end by themselves, and leave no file', async () => {
    assert.deepStrictEqual(
      await Promise.all(running.map(box => box.terminate())),
      running.map(() => 0),
    );
    assert.deepStrictEqual(fs.readdirSync(path.join(directory, 'snapshots')), []);
  });

  /** @returns {Promise<Map<string, number>>} values by route and status */
  async function seriesOf(query) {
    const series = await prometheus.query(query);
    return new Map(series.map(({ labels, value }) => [`${labels.route} ${labels.status}`, value]));
  }
});
