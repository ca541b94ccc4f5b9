'use strict';

// A format of pages is one value in the list of formats: whoever serves pages takes it from there.

const assert = require('node:assert/strict');
const { after, before, describe, it } = require('node:test');
const { Counter, Registry } = require('../..');
const { FORMATS } = require('../../lib/exposition/formats');
const { sampleReader } = require('../../lib/exposition/family-samples');
const { MetricsEndpoint } = require('../../lib/http/metrics-endpoint');
const { Aggregator } = require('../../lib/aggregator/aggregator');
const { makePlace } = require('../fixtures/cluster-harness');
const { bytesOf, makeWorker } = require('../fixtures/unit-scrape');
const { runThrough } = require('../../lib/event-loop/slices');

/** Records of bytes, as of protobuf: the length of a sample's text, and the text. */
const RECORDS = {
  name: 'records',
  contentType: 'application/x-records',
  isBinary: true,
  separator: '',
  ending: '',
  emptyPage: '',
  familyName: name => name,
  sampleName: name => name,
  *write(family) {
    const samples = [];
    const read = sampleReader(family, RECORDS, {
      nameOf: name => name,
      onSample: (name, row, value) => samples.push(`${name} ${family.labelText(row, false)} ${value}`),
    });
    for (const row of family.rows()) read(row);
    yield recordsOf(samples);
  },
};
/** More than the cluster's store needs to keep the text of a family. */
const LABELS = Array.from({ length: 100 }, (_, i) => `é${i}`);
const PAGE = recordsOf(['a  1', ...LABELS.map(label => `b_total x="${label}" 2`)]);

function recordsOf(samples) {
  return Buffer.concat(samples.flatMap(text => [Buffer.of(text.length), Buffer.from(text)]));
}

function countIn(registry) {
  new Counter({ name: 'a', help: 'h', registers: [registry] }).inc();
  const labelled = new Counter({ name: 'b_total', help: 'h', labelNames: ['x'], registers: [registry] });
  for (const x of LABELS) labelled.inc({ x }, 2);
}

describe('another format of pages', () => {
  before(() => FORMATS.push(RECORDS));
  after(() => FORMATS.splice(FORMATS.indexOf(RECORDS), 1));

  it('is what metrics() of a registry with its content type resolves with, as bytes', async () => {
    const registry = new Registry(RECORDS.contentType);
    countIn(registry);
    assert.deepEqual(await registry.metrics(), PAGE);
    assert.deepEqual(await registry.metricsBytes(), PAGE);
  });

  it('is served to scrapers that prefer it, beside text', async () => {
    const registry = new Registry();
    countIn(registry);
    registry.setFormats(['text', 'records']);
    const endpoint = new MetricsEndpoint(registry, undefined, 'test');
    const scrape = accept => endpoint.respond({ header: name => ({ accept })[name], url: '/metrics' });
    const [records, text] = await Promise.all([
      scrape(`${RECORDS.contentType}, text/plain;q=0.5`),
      scrape('*/*'),
    ]);
    assert.equal(records.headers['Content-Type'], RECORDS.contentType);
    assert.deepEqual(records.body, PAGE);
    assert.match(String(text.body), /^a 1$/m);
    assert.throws(() => registry.setFormats(['record']), /'text', .*, 'records'/);
  });

  it('is written by the page writer of a cluster, beside text', async t => {
    const aggregator = new Aggregator({
      ...{ directory: makePlace(t), lock: false, fallbacks: [] },
      onDirectory() {},
      onRetired() {},
    });
    await aggregator.open();
    t.after(() => aggregator.close());
    const worker = makeWorker();
    countIn(worker.registry);
    aggregator.answer({ workerId: 1, bytes: bytesOf(worker.source.captureWithLog(1, undefined)) });
    const formats = ['records', 'text', 'records'].map(format => ({
      format,
      gzip: false,
      selfMetrics: false,
    }));
    for (let scrape = 0; scrape < 2; scrape++) {
      const { bodies } = runThrough(aggregator.render({ formats, custom: [], final: true }));
      const pages = bodies.map(({ buffer, length }) => Buffer.from(buffer, 0, length));
      assert.deepEqual([pages[0], pages[2]], [PAGE, PAGE]);
      assert.match(String(pages[1]), /^b_total\{x="é99"\} 2$/m);
    }
  });
});
