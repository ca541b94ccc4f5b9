'use strict';

// Reads the floors that CI enforces, benchmarks/floors.json. docs/internals/benchmarks.md and
// docs/internals/benchmark-cluster.md explain how each was found.

const FLOORS = require('../floors.json');

const ATTEMPTS = 3;

/**
 * @typedef {object} Floor
 * @property {string} gate what it is about
 * @property {number} [atMost]
 * @property {number} [atLeast]
 */

/**
 * @param {'micro' | 'cluster'} benchmark
 * @param {string} gate
 * @returns {Floor | undefined} undefined if there is no floor
 * @throws {Error} if the file has two floors for it, or a floor without a limit
 */
function floorOf(benchmark, gate) {
  const floors = FLOORS[benchmark].filter(floor => floor.gate === gate);
  if (floors.length > 1) throw new Error(`${floors.length} floors of ${gate}`);
  const [floor] = floors;
  if (floor && (floor.atMost === undefined) === (floor.atLeast === undefined)) {
    throw new Error(`the floor of ${gate} has to say either atMost or atLeast`);
  }
  return floor;
}

/**
 * @param {'micro' | 'cluster'} benchmark
 * @returns {Floor[]}
 */
function floorsOf(benchmark) {
  return FLOORS[benchmark];
}

/**
 * @param {Floor} floor
 * @param {number | null} value null: not measured, which fails every floor
 */
function isHeld({ atMost, atLeast }, value) {
  if (value === null || Number.isNaN(value)) return false;
  return atMost === undefined ? value >= atLeast : value <= atMost;
}

/**
 * Measures until all floors are held. Other programs can disturb every figure of a measurement that takes
 * seconds, but a regression shows each time.
 *
 * @template Outcome
 * @param {() => Promise<Outcome>} measure
 * @param {(outcome: Outcome) => boolean} areHeld
 * @returns {Promise<Outcome>} of the last measurement
 */
async function measureUntilHeld(measure, areHeld) {
  for (let attempt = 1; ; attempt++) {
    const outcome = await measure();
    if (attempt === ATTEMPTS || areHeld(outcome)) return outcome;
  }
}

module.exports = { floorOf, floorsOf, isHeld, measureUntilHeld };
