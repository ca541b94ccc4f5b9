'use strict';

// Runs in the primary, on its event loop. The ClusterPrimary that all AggregatorRegistry objects of a process
// share, including those of other copies of this package. It exists as long as one of them is in use.

const { SHARED_OPTIONS, warnIfOptionsDiffer } = require('./cluster-options');
const { processState, ownProcessState } = require('../registry/process-state');

/** @typedef {import('./primary/cluster-primary').ClusterPrimary} ClusterPrimary */
/** @typedef {import('./cluster-options').ClusterOptions} ClusterOptions */

/**
 * The shared primary, and the AggregatorRegistry objects that use it because they were not closed.
 *
 * @typedef {object} SharedPrimary
 * @property {ClusterPrimary} primary
 * @property {Record<string, unknown>} options of the first AggregatorRegistry
 * @property {WeakSet<object>} users
 * @property {number} count of these
 * @property {boolean} hasWarned whether options that differ were reported
 */

/** @returns {ClusterPrimary | undefined} undefined if no AggregatorRegistry of this process is in use */
function primaryOfProcess() {
  return processState().primary?.primary;
}

/**
 * @param {object} user an AggregatorRegistry
 * @param {ClusterOptions} given its options
 * @param {ClusterOptions} effective the same with those of the environment
 * @param {() => ClusterPrimary} create called if it is the first one
 */
function usePrimary(user, given, effective, create) {
  const shared = (ownProcessState().primary ??= {
    primary: create(),
    options: /** @type {any} */ (effective),
    users: new WeakSet(),
    count: 0,
    hasWarned: false,
  });
  warnIfOptionsDiffer('AggregatorRegistry', SHARED_OPTIONS, shared, /** @type {any} */ (given));
  shared.users.add(user);
  shared.count++;
}

/**
 * Closes the primary if nothing else uses it.
 *
 * @param {object} user
 */
async function releasePrimary(user) {
  const shared = processState().primary;
  if (!shared?.users.delete(user)) return;
  shared.count--;
  if (shared.count > 0) return;
  ownProcessState().primary = undefined;
  await shared.primary.close();
}

module.exports = { primaryOfProcess, usePrimary, releasePrimary };
