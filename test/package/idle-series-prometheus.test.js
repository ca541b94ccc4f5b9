'use strict';

// Prometheus sees the series of a cluster die and come back (`maxIdleSeconds`): increase() and rate() are
// what has happened. Debian's has to see a new series at zero first; that of test/long/prometheus-3 knows its
// start timestamp.

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');
const { startCluster } = require('../fixtures/cluster-harness');
const { PrometheusServer, missingPrograms } = require('../fixtures/prometheus-server');

const required = process.env.REQUIRE_ALL === '1';
const skip = !required && missingPrograms(['prometheus']);
const WITHIN_MS = 60_000;
/** Unknown to Debian's, which says so in its log. */
const FLAGS = ['--enable-feature=created-timestamp-zero-ingestion'];
const COUNTED = ['events_total', 'sizes_count', 'sizes_bucket{le=~"1(.0)?"}'];

const worker = {
  start: ({ client, require, state }) => {
    const { MovedClock } = require('./idle-clock');
    state.clock = new MovedClock();
    const options = { help: 'h', labelNames: ['device'], maxIdleSeconds: 600 };
    const events = new client.Counter({ name: 'events_total', ...options });
    const sizes = new client.Histogram({ name: 'sizes', buckets: [1], ...options });
    const times = new client.Summary({ name: 'times', percentiles: [0.5], ...options });
    state.count = number => {
      const labels = { device: 'd' };
      events.inc(labels, number);
      if (number === 0) sizes.zero(labels);
      if (number === 0) return;
      for (let i = 0; i < number; i++) for (const metric of [sizes, times]) metric.observe(labels, 0.5);
    };
  },
};

describe('idle series in Prometheus', { skip, timeout: 300_000 }, () => {
  it('increase() and rate() of a cluster are what has happened, over death and rebirth in one worker and in all', async t => {
    const cluster = await startCluster(t, { workers: 2, worker, options: { formats: ['text', 'protobuf'] } });
    const port = await cluster.run(async $ => {
      $.state.server = $.require('node:http').createServer($.client.metricsHandler($.aggregator));
      await new Promise(resolve => $.state.server.listen(0, '127.0.0.1', resolve));
      return $.state.server.address().port;
    });
    const prometheus = await PrometheusServer.start(FLAGS, `http://127.0.0.1:${port}/metrics`);
    t.after(() => prometheus.stop());
    const { version } = await prometheus.ask('status/buildinfo', {});
    const knowsStarts = Number(version.split('.')[0]) >= 3;

    /** Events of this life, and of all. */
    let alive = 0;
    let happened = 0;
    const shows = value => prometheus.numberWhen('events_total', found => found === value, WITHIN_MS);
    const count = async (id, times) => {
      await cluster.inWorker(id, ({ state }, times) => state.count(times), times);
      await shows((alive += times));
      happened += times;
    };
    const born = async (id, times) => {
      if (!knowsStarts) await count(id, 0);
      await count(id, times);
    };
    const scraped = async () => {
      const scrapes = await prometheus.number('count_over_time(up[1h])');
      await prometheus.numberWhen('count_over_time(up[1h])', found => found >= scrapes + 2, WITHIN_MS);
    };
    const idle = async (id, seconds = 720) => {
      await cluster.inWorker(id, ({ state }, seconds) => state.clock.move(seconds), seconds);
      await scraped();
    };
    const gone = async () => {
      await prometheus.numberWhen('absent(events_total)', found => found === 1, WITHIN_MS);
      alive = 0;
      await scraped();
    };
    const assertExact = async deaths => {
      const { result } = await prometheus.ask('query', { query: 'timestamp(events_total)' });
      const time = result[0].value[1];
      // Nothing is extrapolated from a first sample of 0, nor beyond the last one.
      // A summary cannot be seen at zero.
      for (const name of knowsStarts ? [...COUNTED, 'numbercount'] : COUNTED) {
        for (const [expression, expected] of [
          [`increase(${name}[1h])`, happened],
          [`rate(${name}[1h]) * 3600`, happened],
          [`resets(${name}[1h])`, deaths],
        ]) {
          const { result } = await prometheus.ask('query', { query: expression, time });
          assert.equal(result.length, 1, expression);
          assert.ok(
            Math.abs(result[0].value[1] - expected) < 1e-6,
            `${expression}: ${result[0].value[1]}, not ${expected}`,
          );
        }
      }
    };

    await born(1, 10);
    await count(2, 5);
    await idle(1);
    await shows(15);
    await assertExact(0);
    await count(2, 1);
    await count(1, 2);
    await idle(2);
    await shows(18);
    await assertExact(0);
    await idle(1);
    await gone();
    // More than before, so that the number alone is no reset.
    await born(2, 20);
    await count(1, 3);
    await assertExact(1);
    await Promise.all([idle(1), idle(2)]);
    await gone();
    await born(1, 4);
    await assertExact(2);
    assert.equal(await prometheus.number('min_over_time(up[1h])'), 1);
    await prometheus.stop();
    await cluster.run(({ state }) => {
      state.server.close();
      state.server.closeAllConnections();
    });
    await cluster.end();
  });
});
