'use strict';

// The state that all copies of this package in a process (two versions in node_modules, a reload) share. Each
// thread has its own. It is a versioned object: a release with another version of it has a separate object.

const KEY = Symbol.for('prom-client-cluster.state.v1');

/**
 * @typedef {object} ProcessState
 * @property {WeakRef<any>[]} copies the class Registry of each copy whose metrics are aggregated here
 * @property {import('../cluster/primary-of-process').SharedPrimary} [primary]
 * @property {import('../cluster/worker/worker-hook').SharedWorker} [worker]
 * @property {import('../cluster/group-of-process').SharedGroup} [group]
 * @property {import('../threads/worker-registry').SharedThreads} [threads]
 * @property {string} [threadId] the latest id of this thread, see lib/threads/thread-link.js
 * @property {Map<string, any>} [registries] those of Registry.shared(), by name
 * @property {boolean} [allowsExemplars] whether registries that write Prometheus text may have metrics with
 *   exemplars, because formats with exemplars were set for an endpoint or registry
 * @property {boolean} hasWarned whether other clients in this process were reported
 */

/** @type {Readonly<ProcessState>} */
const NONE = Object.freeze({
  ...{ copies: Object.freeze(/** @type {any} */ ([])), hasWarned: false, allowsExemplars: false },
  ...{ primary: undefined, worker: undefined, group: undefined, threads: undefined },
  ...{ threadId: undefined, registries: undefined },
});

/**
 * Loading the library in a process that aggregates nothing changes no global state.
 *
 * @returns {Readonly<ProcessState>}
 */
function processState() {
  return /** @type {any} */ (globalThis)[KEY] ?? NONE;
}

/** @returns {ProcessState} the same, to be changed */
function ownProcessState() {
  // Sealed: Jest 30 replaces what it can of such an object when a test file has ended.
  const value = Object.seal({ ...NONE });
  if (!(KEY in globalThis)) Object.defineProperty(globalThis, KEY, { value, configurable: true });
  return /** @type {ProcessState} */ (processState());
}

module.exports = { processState, ownProcessState };
