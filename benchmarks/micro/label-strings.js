'use strict';

// Label sets to record with, at random places: from strings that the program reuses, or from new strings each
// time.

const { labelSet } = require('../shared/label-sets.js');
const { randomFrom } = require('../shared/random.js');

const OPERATIONS = 1000; // of one call that is timed
const SEED = 20261121;

/**
 * @typedef {object} LabelStrings
 * @property {{method: string, route: string, status: string, zone: string}[]} sets
 * @property {number} operations of one walk
 * @property {(record: (labels: object) => void) => void} walk calls back with that many label sets, in an
 *   object of their own each, as in `inc({ method, route })`
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
 * @returns {LabelStrings} strings without a cached hash, as a parser cuts them out of a request; cutting them
 *   is part of what is timed
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

/** Equal routes are the same string, as those that a program takes from its own table are. */
function labelSets(size) {
  /** @type {Map<string, string>} */
  const routes = new Map();
  return Array.from({ length: size }, (_, number) => {
    const labels = labelSet(number);
    if (!routes.has(labels.route)) routes.set(labels.route, labels.route);
    return { ...labels, route: routes.get(labels.route) };
  });
}

/** As many that a cache of the processor does not learn them, and a power of two. */
function randomPlaces(size) {
  const random = randomFrom(SEED);
  return Uint32Array.from({ length: 2 ** 18 }, () => Math.floor(random() * size));
}

module.exports = { reusedStrings, freshStrings, OPERATIONS };
