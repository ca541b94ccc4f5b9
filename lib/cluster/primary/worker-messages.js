'use strict';

// Runs on the primary's loop. The messages to and from workers. Their answers are passed on to the
// aggregator, or it is counted why an answer cannot be used. At most one request is outstanding per worker,
// and all scrapes share it. The time that a scrape waits for a worker counts from when the worker was first
// asked. So a worker that hangs delays scrapes by one timeout in total, and a scrape with a longer timeout
// still waits for a worker that has missed a shorter one.

const { readAnswer, readHookMilliseconds, countReason, NOT_UNDERSTOOD } = require('./worker-answer');
const { send } = require('./worker-record');
const { timedSection } = require('../../event-loop/timed-section');
const { REQUEST, RESPONSE, WELCOME, LAST, PAGE, hasType } = require('../wire/messages');
const { isColumnsNameOf } = require('../../spool/file-names');
const { debug } = require('../../options/debug-log');

// Last columns stay in the primary's memory until the worker has died. This is enough for three million
// numbers.
const MAX_LAST_CHARACTERS = 2 ** 25;

// After this time, the request is sent again to an unresponsive worker. Not with each scrape, because
// messages queue up in a stopped process.
const REPEAT_MILLISECONDS = 5000;

// A worker that has missed a deadline and has not answered for this time hangs: no scrape waits for it,
// whatever its timeout.
const UNRESPONSIVE_MILLISECONDS = 5000;

/** @typedef {import('./worker-record').WorkerRecord} WorkerRecord */

class WorkerMessages {
  #nextId = 1;
  #supervisor;
  #pageRequests;
  #checkpointInterval;
  #onAnswered;

  /**
   * @param {object} options
   * @param {import('./aggregator-supervisor').AggregatorSupervisor} options.supervisor
   * @param {import('./page-requests').PageRequests} options.pageRequests
   * @param {number | undefined} options.checkpointInterval
   * @param {(record: WorkerRecord, isUsable: boolean, hooksBegan?: number) => void} options.onAnswered see
   *   ScrapeRounds.settle(); also called when a request could not be sent
   */
  constructor({ supervisor, pageRequests, checkpointInterval, onAnswered }) {
    this.#supervisor = supervisor;
    this.#pageRequests = pageRequests;
    this.#checkpointInterval = checkpointInterval;
    this.#onAnswered = onAnswered;
    /** @type {Map<string, number>} answers that were refused here, by reason */
    this.refused = new Map();
    /** @type {Map<string, number>} snapshots that came over IPC, by the reason why there was no file */
    this.overIpc = new Map();
  }

