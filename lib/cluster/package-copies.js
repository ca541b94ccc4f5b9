'use strict';

// Runs in workers and in the primary, on their event loops. All copies of this package in one process (two
// versions in node_modules, a reload), and the registries with which each takes part in the cluster.
// References to copies are weak, and to a class that each of its registries references: a copy is collected
// together with its registries, and not before.

const { COPIES } = require('../registry/metric-view');

/** Static method of a copy's Registry: returns the registries that take part. Called at each scrape. */
const TAKING_PART = Symbol.for('prom-client-cluster.taking-part.v1');

/** What the WorkerRegistry objects of a thread share. */
const THREADS = Symbol.for('prom-client-cluster.threads.v1');

/** @typedef {{[TAKING_PART]: () => Iterable<any>}} Copy */

/**
 * Adds a copy to the list of all copies.
 *
 * @param {any} copy its class Registry
 */
function joinCopies(copy) {
  const shared = /** @type {{[COPIES]?: WeakRef<Copy>[]}} */ (globalThis);
  const others = (shared[COPIES] ?? []).filter(other => ![undefined, copy].includes(other.deref()));
  // Frozen: Jest 30 replaces what it can of such a list when a test file has ended.
  const value = Object.freeze([...others, new WeakRef(copy)]);
  Object.defineProperty(shared, COPIES, { value, configurable: true });
  // Where this thread takes part, its registries are followed from now on.
  threads()?.publisher?.sync();
}

/**
 * The same if the list exists. Loading the library in a process that aggregates nothing changes no global
 * state.
 *
 * @param {any} copy
 */
function joinOthers(copy) {
  if (COPIES in globalThis) joinCopies(copy);
}

/** @returns {Set<any>} the registries of all copies, each once */
function registriesOfAllCopies() {
  const copies = /** @type {{[COPIES]?: WeakRef<Copy>[]}} */ (globalThis)[COPIES] ?? [];
  return new Set(copies.flatMap(copy => [...(copy.deref()?.[TAKING_PART]() ?? [])]));
}

/** @returns {Set<any>} the same, and those of the threads that take part, see lib/threads */
function registriesOfProcess() {
  return new Set([...registriesOfAllCopies(), ...(threads()?.hub?.registriesOfMember() ?? [])]);
}

/** @returns {{hub?: {registriesOfMember: () => any[]}, publisher?: {sync: () => void}} | undefined} */
function threads() {
  return /** @type {any} */ (globalThis)[THREADS];
}

module.exports = {
  TAKING_PART,
  THREADS,
  joinCopies,
  joinOthers,
  registriesOfAllCopies,
  registriesOfProcess,
};
