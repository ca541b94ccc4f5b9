'use strict';

// Runs in workers and in the primary, on their event loops. Lists all copies of this package in one process
// (two versions in node_modules, a reload), and the registries with which each has joined the cluster. The
// list refers weakly to each copy's class Registry, which all of the copy's registries reference: so a copy
// is collected together with its registries, and not before.

const { processState, ownProcessState } = require('../registry/process-state');

/** Static method of a copy's Registry: returns the registries that have joined. Called at each scrape. */
const JOINED = Symbol.for('prom-client-cluster.joined.v1');

/**
 * Adds a copy to the list of all copies.
 *
 * @param {any} copy its class Registry
 */
function joinCopies(copy) {
  const state = ownProcessState();
  const others = state.copies.filter(other => ![undefined, copy].includes(other.deref()));
  state.copies = [...others, new WeakRef(copy)];
  // If this thread has joined its process, the copy's registries are followed from now on.
  state.threads?.publisher?.sync();
}

/**
 * The same, but only if the list exists: loading the library in a process that aggregates nothing changes no
 * global state.
 *
 * @param {any} copy
 */
function joinOthers(copy) {
  if (processState().copies.length > 0) joinCopies(copy);
}

/** @returns {Set<any>} the registries of all copies, each once */
function registriesOfAllCopies() {
  return new Set(processState().copies.flatMap(copy => [...(copy.deref()?.[JOINED]() ?? [])]));
}

/** @returns {Set<any>} the same, and those of the threads that have joined, see lib/threads */
function registriesOfProcess() {
  return new Set([...registriesOfAllCopies(), ...(processState().threads?.hub?.registriesOfMember() ?? [])]);
}

module.exports = {
  JOINED,
  joinCopies,
  joinOthers,
  registriesOfAllCopies,
  registriesOfProcess,
};
