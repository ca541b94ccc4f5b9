'use strict';

// Runs on the primary's loop. The list of the cluster's workers. It reports when a worker appears, comes
// online, sends a message, disconnects or exits, and when nothing more can come from it.

const { WorkerRecord, isOnline } = require('./worker-record');
const { replaceCurrent, leaveCurrent } = require('../../event-loop/current');

/** @typedef {import('node:cluster').Worker} Worker */

/**
 * @typedef {object} RosterEvents
 * @property {() => void} onAdded a worker has appeared
 * @property {(record: WorkerRecord) => void} onOnline a worker can be reached
 * @property {(record: WorkerRecord, message: unknown) => void} onMessage
 * @property {(record: WorkerRecord) => void} onGone a worker has exited or disconnected: it may not answer
 *   any more
 * @property {(record: WorkerRecord) => void} onRetired a worker has exited and disconnected; it is no longer
 *   listed
 */

class WorkerRoster {
  #cluster;
  #events;
  /** @type {Map<number, WorkerRecord>} */
  #records = new Map();
  /** @type {[event: string, listener: (worker: Worker, ...args: unknown[]) => void][]} */
  #listeners;

  /**
   * @param {import('node:cluster').Cluster} cluster
   * @param {RosterEvents} events
   */
  constructor(cluster, events) {
    this.#cluster = cluster;
    this.#events = events;
    this.#listeners = [
      ['fork', worker => this.#add(worker)],
      ['online', worker => this.#reportOnline(worker)],
      ['message', (worker, message) => this.#receive(worker, message)],
      ['disconnect', worker => this.#onGone(worker, 'disconnected')],
      ['exit', (worker, code, signal) => this.#onGone(worker, 'exited', Boolean(signal))],
    ];
  }

  /** Follows the cluster from now on, and adds the workers that run already. */
  open() {
    replaceCurrent(this.#cluster, this);
    for (const [event, listener] of this.#listeners) this.#cluster.on(event, listener);
    for (const worker of this.#running()) {
      this.#add(worker);
      this.#reportOnline(worker);
    }
  }

  /** Removes all listeners from the cluster. */
  close() {
    leaveCurrent(this.#cluster, this);
    for (const [event, listener] of this.#listeners) this.#cluster.removeListener(event, listener);
  }

  /** @returns {WorkerRecord[]} all workers that are not retired */
  get all() {
    return [...this.#records.values()];
  }

  /** Adds workers that were started without an event, by a test or a wrapped cluster module. */
  addUnannounced() {
    for (const worker of this.#running()) if (isOnline(worker)) this.#add(worker);
  }

  /** @returns {WorkerRecord[]} those that can be reached now; retires those that are gone */
  reachable() {
    for (const record of this.all) this.#retireIfGone(record);
    return this.all.filter(
      ({ worker, disconnected, exited }) => !disconnected && !exited && isOnline(worker),
    );
  }

  /** @returns {Worker[]} */
  #running() {
    return /** @type {Worker[]} */ (Object.values(this.#cluster.workers ?? {}));
  }

  /** @param {Worker} worker */
  #add(worker) {
    if (this.#records.has(worker.id)) return;
    this.#records.set(worker.id, new WorkerRecord(worker));
    this.#events.onAdded();
  }

  /** @param {Worker} worker */
  #reportOnline(worker) {
    const record = this.#records.get(worker.id);
    if (record !== undefined) this.#events.onOnline(record);
  }

  /**
   * @param {Worker} worker
   * @param {unknown} message
   */
  #receive(worker, message) {
    const record = this.#records.get(worker?.id);
    if (record !== undefined) this.#events.onMessage(record, message);
  }

  /**
   * @param {Worker} worker
   * @param {'exited' | 'disconnected'} what
   * @param {boolean} [wasKilled]
   */
  #onGone(worker, what, wasKilled = false) {
    const record = this.#records.get(worker.id);
    if (record === undefined) return;
    record[what] = true;
    record.wasKilled ||= wasKilled;
    this.#events.onGone(record);
    this.#retireIfGone(record);
  }

  /**
   * Retires a worker after both 'disconnect' and 'exit', which come in either order. Between them it may
   * still run and count, and scrapes show its last numbers.
   *
   * @param {WorkerRecord} record
   */
  #retireIfGone(record) {
    const { worker, exited, disconnected } = record;
    // A worker that could not be started is dead without 'exit'. And Node delays 'disconnect' while it hands
    // over a connection: for ever, if the worker dies meanwhile.
    if (!(exited || worker.isDead?.()) || (!disconnected && worker.isConnected())) return;
    this.#records.delete(worker.id);
    this.#events.onRetired(record);
  }
}

module.exports = { WorkerRoster };
