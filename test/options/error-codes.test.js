'use strict';

// The `code` of errors.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { it } = require('node:test');
const { inspect } = require('node:util');
const promClient = require('prom-client');
const client = require('../..');
const fastifyPlugin = require('../../lib/http/fastify-plugin');
const { ClusterPages } = require('../../lib/cluster/worker/cluster-pages');

const OPTIONS = { name: 'm', help: 'h', labelNames: ['a'], registers: [] };

/** @type {[code: string, call: (library: any, registry: any) => any, isOurs?: boolean][]} */
const ERRORS = [
  ['INVALID_NAME', ({ Counter }) => new Counter({ ...OPTIONS, name: 'a b' })],
  ['INVALID_NAME', ({ Gauge }) => new Gauge({ help: 'h' })],
  ['INVALID_LABEL', ({ Counter }) => new Counter({ ...OPTIONS, labelNames: ['a b'] })],
  ['INVALID_LABEL', ({ Histogram }) => new Histogram({ ...OPTIONS, labelNames: ['le'] })],
  ['INVALID_LABEL', ({ Summary }) => new Summary({ ...OPTIONS, labelNames: ['quantile'] })],
  ['INVALID_LABEL', ({ Counter }, registers) => new Counter({ ...OPTIONS, registers }).inc({ b: 1 })],
  ['INVALID_LABEL', ({ Gauge }, registers) => new Gauge({ ...OPTIONS, registers }).labels('1', '2')],
  ['INVALID_VALUE', ({ Counter }, registers) => new Counter({ ...OPTIONS, registers }).inc(-1)],
  ['INVALID_VALUE', ({ Counter }, registers) => new Counter({ ...OPTIONS, registers }).inc('1')],
  ['INVALID_VALUE', ({ Gauge }, registers) => new Gauge({ ...OPTIONS, registers }).inc({}, '1')],
  ['INVALID_VALUE', ({ Histogram }, registers) => new Histogram({ ...OPTIONS, registers }).observe('x')],
  [
    'ALREADY_REGISTERED',
    ({ Counter }, registers) => [1, 2].map(() => new Counter({ ...OPTIONS, registers })),
  ],
  ['INVALID_OPTION', ({ Counter }) => new Counter()],
  ['INVALID_OPTION', ({ Counter }) => new Counter({ ...OPTIONS, collect: 1 })],
  [
    'INVALID_OPTION',
    ({ Counter }, registers) => new Counter({ ...OPTIONS, registers, enableExemplars: true }),
  ],
  ['INVALID_OPTION', ({ Registry }) => new Registry('text/html')],
  ['INVALID_OPTION', ({ linearBuckets }) => linearBuckets(0, 1, 0)],
  ['INVALID_OPTION', ({ linearBuckets }) => linearBuckets(0, 1, Infinity)],
  ['INVALID_OPTION', ({ exponentialBuckets }) => exponentialBuckets(1, 2, 1.5)],
  [
    'INVALID_OPTION',
    ({ Summary }) => new Summary({ ...OPTIONS, labelNames: [], maxAgeSeconds: 60, ageBuckets: -1 }),
  ],
  ['INVALID_OPTION', ({ Pushgateway }) => new Pushgateway('http://127.0.0.1:1').push({})],
  ['INVALID_OPTION', ({ AggregatorRegistry }) => AggregatorRegistry.setRegistries('x')],
  [
    'INVALID_OPTION',
    ({ AggregatorRegistry }) => AggregatorRegistry.aggregate([[{ name: 'm', aggregator: 'x', values: [] }]]),
  ],
  ['INVALID_OPTION', ({ Counter }) => new Counter({ ...OPTIONS, maxSeries: 0 }), true],
  ['INVALID_OPTION', ({ Registry, metricsHandler }) => metricsHandler(new Registry())({}, {}), true],
  ['INVALID_OPTION', ({ Registry, metricsResponse }) => metricsResponse(new Registry(), {}), true],
  ['INVALID_OPTION', () => fastifyPlugin({}), true],
  ['INVALID_OPTION', () => new ClusterPages({}).page({ names: Array(10_001).fill('a') }, 1), true],
  ['INVALID_NAME', ({ register }) => register.getSingleMetricAsString('unknown'), true],
  ['INVALID_OPTION', ({ AggregatorRegistry }) => new AggregatorRegistry({ timeout: '5s' }), true],
  ['INVALID_OPTION', ({ Registry }) => new Registry().setFormats(['json']), true],
  ['INVALID_OPTION', ({ metricsHandler }) => metricsHandler(), true],
  ['INVALID_OPTION', ({ RemoteWrite }) => new RemoteWrite('ftp://x', {}), true],
  ['INVALID_LABEL', ({ Counter }, registers) => new Counter({ ...OPTIONS, registers }).curry({ b: 1 }), true],
  [
    'ALREADY_REGISTERED',
    ({ Counter, Gauge }, [registry]) =>
      registry.getOrCreate(Counter, OPTIONS) && registry.getOrCreate(Gauge, OPTIONS),
    true,
  ],
];

async function errorOf(library, call) {
  try {
    await call(library, [new library.Registry()]);
  } catch (error) {
    return error;
  }
  return assert.fail('nothing was thrown');
}

const linesOf = error =>
  inspect(error)
    .split('\n')
    .filter(line => !/^ {4}at /.test(line));

for (const [code, call, isOurs = false] of ERRORS) {
  it(`the error of ${call} has the code PROM_CLIENT_${code}`, async () => {
    const error = await errorOf(client, call);
    assert.equal(error.code, `PROM_CLIENT_${code}`);
    if (isOurs) return;
    const expected = await errorOf(promClient, call);
    assert.deepEqual(error, expected);
    assert.equal(error.constructor, expected.constructor);
    // Their stack may say more, but not have another property.
    assert.deepEqual(Object.keys(error), []);
    assert.equal(linesOf(error).length, linesOf(expected).length);
  });
}

it('docs/api.md and index.d.ts have the codes of errors, and no other', () => {
  const read = file => fs.readFileSync(path.join(__dirname, '../..', file), 'utf8');
  const section = read('docs/api.md').split('\n## Errors\n')[1].split('\n## ')[0];
  const documented = Array.from(section.matchAll(/^\| `PROM_CLIENT_(\w+)`/gm), ([, code]) => code);
  const types = Array.from(read('index.d.ts').matchAll(/^ {2}\| 'PROM_CLIENT_(\w+)'/gm), ([, code]) => code);
  const [, union] = /@typedef \{('INVALID_NAME'[^}]*)\}/.exec(read('lib/options/coded-error.js'));
  const codes = Array.from(union.matchAll(/'(\w+)'/g), ([, code]) => code);
  assert.deepEqual([documented, types], [codes, codes]);
});
