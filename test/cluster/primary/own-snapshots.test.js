'use strict';

const assert = require('node:assert/strict');
const { beforeEach, describe, it } = require('node:test');
const { Gauge, Registry } = require('../../..');
const { OwnSnapshots } = require('../../../lib/cluster/primary/own-snapshots');

let release;
/** @type {Promise<void>} */
let collecting;
let registry;
let captured;
let own;
beforeEach(() => {
  registry = new Registry();
  let started;
  collecting = new Promise(resolve => (started = resolve));
  const collect = () => {
    started();
    return new Promise(resolve => (release = resolve));
  };
  new Gauge({ name: 'slow', help: 'h', registers: [registry], collect });
  const isCaptured = new Promise(resolve => (captured = resolve));
  own = new OwnSnapshots(() => [registry], captured);
  own.isCaptured = isCaptured;
});

describe("the primary's own registries", () => {
  it("the primary's own registries are captured once for scrapes that overlap; the later scrape waits, because the capture ends after its call", async () => {
    assert.equal(own.ask(5000), 5000);
    assert.equal(own.ask(300), 300);
    await collecting;
    release();
    assert.ok((await own.isCaptured).length > 0);
  });

  it("the primary's own registries with a hook that hangs delay only one scrape up to its timeout", async () => {
    own.ask(600_000);
    assert.equal(own.ask(1000), 1000);
    own.timeOut(1000);
    assert.equal(own.ask(1000), 0);
    assert.equal(own.ask(5000), 5000, 'a scrape with a longer timeout waits');
    await collecting;
    release();
    await own.isCaptured;
    assert.equal(own.ask(1000), 1000);
  });
});
