'use strict';

// Runs on the primary's loop. Sends welcomes to workers, and reads their messages: passes their answers on to
// the aggregator, or counts why an answer cannot be used.

const { readAnswer, readHookMilliseconds, countReason, NOT_UNDERSTOOD } = require('./worker-answer');
const { send } = require('./worker-record');
const { timedSection } = require('../../event-loop/timed-section');
const { RESPONSE, WELCOME, LAST, PAGE, hasType } = require('../wire/messages');
const { isColumnsNameOf } = require('../../spool/file-names');
const { debug } = require('../../options/debug-log');

// Last columns stay in the primary's memory until the worker has died. This is enough for three million
// numbers.
const MAX_LAST_CHARACTERS = 2 ** 25;

/** @typedef {import('./worker-record').WorkerRecord} WorkerRecord */

class WorkerMessages {
  #supervisor;
  #requests;
  #pageRequests;
  #checkpointInterval;
  #onAnswered;

  /**
   * @param {object} options
   * @param {import('./aggregator-supervisor').AggregatorSupervisor} options.supervisor
   * @param {import('./worker-requests').WorkerRequests} options.requests
   * @param {import('./page-requests').PageRequests} options.pageRequests
   * @param {number | undefined} options.checkpointInterval
   * @param {(record: WorkerRecord, isUsable: boolean, hooksBegan: number) => void} options.onAnswered see
   *   ScrapeRounds.settle()
   */
  constructor({ supervisor, requests, pageRequests, checkpointInterval, onAnswered }) {
    this.#supervisor = supervisor;
    this.#requests = requests;
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
    send(worker, { type: WELCOME, ...this.fields });
  }

  /** @param {WorkerRecord} record of a worker that gets no pages any more */
  dismiss({ worker }) {
    send(worker, { type: PAGE, pages: false });
  }

  /** @returns {import('./worker-requests').RequestFields} */
  get fields() {
    const { directory } = this.#supervisor;
    return { directory, pages: true, checkpointInterval: this.#checkpointInterval };
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
    if (!this.#requests.settle(record, requestId)) {
      // The response may answer a request of other code. A snapshot that came too late is removed.
      if (isColumnsNameOf(message.file, workerId, requestId)) this.#supervisor.send('discard', message.file);
      return;
    }
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
