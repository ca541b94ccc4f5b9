'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { afterEach, describe, it } = require('node:test');
const { AggregatorRegistry, Gauge, metricsResponse, register } = require('../..');
const { clusterOptions } = require('../../lib/cluster/cluster-options');

/** @type {AggregatorRegistry[]} */
const held = [];
afterEach(async () => {
  for (const registry of held.splice(0)) await registry.close();
});
const create = options => {
  const registry = new AggregatorRegistry(undefined, options);
  held.push(registry);
  return registry;
};
const isOpen = () => Boolean(AggregatorRegistry.prototype.clusterState.call(undefined));

describe('close()', () => {
  it('close() does not release the cluster while another registry is in use', async () => {
    const [first, second] = [create(), create()];
    await first.close();
    await first.close();
    assert.ok(second.clusterState());
    await second.close();
    assert.ok(!isOpen());
  });

  it('a registry that is created after close() can be used', async () => {
    await create().close();
    const later = create();
    assert.ok(later.clusterState());
  });
});

it('shutdown() refuses anything but a number of milliseconds', async () => {
  for (const timeout of ['5', -1, NaN, null, {}, true, 5n])
    await assert.rejects(
      create().shutdown(timeout),
      /^TypeError: timeout must be a number of milliseconds: /,
    );
  await create().shutdown(0);
  await create().shutdown(undefined);
});

it('the option `thread` is a path or a URL', () => {
  for (const thread of [5, null, {}])
    assert.throws(() => create({ thread }), /^TypeError: thread must be a path/);
});

it('options of a second AggregatorRegistry that differ are reported once, by name', async t => {
  const emit = t.mock.method(process, 'emitWarning', () => {});
  create({ retiredMaxAge: 1000, thread: new URL('file:///thread.js') });
  create({ thread: new URL('file:///thread.js') });
  create({ timeout: 20, retiredMaxAge: 1000, inPlace: false });
  create();
  assert.equal(emit.mock.callCount(), 0);
  create({ retiredMaxAge: 2000, checkpointInterval: 500 });
  create({ includePrimary: true });
  assert.equal(emit.mock.callCount(), 1);
  assert.match(emit.mock.calls[0].arguments[0], /'retiredMaxAge'/);
});

describe('options from the environment', () => {
  const PREFIX = 'PROM_CLIENT_CLUSTER_';
  /** Sets variables until the end of a test. */
  const setEnvironment = (t, variables) => {
    for (const [name, value] of Object.entries(variables)) process.env[PREFIX + name] = value;
    t.after(() => {
      for (const name of Object.keys(variables)) delete process.env[PREFIX + name];
    });
  };

  it('options from the environment are those that the program does not set', t => {
    setEnvironment(t, {
      ...{ DIRECTORY: '/a/path', CHECKPOINT_INTERVAL: '1500', INCLUDE_PRIMARY: 'true' },
      ...{ TIMEOUT: ' 2000 ', RETIRED_MAX_AGE: '0', FORMATS: 'Text, openmetrics' },
    });
    const all = {
      ...{ directory: '/a/path', checkpointInterval: 1500, includePrimary: true },
      ...{ timeout: 2000, retiredMaxAge: 0, formats: ['text', 'openmetrics'] },
    };
    assert.deepEqual(clusterOptions({}), all);
    assert.deepEqual(clusterOptions({ timeout: undefined }), all);
    const own = {
      timeout: 1,
      directory: '/b',
      checkpointInterval: 0,
      includePrimary: false,
      retiredMaxAge: 9,
      formats: ['text'],
    };
    assert.deepEqual(clusterOptions(own), own);
  });

  it('options from the environment apply to the process', async t => {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'environment-'));
    t.after(() => fs.rmdirSync(directory));
    setEnvironment(t, {
      ...{ DIRECTORY: directory, INCLUDE_PRIMARY: '1', TIMEOUT: '60000', FORMATS: 'openmetrics' },
    });
    new Gauge({ name: 'own', help: 'h' }).set(5);
    t.after(() => register.clear());
    const registry = create({ inPlace: true });
    assert.equal(registry.timeout, 60_000);
    assert.match(await registry.clusterMetrics(), /^own 5$/m);
    const response = await metricsResponse(registry, new Request('http://localhost'));
    assert.match(await response.text(), /^own 5$.*# EOF\n$/ms);
    assert.equal(path.dirname(registry.clusterState().directory), fs.realpathSync(directory));
    // They are no difference between two objects.
    const emit = t.mock.method(process, 'emitWarning', () => {});
    create();
    assert.equal(emit.mock.callCount(), 0);
    for (const one of held.splice(0)) await one.close();
  });

  it('options from the environment are ignored if they cannot be used, with one warning for each', t => {
    const emit = t.mock.method(process, 'emitWarning', () => {});
    const bad = {
      ...{ CHECKPOINT_INTERVAL: '5', INCLUDE_PRIMARY: 'yes', TIMEOUT: '5s' },
      ...{ RETIRED_MAX_AGE: '-1', DIRECTORY: '', FORMATS: 'text,json' },
    };
    setEnvironment(t, bad);
    assert.deepEqual(clusterOptions({}), {});
    assert.deepEqual(clusterOptions({}), {});
    const texts = emit.mock.calls.map(call => call.arguments[0]).sort();
    assert.deepEqual(texts, [
      `${PREFIX}CHECKPOINT_INTERVAL=5 is ignored: checkpointInterval must be 0 or at least 100 milliseconds: 5`,
      `${PREFIX}FORMATS=text,json is ignored: formats must be a list of 'text', 'openmetrics', 'protobuf': [ 'text', 'json' ]`,
      `${PREFIX}INCLUDE_PRIMARY=yes is ignored: use 1 or true, 0 or false`,
      `${PREFIX}RETIRED_MAX_AGE=-1 is ignored: retiredMaxAge must be a number of milliseconds: '-1'`,
      `${PREFIX}TIMEOUT=5s is ignored: timeout must be a number of milliseconds: '5s'`,
    ]);
  });
});
