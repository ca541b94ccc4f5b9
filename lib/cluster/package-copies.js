'use strict';

// All copies of this package in one process (two versions in node_modules, a reload), and the registries that each takes
// to a cluster. Held weakly: a copy that nobody uses any more takes its registries with it.

const COPIES = Symbol.for('prom-client-cluster.copies.v1');

/** What a copy's AggregatorRegistry has as a static method: the registries that take part, asked at each scrape. */
const TAKING_PART = Symbol.for('prom-client-cluster.taking-part.v1');

/** @typedef {{[TAKING_PART]: () => Iterable<any>}} Copy */

/**
 * Takes part with a copy's registries, wherever all are asked for.
 *
 * @param {Copy} copy its AggregatorRegistry
 */
function joinCopies(copy) {
  const shared = /** @type {{[COPIES]?: WeakRef<Copy>[]}} */ (globalThis);
  const others = (shared[COPIES] ?? []).filter(other => ![undefined, copy].includes(other.deref()));
  Object.defineProperty(shared, COPIES, { value: [...others, new WeakRef(copy)], configurable: true });
}

/**
 * The same where others have joined. Nothing is left behind by loading the library in a process that aggregates nothing.
 *
 * @param {Copy} copy
 */
function joinOthers(copy) {
  if (COPIES in globalThis) joinCopies(copy);
}

/** @returns {Set<any>} the registries of all copies, each once */
function registriesOfAllCopies() {
  const copies = /** @type {{[COPIES]?: WeakRef<Copy>[]}} */ (globalThis)[COPIES] ?? [];
  return new Set(copies.flatMap(copy => [...(copy.deref()?.[TAKING_PART]() ?? [])]));
}

module.exports = { TAKING_PART, joinCopies, joinOthers, registriesOfAllCopies };
