'use strict';

// A worker that idles, or serves requests of its own at a fixed rate.

const fs = require('node:fs');
const { subscribe } = require('node:diagnostics_channel');
const { Counter } = require('../..');
const { LABEL_NAMES, labelSet } = require('../shared/label-sets.js');
const { quantile } = require('../shared/statistics.js');

const TICK_MILLISECONDS = 5;
const RECORDINGS_PER_TICK = 500;

const { CHECKPOINT_SETS: sets, CHECKPOINT_LOAD: load } = process.env;

const requests = new Counter({ name: 'requests_total', help: 'Requests', labelNames: LABEL_NAMES });
for (let number = 0; number < Number(sets); number++) requests.inc(labelSet(number));

let checkpoints = [];
subscribe('prom-client-cluster:section', ({ name, milliseconds }) => {
  if (name === 'worker:checkpoint') checkpoints.push({ at: performance.now(), milliseconds });
});

let delays = [];
if (load === 'busy') {
  let number = 0;
  let due = performance.now() + TICK_MILLISECONDS;
  const tick = () => {
    for (let i = 0; i < RECORDINGS_PER_TICK; i++) requests.inc(labelSet((number += 7919) % Number(sets)));
    // From when it was due, so that what holds the loop delays every request that waits meanwhile.
    const now = performance.now();
    delays.push(now - due);
    due += TICK_MILLISECONDS;
    setTimeout(tick, Math.max(0, due - now));
  };
  setTimeout(tick, TICK_MILLISECONDS);
} else {
  process.channel.ref();
}

process.on('message', message => {
  if (message?.type !== 'measure') return;
  const times = checkpoints.map(({ at }) => at);
  process.send({
    type: 'measured',
    cpu: process.cpuUsage(),
    ...writtenBytes(),
    checkpoints: checkpoints.length,
    longest: Math.max(0, ...checkpoints.map(({ milliseconds }) => milliseconds)),
    intervals: times.slice(1).map((at, place) => at - times[place]),
    // Of the load: on a busy machine a worker may not get as far as it should.
    done: load === 'busy' ? (delays.length * TICK_MILLISECONDS) / 1e3 : undefined,
    p50: quantile(delays, 0.5),
    p99: quantile(delays, 0.99),
  });
  checkpoints = [];
  delays = [];
});

/** @returns {{dirtied: number, dropped: number}} bytes of files so far; `dropped` by removal, before they
 *   reached a disk */
function writtenBytes() {
  const text = fs.readFileSync('/proc/self/io', 'utf8');
  const valueOf = name => Number(new RegExp(`^${name}: (.*)$`, 'm').exec(text)[1]);
  return { dirtied: valueOf('write_bytes'), dropped: valueOf('cancelled_write_bytes') };
}
