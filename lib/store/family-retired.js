'use strict';

// Runs with the aggregator. Decides in a merge which totals of ended rows and dead sources a family keeps,
// and which ones are removed before the page is written.
//
// The age of a dead source's totals counts from when any source last had their label set; they are removed
// after `retiredMaxAge`. For a metric with `maxIdleSeconds`, the age counts from the source's death, and
// totals that reach it are folded. Folded rows are removed as soon as no source has their label set.

const { FOLDED } = require('./retired-totals');

const ROWS_PER_STEP = 8192;

/** A live source has the label set. */
const LIVE = 1;
/** The counts of a dead source are kept. */
const DEAD = 2;

/** @typedef {import('./cluster-family').ClusterFamily} ClusterFamily */
/** @typedef {import('./cluster-family').Source} Source */

/**
 * @typedef {object} Retiring
 * @property {number} now milliseconds, by the store's clock
 * @property {number} maxAge milliseconds for which totals of dead sources stay if no source has their label
 *   set
 * @property {boolean} isComplete whether all live sources are known: a new thread may lack some
 */

/**
 * @param {ClusterFamily} family its live sources are translated
 * @param {Retiring} retiring
 * @returns {Generator<void, Source[]>} the totals that are left, as sources; yields where a slice may end
 */
function* settle(family, retiring) {
  const { isComplete } = retiring;
  for (const totals of family.retired) yield* totals.translate(family);
  const state = new Uint8Array(family.rows.count);
  for (const source of family.sources) {
    markLive(source, state);
    yield;
  }
  const hasFolded = yield* keepDead(family, state, retiring);
  const left = [];
  for (const totals of family.retired) {
    const { familyRows: rows } = totals;
    if (isComplete && hasFolded) yield* totals.removeFolded(row => state[rows[row]] === 0);
    if (totals.isEmpty) continue;
    for (const source of totals.sources()) {
      if (!isComplete) source.order = source.order.filter(row => state[rows[row]] !== 0);
      left.push(source);
    }
  }
  return left;
}

/**
 * @param {ClusterFamily} family
 * @param {Uint8Array} state by row of the family
 * @param {Retiring} retiring
 * @returns {Generator<void, boolean>} whether rows are folded
 */
function* keepDead(family, state, { now, maxAge }) {
  const maxIdle = family.definition.maxIdleSeconds * 1000;
  const oldest = now - Math.min(maxIdle, maxAge);
  const newest = family.retired.length > 1 ? newestOf(family) : undefined;
  let hasFolded = false;
  for (const totals of family.retired) {
    const { familyRows: rows, lastSeen } = totals;
    for (let row = 0; row < lastSeen.length; row++) {
      if ((row + 1) % ROWS_PER_STEP === 0) yield;
      const familyRow = rows[row];
      const isLive = (state[familyRow] & LIVE) !== 0;
      const seen = newest === undefined ? lastSeen[row] : newest[familyRow];
      if (lastSeen[row] === FOLDED || (maxIdle > 0 && seen < oldest)) {
        lastSeen[row] = FOLDED;
        hasFolded = true;
        continue;
      }
      lastSeen[row] = isLive && maxIdle === 0 ? now : seen;
      state[familyRow] |= DEAD;
    }
  }
  return hasFolded;
}

/**
 * @param {ClusterFamily} family
 * @returns {Float64Array} by row of the family: when a source with it was last seen
 */
function newestOf(family) {
  const newest = new Float64Array(family.rows.count);
  for (const { familyRows: rows, lastSeen } of family.retired) {
    lastSeen.forEach((seen, row) => {
      newest[rows[row]] = Math.max(newest[rows[row]], seen);
    });
  }
  return newest;
}

/**
 * @param {Source} source
 * @param {Uint8Array} state by row of the family
 */
function markLive({ rows: { rows }, order }, state) {
  for (let i = 0; i < order.length; i++) state[rows[order[i]]] = LIVE;
}

module.exports = { settle };