  /** @param {WorkerRecord} record */
  welcome({ worker }) {
    send(worker, { type: WELCOME, ...this.#fields });
  }

  /** @param {WorkerRecord} record of a worker that gets no pages any more */
  dismiss({ worker }) {
    send(worker, { type: PAGE });
  }

  /** What all workers are told. */
  get #fields() {
    const { directory } = this.#supervisor;
    return { directory, checkpointInterval: this.#checkpointInterval };
  }

  /**
   * Asks a worker, unless it has been asked already.
   *
   * @param {WorkerRecord} record
   * @param {number} timeout milliseconds that the scrape waits at most
   * @returns {number} milliseconds that the scrape waits for this worker; 0 if it does not
   */
  ask(record, timeout) {
    const now = performance.now();
    if (record.outstanding === 0) {
      record.outstanding = this.#nextId++;
      record.requestedAt = now;
      this.#request(record, timeout);
      return record.outstanding === 0 ? 0 : timeout;
    }
    const patience = record.timedOut ? Math.min(timeout, UNRESPONSIVE_MILLISECONDS) : timeout;
    const left = record.requestedAt + patience - now;
    // Node drops messages to a process that does not listen yet. So a worker that has never replied may have
    // loaded the library after the request, and one that has replied before may have lost it.
    if (left <= 0 && now - record.askedAt >= REPEAT_MILLISECONDS) this.#request(record, timeout);
    return Math.max(left, 0);
  }

  /**
   * @param {WorkerRecord} record
   * @param {number} timeout
   */
  #request(record, timeout) {
    record.askedAt = performance.now();
    const { worker, outstanding: requestId, position: known, badLog, ended } = record;
    const directory = record.overIpc ? '' : this.#fields.directory;
    record.overIpc = false;
    const request = { type: REQUEST, requestId, known, badLog, ended, timeout, ...this.#fields, directory };
    send(worker, request, error => {
      if (!error || record.outstanding !== requestId) return;
      // The next scrape asks again.
      record.outstanding = 0;
      record.timedOut = true;
      this.#onAnswered(record, false);
    });
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
   * Whatever a worker sends, this must not throw into the application's 'message' event.
   *
   * @param {WorkerRecord} record
   * @param {any} message
   */
  receive(record, message) {
    try {
      if (!hasType(message)) return;
      if (message.type === LAST) this.#onLast(record, message);
      if (message.type === PAGE) {
        const isTaken = timedSection('primary:page', () => this.#pageRequests.receive(record, message));
        if (!isTaken) countReason(this.refused, NOT_UNDERSTOOD.refused);
      }
      if (message.type === RESPONSE) timedSection('primary:answer', () => this.#onResponse(record, message));
    } catch (error) {
      debug('a message of worker %d failed: %s', record.worker.id, error);
    }
  }

  /**
   * @param {WorkerRecord} record
   * @param {any} message
   */
  #onResponse(record, message) {
    const workerId = record.worker.id;
    const { requestId } = message;
    if (record.outstanding === 0 || requestId !== record.outstanding) {
      // The response may answer a request of other code. A snapshot that came too late is removed.
      if (isColumnsNameOf(message.file, workerId, requestId)) this.#supervisor.send('discard', message.file);
      return;
    }
    record.outstanding = 0;
    record.timedOut = false;
    const { answer, overIpc, refused, error } = readAnswer(message, workerId, requestId);
    if (overIpc !== undefined) countReason(this.overIpc, overIpc);
    record.sendsSources ||= answer !== undefined && answer.metrics === undefined;
    if (answer !== undefined) this.#passOn(record, answer);
    else this.#refuse(record, refused, error);
    const now = performance.now();
    if (record.error === undefined) record.answeredAt = now;
    // Whatever the worker reports, its hooks cannot have started before it was asked.
    const hooksBegan = Math.max(now - readHookMilliseconds(message), record.requestedAt);
    this.#onAnswered(record, record.error === undefined, hooksBegan);
  }

  /**
   * Stores a worker's last columns. They are applied when the worker has died, because until then the thread
   * may be lost.
   *
   * @param {WorkerRecord} record
   * @param {any} message
   */
  #onLast(record, message) {
    const { answer: { source } = {}, overIpc } = readAnswer(message, record.worker.id, 0);
    if (source === undefined || overIpc === undefined || source.length > MAX_LAST_CHARACTERS) {
      countReason(this.refused, NOT_UNDERSTOOD.refused);
      return;
    }
    countReason(this.overIpc, overIpc);
    record.lastSource = source;
  }

  /**
   * @param {WorkerRecord} record
   * @param {import('../../aggregator/aggregator').Answer} answer
   */
  #passOn(record, answer) {
    try {
      this.#supervisor.send('answer', answer);
      record.error = undefined;
    } catch (error) {
      // JSON that is nested too deeply cannot be sent to a thread.
      debug('an answer of worker %d cannot be passed on: %s', record.worker.id, error);
      this.#refuse(record, NOT_UNDERSTOOD.refused, NOT_UNDERSTOOD.error);
    }
  }

  /**
   * @param {WorkerRecord} record
   * @param {string | undefined} reason
   * @param {string | undefined} error
   */
  #refuse(record, reason, error) {
    record.error = error;
    debug('worker %d failed: %s', record.worker.id, error);
    if (reason !== undefined) countReason(this.refused, reason);
  }
}

module.exports = { WorkerMessages };
