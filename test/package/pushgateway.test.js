'use strict';

// Pushes to the real prometheus-pushgateway, then checks that it has the pushed metrics in the right group.

const assert = require('node:assert');
const fc = require('../fixtures/seeded-fast-check');
const { after, before, beforeEach, describe, it } = require('node:test');
const { isDeepStrictEqual } = require('node:util');
const { Counter, Gauge, Histogram, Registry, Summary } = require('../..');
const { Pushgateway } = require('../../lib/http/pushgateway');
const { GatewayProcess } = require('../http/fixtures/pushgateway-gateway');
const { missingPrograms } = require('../fixtures/prometheus-server');

const required = process.env.REQUIRE_ALL === '1';
const skip = !required && missingPrograms(['prometheus-pushgateway']);

describe('the real Pushgateway', { skip, timeout: 240_000 }, () => {
  /** @type {GatewayProcess} */
  let gateway;
  /** @type {Registry} */
  let registry;

  before(async () => {
    assert.strictEqual(missingPrograms(['prometheus-pushgateway']), undefined);
    gateway = await GatewayProcess.start();
  });

  after(() => gateway?.stop());

  beforeEach(() => (registry = new Registry()));

  function pusher(options) {
    return new Pushgateway(gateway.url, options, registry);
  }

  function gauge(name, value) {
    new Gauge({ name, help: 'h', registers: [registry] }).set(value);
  }

  it('the real Pushgateway has groups of random job and label values', async () => {
    gauge('value', 1);
    const text = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.string({ unit: fc.constantFrom('/', '.', '%', '+', '=', '@', '2', 'F', 'ü', '\\') }),
    );
    const job = text.filter(value => value !== '');
    await fc.assert(
      fc.asyncProperty(
        job,
        fc.dictionary(fc.constantFrom('a', 'b', 'c'), text),
        async (jobName, groupings) => {
          await pusher().pushAdd({ jobName, groupings });
          const labels = { ...groupings, job: jobName };
          assert.ok((await gateway.groupLabels()).some(group => isDeepStrictEqual(group, labels)));
        },
      ),
      { numRuns: 100 },
    );
  });

  for (const contentType of [Registry.PROMETHEUS_CONTENT_TYPE, Registry.PROMETHEUS_PROTOBUF_CONTENT_TYPE])
    it(`the real Pushgateway accepts all types of metrics, compressed, as ${contentType}`, async () => {
      const registers = [registry];
      registry.setContentType(contentType);
      new Counter({ name: 'c_total', help: 'h', registers }).inc(3);
      new Gauge({ name: 'g', help: 'line\nfeed', registers, labelNames: ['l'] }).set(
        { l: '"\\\n' },
        -Infinity,
      );
      new Histogram({ name: 'h', help: 'h', registers, buckets: [1, 2] }).observe(1.5);
      new Summary({ name: 's', help: 'h', registers, percentiles: [0.5] }).observe(7);
      const pushgateway = pusher({ headers: { 'Content-Encoding': 'gzip' } });
      await pushgateway.push({ jobName: 'gone' });
      await pushgateway.delete({ jobName: 'gone' });
      await pushgateway.push({ jobName: 'j' });
      const response = await fetch(`${gateway.url}/metrics`);
      const lines = (await response.text())
        .split('\n')
        .filter(line => /^(c_total|g|h_\w+|s|s_\w+)\{/.test(line));
      assert.deepStrictEqual(lines.sort(), [
        'c_total{instance="",job="j"} 3',
        'g{instance="",job="j",l="\\"\\\\\\n"} -Inf',
        'h_bucket{instance="",job="j",le="+Inf"} 1',
        'h_bucket{instance="",job="j",le="1"} 0',
        'h_bucket{instance="",job="j",le="2"} 1',
        'h_count{instance="",job="j"} 1',
        'h_sum{instance="",job="j"} 1.5',
        's_count{instance="",job="j"} 1',
        's_sum{instance="",job="j"} 7',
        's{instance="",job="j",quantile="0.5"} 7',
      ]);
    });

  it('the real Pushgateway responds with the reason if it refuses a push', async () => {
    const broken = new Pushgateway(gateway.url, { metrics: () => 'broken{\n' });
    await assert.rejects(
      broken.push({ jobName: 'j' }),
      /^Error: push failed with status 400, text format parsing error/,
    );
    gauge('value', 1);
    const unnamed = pusher().push({ jobName: 'j', groupings: { 'no label': 'x' } });
    await assert.rejects(unnamed, /^Error: push failed with status 400, improper label name "no label"/);
  });
});
