'use strict';

// Runs on the primary's loop. Asks workers for their numbers: at most one request is outstanding per worker,
// all scrapes share it, and scrapes do not wait for a worker that has missed a deadline, unless that deadline
// was a short one.

const { isLonger } = require('../../source/collect-hooks');
const { REQUEST } = require('../wire/messages');
const { send, ownFields } = require('./worker-record');
const { debug } = require('../../options/debug-log');

// Pauses before an unresponsive worker is sent the same request again: one that has never replied, and one
// that has. The pauses of the latter double, because messages queue up in a stopped process.
const REPEAT_MILLISECONDS = 1000;
const REPEAT_REPLIED_MILLISECONDS = 5000;
const LONGEST_PAUSE_MILLISECONDS = 300_000;

// A worker that has missed a deadline, and has not answered for so long, hangs: not even a patient scrape
// waits for it.
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
   * @param {(workerId: number) => void} onUnreachable called when a request could not be sent
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
    if (record.outstanding === 0) {
      record.requestedAt = this.#now();
      record.longestWait = 0;
      record.isRenewed = false;
      record.pause = record.hasReplied ? REPEAT_REPLIED_MILLISECONDS : REPEAT_MILLISECONDS;
      return this.#askAnew(record, timeout, fields) ? timeout : 0;
    }
    if (!record.timedOut) return timeout;
    const left = record.requestedAt + UNRESPONSIVE_MILLISECONDS - this.#now();
    if (left > 0 && isLonger(timeout, record.longestWait)) {
      // A new request, because the answer to the one that has timed out may be older than this call.
      if (!record.isRenewed && !this.#askAnew(record, timeout, fields)) return 0;
      record.isRenewed = true;
      return Math.min(timeout, left);
    }
    this.#repeat(record, timeout, fields);
    return 0;
  }

  /**
   * Sends the outstanding request again, if there is one, to a worker that has a new link: the request or its
   * answer may be lost.
   *
   * @param {WorkerRecord} record
   * @param {RequestFields} fields
   */
  askAgain(record, fields) {
    if (record.outstanding === 0) return;
    this.#send(record, Math.max(record.deadline - this.#now(), 1), fields);
  }

  /**
   * Notes that a scrape has waited for the worker and timed out.
   *
   * @param {WorkerRecord | undefined} record
   * @param {number} waited milliseconds
   */
  timeOut(record, waited) {
    if (record === undefined || record.outstanding === 0) return;
    record.timedOut = true;
    record.longestWait = Math.max(record.longestWait, waited);
    debug('worker %d does not answer in time', record.worker.id);
  }

  /**
   * Ends the outstanding request if a response belongs to it.
   *
   * @param {WorkerRecord} record
   * @param {unknown} requestId of the response
   * @returns {boolean} false if nobody asked for it, or nobody does any more
   */
  settle(record, requestId) {
    if (record.outstanding === 0 || requestId !== record.outstanding) return false;
    record.outstanding = 0;
    record.timedOut = false;
    record.hasReplied = true;
    return true;
  }

  /**
   * @param {WorkerRecord} record
   * @param {number} timeout
   * @param {RequestFields} fields
   * @returns {boolean} false if the request could not be sent
   */
  #askAnew(record, timeout, fields) {
    record.outstanding = this.#nextId++;
    this.#send(record, timeout, fields);
    return record.longestWait < Infinity;
  }

  /**
   * Node drops what is sent to a process that does not listen yet, so a worker that has never replied may
   * have loaded the library since. One that has replied may have lost the request. No scrape waits for
   * either.
   *
   * @param {WorkerRecord} record
   * @param {number} timeout
   * @param {RequestFields} fields
   */
  #repeat(record, timeout, fields) {
    if (this.#now() - record.askedAt < record.pause) return;
    const longest = record.hasReplied ? LONGEST_PAUSE_MILLISECONDS : REPEAT_MILLISECONDS;
    record.pause = Math.min(record.pause * 2, longest);
    this.#send(record, timeout, fields);
  }

  /**
   * @param {WorkerRecord} record
   * @param {number} timeout
   * @param {RequestFields} fields
   */
  #send(record, timeout, fields) {
    record.askedAt = this.#now();
    record.deadline = record.askedAt + timeout;
    const { worker, outstanding: requestId, exitName, position } = record;
    const directory = record.overIpc ? '' : fields.directory;
    record.overIpc = false;
    const request = { type: REQUEST, requestId, exitName, known: position, timeout, ...fields, directory };
    send(worker, { ...request, ...ownFields(record) }, error => {
      if (!error) return;
      // It is sent again after the pause.
      record.timedOut = true;
      record.longestWait = Infinity;
      this.#onUnreachable(worker.id);
    });
  }
}

module.exports = { WorkerRequests };
