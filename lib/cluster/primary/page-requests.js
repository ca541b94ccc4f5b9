'use strict';

// Runs on the primary's loop. Answers workers that ask for the cluster's page. A request is a caller of a
// round like any other, but the aggregator writes its page to a file, and the worker gets the file's name. If
// no file can be written or read, the worker gets the page itself.

const { isOnline, send } = require('./worker-record');
const { unavailable, reasonOf } = require('../../registry/unavailable');
const { textOf } = require('../../options/thrown');
const { pause } = require('../../event-loop/timers');
const { Batches } = require('../../event-loop/batches');
const { formatOf } = require('../../exposition/formats');
const { FACTS } = require('../../exposition/page-bytes');
const { PAGE, MAX_UNANSWERED_PAGES } = require('../wire/messages');
const { pageName } = require('../../spool/file-names');
const { isListOfNames } = require('../wire/scrape-callers');

// The port of a worker may be public. However often a worker is scraped, it starts at most one round in this
// time. Timeouts start after the pause, so the pause makes no worker's numbers stale.
const PAUSE_MILLISECONDS = 250;

// A message of 16 MiB blocks the primary's loop for some 30 ms.
const MAX_BYTES_IN_MESSAGE = 2 ** 24;

const TOO_LONG = 'The page cannot be written to a file, and is too long for a message. See docs/cluster.md.';

/** @typedef {import('./worker-record').WorkerRecord} WorkerRecord */
/** @typedef {import('../wire/scrape-callers').Format} Format */
/** @typedef {import('../wire/scrape-callers').PageFile} PageFile */
/** @typedef {import('../wire/scrape-callers').Bytes} Bytes */

/**
 * @typedef {object} ReadRequest
 * @property {number} pageId
 * @property {Format} format
 * @property {number} timeout milliseconds
 * @property {boolean} inMessage because the worker cannot read files of the primary
 */

/** @typedef {{unanswered: number, starts: Batches<() => void>}} Queue the page requests of one worker */

class PageRequests {
  #rounds;
  #supervisor;

  /**
   * @param {Pick<import('./scrape-rounds').ScrapeRounds, 'collect'>} rounds
   * @param {Pick<import('./aggregator-supervisor').AggregatorSupervisor, 'directory' | 'send'>} supervisor
   */
  constructor(rounds, supervisor) {
    this.#rounds = rounds;
    this.#supervisor = supervisor;
  }

  /**
   * @param {WorkerRecord} record
   * @param {any} message of type PAGE
   * @returns {boolean} false if the request is not valid, or the worker has too many
   */
  receive(record, message) {
    const request = readRequest(message);
    const queue = (record.pages ??= { unanswered: 0, starts: pacedStarts() });
    if (request === undefined || queue.unanswered >= MAX_UNANSWERED_PAGES) return false;
    queue.unanswered++;
    queue.starts.add(() => void this.#answer(record, request).then(() => queue.unanswered--));
    return true;
  }

  /**
   * @param {WorkerRecord} record
   * @param {ReadRequest} request
   * @returns {Promise<void>} never rejected
   */
  async #answer({ worker }, request) {
    const { pageId } = request;
    try {
      if (isOnline(worker)) send(worker, { type: PAGE, pageId, ...(await this.#collect(worker, request)) });
    } catch (error) {
      // The error may be anything that an aggregator of the application has thrown.
      const reason = reasonOf(error);
      const line = reason === undefined ? undefined : textOf(reason);
      const code = line === undefined ? undefined : /** @type {any} */ (error).code;
      send(worker, { type: PAGE, pageId, error: textOf(error), reason: line, code });
    }
  }

  /**
   * @param {import('node:cluster').Worker} worker
   * @param {ReadRequest} request
   * @returns {Promise<object | undefined>} fields of the answer; undefined if there are no metrics
   */
  async #collect(worker, { pageId, format, timeout, inMessage }) {
    const isFile = !inMessage && this.#supervisor.directory !== '';
    const file = isFile ? pageName(worker.id, pageId) : undefined;
    /** @type {any} */
    const collected = await this.#rounds.collect({ ...format, file }, timeout);
    /** @type {Bytes | PageFile | undefined} */
    const page = collected;
    if (page === undefined) return undefined;
    const { hookFailures, hasNative } = collected[FACTS];
    const fields = { hookFailures, hasNative: hasNative || undefined };
    if ('file' in page) {
      if (!isOnline(worker)) this.#supervisor.send('discard', page.file);
      return { file: page.file, bytes: page.length, ...fields };
    }
    if (page.length > MAX_BYTES_IN_MESSAGE) throw unavailable(TOO_LONG);
    return { page: page.toString('base64'), ...fields };
  }
}

/**
 * Functions that each ask for a page are called together, and then none for some time.
 *
 * @returns {Batches<() => void>}
 */
function pacedStarts() {
  return new Batches(starts => {
    for (const start of starts) start();
    return pause(PAUSE_MILLISECONDS);
  }, PAUSE_MILLISECONDS);
}

/**
 * Every field is checked, because a worker may run another release, or be compromised.
 *
 * @param {any} message of type PAGE
 * @returns {ReadRequest | undefined} undefined if it is not valid
 */
function readRequest({ pageId, format, timeout, inMessage }) {
  if (!Number.isSafeInteger(pageId) || pageId < 1 || typeof format !== 'object' || format === null) return;
  if (typeof timeout !== 'number' || !(timeout >= 0)) return;
  const { format: formatName, nativeFormat = formatName, gzip, selfMetrics, names } = format;
  if ([formatName, nativeFormat].some(name => formatOf(name).name !== name)) return;
  if (names !== undefined && !isListOfNames(names)) return;
  const flags = { format: formatName, nativeFormat, gzip: gzip === true, selfMetrics: selfMetrics === true };
  return { pageId, format: { ...flags, names }, timeout, inMessage: inMessage === true };
}

module.exports = { PageRequests, pacedStarts };
