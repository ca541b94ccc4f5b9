'use strict';

/**
 * Method of a registry that is aggregated elsewhere: where RemoteWrite has its metrics pushed. The symbol is
 * the same in all copies of this package.
 */
const PUSH_TARGET = Symbol.for('prom-client-cluster.push-target.v1');

/**
 * `registries`: there is nothing to aggregate, this process pushes their metrics. `primary`: its aggregator
 * pushes; with `isShared`, another process goes on pushing when this one ends.
 *
 * @typedef {object} PushTarget
 * @property {any[]} [registries]
 * @property {import('../cluster/primary/cluster-primary').ClusterPrimary} [primary]
 * @property {boolean} [isShared]
 */

module.exports = { PUSH_TARGET };
