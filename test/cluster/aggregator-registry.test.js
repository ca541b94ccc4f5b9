'use strict';

const assert = require('node:assert/strict');
const { afterEach, describe, it } = require('node:test');
const v8 = require('node:v8');
const vm = require('node:vm');
const { AggregatorRegistry } = require('../..');

v8.setFlagsFromString('--expose-gc');
const collectGarbage = vm.runInNewContext('gc');

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
  it('releases the cluster although the program has created a registry per scrape', async () => {
    const { length } = Array.from({ length: 20 }, () => new AggregatorRegistry());
    assert.equal(length, 20);
    const last = new AggregatorRegistry();
    await last.close();
    while (isOpen()) {
      await new Promise(resolve => setImmediate(resolve));
      collectGarbage();
    }
  });

  it('does not release it while another registry is in use', async () => {
    const [first, second] = [create(), create()];
    await first.close();
    await first.close();
    collectGarbage();
    await new Promise(resolve => setImmediate(resolve));
    assert.ok(second.clusterState());
    await second.close();
    assert.ok(!isOpen());
  });

  it('counts a registry that was created after it', async () => {
    await create().close();
    const later = create();
    assert.ok(later.clusterState());
  });
});

it('the option `thread` is a path or a URL', () => {
  for (const thread of [5, null, {}])
    assert.throws(() => create({ thread }), /^TypeError: thread must be a path/);
});

describe('options of a second AggregatorRegistry', () => {
  it('that differ are reported once, by name', async t => {
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
});
