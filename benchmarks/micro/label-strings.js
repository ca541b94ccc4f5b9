'use strict';

// Label sets in random order, made of strings that the program reuses, or of new strings each time.

const { labelSet } = require('../shared/label-sets.js');
const { randomFrom } = require('../shared/random.js');

const OPERATIONS = 1000; // in one timed call
const SEED = 20261121;

/**
 * @typedef {object} LabelStrings
 * @property {{method: string, route: string, status: string, zone: string}[]} sets
 * @property {number} operations of one walk
 * @property {(record: (labels: object) => void) => void} walk calls back with that many label sets, each in
 *   its own object, as in `inc({ method, route })`
 */

/**
 * @param {number} size how many label sets
 * @returns {LabelStrings} strings that the program reuses: they are hashed once
 */
function reusedStrings(size) {
  const sets = labelSets(size);
  const places = randomPlaces(size);
  let next = 0;
  return {
    sets,
    operations: OPERATIONS,
    walk(record) {
      for (let operation = 0; operation < OPERATIONS; operation++) {
        const { method, route, status, zone } = sets[places[next++ & (places.length - 1)]];
        record({ method, route, status, zone });
      }
    },
  };
}

/**
 * @param {number} size how many label sets
 * @returns {LabelStrings} strings without a cached hash, as a parser slices them out of a request; the
 *   slicing is part of the measured time
 */
function freshStrings(size) {
  const sets = labelSets(size);
  const places = randomPlaces(size);
  let next = 0;
  return {
    sets,
    operations: OPERATIONS,
    walk(record) {
      for (let operation = 0; operation < OPERATIONS; operation++) {
        const { method, route, status, zone } = sets[places[next++ & (places.length - 1)]];
        record({ method: fresh(method), route: fresh(route), status: fresh(status), zone: fresh(zone) });
      }
    },
  };
}

function fresh(text) {
  return ` ${text}`.slice(1);
}

/** Equal routes are the same string object, as if taken from a table of the program. */
function labelSets(size) {
  /** @type {Map<string, string>} */
  const routes = new Map();
  return Array.from({ length: size }, (_, number) => {
    const labels = labelSet(number);
    if (!routes.has(labels.route)) routes.set(labels.route, labels.route);
    return { ...labels, route: routes.get(labels.route) };
  });
}

/** A power of two, large enough that the CPU's branch predictor does not learn the order. */
function randomPlaces(size) {
  const random = randomFrom(SEED);
  return Uint32Array.from({ length: 2 ** 18 }, () => Math.floor(random() * size));
}

module.exports = { reusedStrings, freshStrings, OPERATIONS };
