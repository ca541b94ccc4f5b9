'use strict';

const { fork } = require('node:child_process');
const path = require('node:path');
const { endedWithin, nextMessage } = require('./child-messages');
const { sumOfRecords } = require('./request-record');

const STOP_WITHIN_MS = 8000;

/** The demo cluster, as the process that started it sees it. */
class ClusterProcess {
  #child;
  #stopped;

  /**
   * Starts the cluster's primary, which forks its workers. Wait for {@link ready} before using it.
   *
   * @param {object} options
   * @param {string} options.client metrics library
   * @param {number} options.workers
   * @param {number} options.samples samples per worker
   * @param {'none' | 'default' | 'runtime'} [options.defaultMetrics] which metrics of the process every
   *   worker has besides: none, those of prom-client, or those of `runtime: true` as well
   */
  constructor({ client, workers, samples, defaultMetrics = 'none' }) {
    const script = path.join(__dirname, 'cluster.js');
    // In its own process group, so that Ctrl-C reaches this process only, which then ends the cluster.
    this.#child = fork(script, [client, workers, samples, defaultMetrics].map(String), { detached: true });
    /** @type {number[]} the primary and, once ready, its workers */
    this.pids = [this.#child.pid];
  }

  /** Resolves when every worker listens; sets `applicationUrl` and `metricsUrl`. */
  async ready() {
    const { applicationPort, metricsPort, workerPids } = await nextMessage(this.#child, 'ready');
    this.pids.push(...workerPids);
    this.applicationUrl = `http://127.0.0.1:${applicationPort}`;
    this.metricsUrl = `http://127.0.0.1:${metricsPort}/metrics`;
  }

  /**
   * @returns {Promise<import('./request-record').RequestRecord>} what all workers counted themselves, added
   *   up
   */
  async record() {
    const report = nextMessage(this.#child, 'report');
    this.#child.send({ type: 'report' });
    return sumOfRecords((await report).records);
  }

  /** @returns {Promise<import('./main-thread').Readings>} of the primary */
  async primary() {
    const reading = nextMessage(this.#child, 'primary');
    this.#child.send({ type: 'primary' });
    return (await reading).readings;
  }

  /**
   * Ends the cluster.
   *
   * @returns {Promise<boolean>} whether it ended by itself and did not have to be killed
   */
  stop() {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  #stop() {
    if (this.#child.connected) this.#child.send({ type: 'stop' }, () => {});
    return endedWithin(this.#child, STOP_WITHIN_MS);
  }
}

module.exports = { ClusterProcess };
