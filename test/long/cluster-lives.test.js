'use strict';

// Whether a primary holds on to anything of workers that are dead.

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const harness = require('../fixtures/cluster-harness.js');
const { growthPerLife } = require('./fixtures/cluster-chaos-memory.js');

/** A small object for each life is more than this. */
const BYTES_A_LIFE = 800;
/**
 * What the operating system has given for all of it moves by ten megabytes either way: no small thing shows
 * there.
 */
const RESIDENT_BYTES_A_LIFE = 24 * 1024;

describe('1,000 lives of workers leave nothing in the primary and its thread', () => {
  for (const pid of [false, true]) {
    it(
      pid ? 'where all series of a worker are its own, by a pid label' : 'where workers have the same series',
      async t => {
        const growth = await growthPerLife(harness, t, {
          lives: 1000,
          every: 100,
          warmUp: 200,
          scrapes: 6000,
          series: 50,
          pid,
        });
        for (const [what, bytes] of Object.entries(growth)) {
          const bound = what === 'resident set' ? RESIDENT_BYTES_A_LIFE : BYTES_A_LIFE;
          assert.ok(bytes < bound, `${what} grows by ${Math.round(bytes)} bytes a life`);
        }
      },
    );
  }
});
