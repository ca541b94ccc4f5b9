'use strict';

// Runs in every process, on its event loop. Finds the group of the process: named by the option `group` or
// the environment, or formed by all instances of an application under PM2. A process without a group loads no
// other file of groups.

const { warnIfOptionsDiffer } = require('./cluster-options');
const { processState, ownProcessState } = require('../registry/process-state');
const { environmentVariable } = require('../options/environment');
const { warnOnce } = require('../options/warnings');
const { unref } = require('../event-loop/timers');

const VARIABLE = 'PROM_CLIENT_CLUSTER_GROUP';

/** @typedef {import('./group/group').Group} Group */
/** @typedef {import('./cluster-options').ClusterOptions} ClusterOptions */

/**
 * The group, shared by all copies of this package in a process; undefined if it was switched off. The option
 * is its name.
 *
 * @typedef {{group: Group | undefined, options: {group: string | undefined}, hasWarned: boolean}} SharedGroup
 */

/** @returns {Group | undefined} */
function groupOfProcess() {
  return processState().group?.group;
}

/**
 * @returns {string | undefined} the group that the environment names; undefined if it names none
 */
function groupOfEnvironment() {
  const text = environmentVariable(VARIABLE)?.trim();
  if (text) return /^(0|false)$/i.test(text) ? undefined : text;
  if (environmentVariable('exec_mode') !== 'cluster_mode' || !process.connected) return undefined;
  // A child of an instance has its environment, too.
  return /** @type {any} */ (require('node:cluster')).isWorker ? groupOfPm2() : undefined;
}

/**
 * PM2 addresses an application by its name. `unique_id` cannot be used: it belongs to the command that
 * started an instance, and after `pm2 resurrect` (at each start of the system, for example) every instance
 * has a different one. The host's name distinguishes containers that share a temporary directory.
 *
 * @returns {string | undefined} the group of all instances of an application
 */
function groupOfPm2() {
  const [home, namespace, name] = ['PM2_HOME', 'namespace', 'name'].map(environmentVariable);
  if (!home || !name) return undefined;
  const application = JSON.stringify([require('node:os').hostname(), home, namespace, name]);
  const { createHash } = require('node:crypto');
  // Short, because the path of a socket is limited, and the temporary directory of macOS takes most of it.
  return `pm2-${createHash('sha256').update(application).digest('hex').slice(0, 8)}`;
}

/**
 * Joins the group that the environment names, unless the program has joined or declined one by the next turn
 * of the loop.
 *
 * @param {() => Iterable<any>} registries
 * @param {() => ClusterOptions} options of the environment
 */
function joinByEnvironment(registries, options) {
  // An instance of PM2 joins when it creates an AggregatorRegistry. Without one, nothing shows the group.
  if (!environmentVariable(VARIABLE) || processState().group !== undefined) return;
  unref(setImmediate(() => joinGroup(options(), registries)));
}

/**
 * Joins the group that the options or the environment name.
 *
 * @param {ClusterOptions} options
 * @param {() => Iterable<any>} registries of the process
 * @returns {Group | undefined} undefined if there is none
 * @throws {TypeError} if the name is not valid
 */
function joinGroup(options, registries) {
  const known = processState().group;
  if (known !== undefined) {
    warnIfOptionsDiffer('AggregatorRegistry', ['group'], known, /** @type {any} */ (options));
    return known.group;
  }
  const name = options.group === false ? undefined : (options.group ?? groupOfEnvironment());
  /** @type {Group | undefined} */
  let group;
  if (name !== undefined) {
    // A thread is not a process of its own.
    if (!require('node:worker_threads').isMainThread) return undefined;
    const directory = directoryOf(name, options.group === undefined);
    if (directory === undefined) return undefined;
    group = new (require('./group/group').Group)(directory, options, registries);
  } else if (options.group === undefined) return undefined;
  ownProcessState().group = { group, options: { group: name }, hasWarned: false };
  group?.join();
  return group;
}

/**
 * @param {string} name
 * @param {boolean} isOfEnvironment
 * @returns {string | undefined} undefined if the name comes from the environment and is not valid
 * @throws {TypeError} if the name comes from the program and is not valid
 */
function directoryOf(name, isOfEnvironment) {
  try {
    return require('./group/group-names').pathOfGroup(name);
  } catch (error) {
    if (!isOfEnvironment) throw error;
    warnOnce(VARIABLE, `${VARIABLE} is ignored: ${/** @type {Error} */ (error).message}`);
    return undefined;
  }
}

module.exports = { groupOfProcess, joinGroup, joinByEnvironment };
