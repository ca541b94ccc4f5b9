'use strict';

// Runs on the primary's loop. Asks workers for their numbers: at most one request is outstanding per worker,
// and all scrapes share it. The time that a scrape waits for a worker counts from when the worker was first
// asked. So a worker that hangs delays scrapes by one timeout in total, and a scrape with a longer timeout
// still waits for a worker that has missed a shorter one.

const { REQUEST } = require('../wire/messages');
const { send } = require('./worker-record');
const { debug } = require('../../options/debug-log');

// After this time, the request is sent again to an unresponsive worker. Not with each scrape, because
// messages queue up in a stopped process.
const REPEAT_MILLISECONDS = 5000;

// A worker that has missed a deadline and has not answered for this time hangs: no scrape waits for it,
// whatever its timeout.
const UNRESPONSIVE_MILLISECONDS = 5000;

/** @typedef {import('./worker-record').WorkerRecord} WorkerRecord */
/**
 * @typedef {{directory: string, pages: boolean, checkpointInterval?: number}} RequestFields same for all
 *   workers
 */

class WorkerRequests {
  #nextId = 1;
  #onUnreachable;
  #now;

  /**
   * @param {(record: WorkerRecord) => void} onUnreachable called when a request could not be sent
   * @param {() => number} [now] milliseconds
   */
  constructor(onUnreachable, now = () => performance.now()) {
    this.#onUnreachable = onUnreachable;
    this.#now = now;
  }

  /**
   * Asks a worker, unless it has been asked already.
   *
   * @param {WorkerRecord} record
   * @param {number} timeout milliseconds that the scrape waits at most
   * @param {RequestFields} fields
   * @returns {number} milliseconds that the scrape waits for this worker; 0 if it does not
   */
  ask(record, timeout, fields) {
    const now = this.#now();
    if (record.outstanding === 0) {
      record.outstanding = this.#nextId++;
      record.requestedAt = now;
      this.#send(record, timeout, fields);
      return record.outstanding === 0 ? 0 : timeout;
    }
    const patience = record.timedOut ? Math.min(timeout, UNRESPONSIVE_MILLISECONDS) : timeout;
    const left = record.requestedAt + patience - now;
    // Node drops messages to a process that does not listen yet. So a worker that has never replied may have
    // loaded the library after the request, and one that has replied before may have lost it.
    if (left <= 0 && now - record.askedAt >= REPEAT_MILLISECONDS) this.#send(record, timeout, fields);
    return Math.max(left, 0);
  }

  /**
   * Notes that a scrape has waited for the worker and timed out.
   *
   * @param {WorkerRecord} record
   */
  timeOut(record) {
    if (record.outstanding === 0) return;
    record.timedOut = true;
    debug('worker %d does not answer in time', record.worker.id);
  }

  /**
   * Ends the outstanding request if a response belongs to it.
   *
   * @param {WorkerRecord} record
   * @param {unknown} requestId of the response
   * @returns {boolean} false if nobody asked for the response, or nobody needs it any more
   */
  settle(record, requestId) {
    if (record.outstanding === 0 || requestId !== record.outstanding) return false;
    record.outstanding = 0;
    record.timedOut = false;
    return true;
  }

  /**
   * @param {WorkerRecord} record
   * @param {number} timeout
   * @param {RequestFields} fields
   */
  #send(record, timeout, fields) {
    record.askedAt = this.#now();
    const { worker, outstanding: requestId, position: known, badLog, ended } = record;
    const directory = record.overIpc ? '' : fields.directory;
    record.overIpc = false;
    const request = { type: REQUEST, requestId, known, badLog, ended, timeout, ...fields, directory };
    send(worker, request, error => {
      if (!error || record.outstanding !== requestId) return;
      // The next scrape asks again.
      record.outstanding = 0;
      record.timedOut = true;
      this.#onUnreachable(record);
    });
  }
}

module.exports = { WorkerRequests };
