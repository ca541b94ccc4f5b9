'use strict';

// Runs on the primary's loop. Answers workers that ask for the cluster's page. The page is a caller of a
// round like any other, but the aggregator writes it to a file, and the worker gets the file's name. If no
// file can be written or read, the worker gets the page in parts.

const { isOnline, send } = require('./worker-record');
const { reasonOf } = require('../../registry/unavailable');
const { textOf } = require('../../options/thrown');
const { pause } = require('../../event-loop/timers');
const { timedSection } = require('../../event-loop/timed-section');
const { formatOf } = require('../../exposition/formats');
const { HOOK_FAILURES } = require('../../exposition/page-bytes');
const { PAGE } = require('../wire/messages');
const { pageName } = require('../../spool/file-names');
const { isListOfNames } = require('../wire/scrape-callers');

// The port of a worker may be public. However often it is asked, it starts no more than one round in this
// time.
const PAUSE_MILLISECONDS = 250;

// A worker asks for at most 16 pages at a time (worker/cluster-pages.js).
const MAX_UNANSWERED = 16;

// One part is on the channel at a time, so a connection that the primary hands over waits for at most one. A
// part holds the primary's loop for 0.2 to 0.3 ms. In parts, a page of 1 MB takes 4 to 7 ms of the primary's
// CPU time, as a file 0.2 to 0.3 ms.
const PART_BYTES = 49_152;

/** @typedef {import('./worker-record').WorkerRecord} WorkerRecord */
/** @typedef {import('../wire/scrape-callers').Format} Format */
/** @typedef {import('../wire/scrape-callers').PageFile} PageFile */
/** @typedef {import('../wire/scrape-callers').Bytes} Bytes */

/**
 * @typedef {object} ReadRequest
 * @property {number} pageId
 * @property {Format} format
 * @property {number} timeout milliseconds
 * @property {boolean} inParts
 */

/**
 * The page requests of one worker.
 *
 * @typedef {object} Queue
 * @property {number} unanswered requests
 * @property {number} startedAt when the last ones started, by performance.now()
 * @property {Promise<void> | undefined} turn when those start that wait
 */

class PageRequests {
  #rounds;
  #supervisor;
  /** @type {WeakMap<WorkerRecord, Queue>} */
  #queues = new WeakMap();

  /**
   * @param {Pick<import('./scrape-rounds').ScrapeRounds, 'collect'>} rounds
   * @param {Pick<import('./aggregator-supervisor').AggregatorSupervisor, 'directory' | 'discard'>} supervisor
   */
  constructor(rounds, supervisor) {
    this.#rounds = rounds;
    this.#supervisor = supervisor;
  }

  /**
   * @param {WorkerRecord} record
   * @param {any} message of type PAGE
   * @returns {boolean} false if it is not a valid request, or one too many
   */
  receive(record, message) {
    const request = readRequest(message);
    const queue = this.#queueOf(record);
    if (request === undefined || queue.unanswered >= MAX_UNANSWERED) return false;
    queue.unanswered++;
    this.#turnOf(queue)
      .then(() => this.#answer(record, request))
      .finally(() => queue.unanswered--);
    return true;
  }

  /** @param {WorkerRecord} record */
  #queueOf(record) {
    const queue = this.#queues.get(record) ?? { unanswered: 0, startedAt: -Infinity, turn: undefined };
    this.#queues.set(record, queue);
    return queue;
  }

  /**
   * Requests that come within the pause after an earlier one start together, at its end. The pause is not
   * part of their timeouts: the numbers of workers that answer at once are never old ones.
   *
   * @param {Queue} queue
   * @returns {Promise<void>} one promise for all of them: they share a round, which starts in the same turn
   *   of the loop
   */
  #turnOf(queue) {
    const wait = queue.startedAt + PAUSE_MILLISECONDS - performance.now();
    queue.turn ??= (wait > 0 ? pause(wait) : Promise.resolve()).then(() => {
      queue.startedAt = performance.now();
      queue.turn = undefined;
    });
    return queue.turn;
  }

  /**
   * @param {WorkerRecord} record
   * @param {ReadRequest} request
   * @returns {Promise<void>} never rejected
   */
  async #answer(record, { pageId, format, timeout, inParts }) {
    const { worker } = record;
    if (!isOnline(worker)) return;
    const isFile = !inParts && this.#supervisor.directory !== '';
    const file = isFile ? pageName(worker.id, pageId) : undefined;
    try {
      /** @type {any} */
      const collected = await this.#rounds.collect({ ...format, file }, timeout);
      /** @type {Bytes | PageFile | undefined} */
      const page = collected;
      if (page === undefined) send(worker, { type: PAGE, pageId });
      else if ('bytes' in page) await sendParts(worker, pageId, page);
      else if (!isOnline(worker)) this.#supervisor.discard(page.file);
      else {
        const { file, length: bytes, ascii } = page;
        send(worker, { type: PAGE, pageId, file, bytes, ascii, hookFailures: collected[HOOK_FAILURES] });
      }
    } catch (error) {
      // Anything that an aggregator of the application has thrown.
      const reason = reasonOf(error);
      const line = reason === undefined ? undefined : textOf(reason);
      send(worker, { type: PAGE, pageId, error: textOf(error), reason: line });
    }
  }
}

/**
 * @param {import('node:cluster').Worker} worker
 * @param {number} pageId
 * @param {Bytes} page
 * @returns {Promise<void>} resolves when all parts were sent, or the worker is gone
 */
async function sendParts(worker, pageId, { bytes, ascii, [HOOK_FAILURES]: hookFailures }) {
  let start = 0;
  do {
    await new Promise(resolve =>
      timedSection('primary:page-part', () => {
        const end = Math.min(start + PART_BYTES, bytes.length);
        const part = bytes.toString('base64', start, end);
        const last = end === bytes.length ? { hookFailures } : {};
        send(worker, { type: PAGE, pageId, part, bytes: bytes.length, ascii, ...last }, resolve);
      }),
    );
    start += PART_BYTES;
  } while (start < bytes.length && isOnline(worker));
}

/**
 * Every field is checked, because a worker may run another release, or be compromised.
 *
 * @param {any} message of type PAGE
 * @returns {ReadRequest | undefined} undefined if it is not valid
 */
function readRequest({ pageId, format, timeout, inParts }) {
  if (!Number.isSafeInteger(pageId) || pageId < 1 || typeof format !== 'object' || format === null) return;
  if (typeof timeout !== 'number' || !(timeout >= 0)) return;
  const { format: formatName, gzip, selfMetrics, names } = format;
  if (formatOf(formatName).name !== formatName) return;
  if (names !== undefined && !isListOfNames(names)) return;
  const flags = { format: formatName, gzip: gzip === true, selfMetrics: selfMetrics === true };
  return { pageId, format: { ...flags, names }, timeout, inParts: inParts === true };
}

module.exports = { PageRequests };
