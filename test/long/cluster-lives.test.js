'use strict';

// Whether a primary holds on to anything of workers that are dead.

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const { startCluster, until } = require('../fixtures/cluster-harness.js');

const LIVES = 1000;
const WARM_UP = 200;
const EVERY = 100;
const AT_ONCE = 8;
const SERIES = 50;
/** A small object for each life is more than this. */
const BYTES_A_LIFE = 800;

const recording = {
  start: ({ client, cluster, process, program: { pid, series }, state }) => {
    const [help, labelNames] = ['h', ['route']];
    if (pid) client.register.setDefaultLabels({ pid: process.pid, worker: cluster.worker.id });
    const counter = new client.Counter({ name: 'requests_total', help, labelNames });
    const histogram = new client.Histogram({ name: 'took', help, labelNames, buckets: [0.1, 1, 10] });
    const summary = new client.Summary({ name: 'size', help, labelNames, percentiles: [0.5] });
    const gauge = new client.Gauge({ name: 'open', help, labelNames });
    state.record = () => {
      // In each metric: the primary keeps the rows of the dead until they are about a thousand.
      for (let number = 0; number < series; number++) {
        const route = `/route/${number}`;
        counter.inc({ route });
        for (const metric of [histogram, summary]) metric.observe({ route }, number);
        gauge.set({ route }, number);
      }
    };
  },
};

describe('1,000 lives of workers leave nothing in the primary and its thread', () => {
  for (const [where, pid] of [
    ['where workers have the same series', false],
    ['where all series of a worker are its own, by a pid label', true],
  ]) {
    it(where, async t => {
      const cluster = await startCluster(t, {
        workers: 1,
        worker: { ...recording, pid, series: SERIES },
        threadPreload: require.resolve('./fixtures/held-memory.js'),
        before: ({ require }) => require('../long/fixtures/held-memory'),
        // Otherwise the totals of the dead stay for an hour.
        options: { retiredMaxAge: 0 },
      });
      let begun = 0;
      const live = async () => {
        const number = begun++;
        const id = await cluster.fork();
        await cluster.inWorkers([1, id], ({ state }) => state.record());
        if (number % 3 === 0) await cluster.scrape();
        if (number % 2 === 0) await cluster.signal(id, 'SIGKILL');
        else cluster.tellWorker(id, ({ process }) => process.exit());
        await cluster.gone(id);
      };
      const heldAfter = async lives => {
        while (begun < lives) await Promise.all(Array.from({ length: AT_ONCE }, live));
        const areRetired = async () => (await cluster.internals()).retiring === 0;
        await until(areRetired, 'all of the dead are among the retired');
        // The second one drops what the first has found too old.
        for (let i = 0; i < 2; i++) await cluster.scrape();
        return cluster.run($ => {
          // The books of the fixtures themselves.
          for (const list of [$.answers, ...$.threads.map(({ posted }) => posted)]) list.length = 0;
          return $.require('../long/fixtures/held-memory').measure();
        });
      };
      const points = [];
      for (let lives = WARM_UP; lives <= WARM_UP + LIVES; lives += EVERY)
        points.push([lives, await heldAfter(lives)]);
      const shown = (await cluster.text()).match(/^requests_total\{/gm) ?? [];
      assert.equal(shown.length, SERIES, 'only the series of the living are there');
      await cluster.end();
      for (const what of Object.keys(points[0][1])) {
        const growth = slope(points.map(([lives, held]) => [lives, held[what]]));
        const course = points.map(([, held]) => Math.round(held[what] / 1024)).join(' ');
        t.diagnostic(`${what}: ${Math.round(growth)} bytes a life (kB: ${course})`);
        assert.ok(growth < BYTES_A_LIFE, `${what} grows by ${Math.round(growth)} bytes a life`);
      }
    });
  }
});

/**
 * Of the straight line through points, by least squares.
 *
 * @param {[number, number][]} points
 */
function slope(points) {
  const mean = values => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [meanX, meanY] = [mean(points.map(([x]) => x)), mean(points.map(([, y]) => y))];
  const covariance = mean(points.map(([x, y]) => (x - meanX) * (y - meanY)));
  return covariance / mean(points.map(([x]) => (x - meanX) ** 2));
}
