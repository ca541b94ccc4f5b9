'use strict';

// Runs in the worker. Gets the cluster's page for callers in this process: asks the primary for it, and reads
// the file that the aggregator has written. Concurrent callers share pages; none gets numbers older than its
// call.

const fs = require('node:fs');
const path = require('node:path');
const { codeNamed, invalidOption } = require('../../options/coded-error');
const { unavailable, timedOut } = require('../../registry/unavailable');
const { coalesce } = require('../../registry/coalesce');
const { runInSlices } = require('../../event-loop/slices');
const { timedSection } = require('../../event-loop/timed-section');
const { PAGE, MAX_UNANSWERED_PAGES } = require('../wire/messages');
const { isPageNameOf } = require('../../spool/file-names');
const { isListOfNames, MAX_TIMEOUT_MILLISECONDS } = require('../wire/scrape-callers');
const { readInSteps, checkDirectory, isOthers, codeOf } = require('../../spool/safe-files');
const { withFacts } = require('../../exposition/page-bytes');
const { debug } = require('../../options/debug-log');

const NOBODY_AGGREGATES =
  "Nobody aggregates this cluster's metrics: create an AggregatorRegistry of prom-client-cluster in the primary.";

const TOO_MANY_NAMES = 'names are too many: a worker can ask for 10,000 metrics, in a million characters.';

const TOO_MANY_PAGES = 'There are too many scrapes in this process at the moment.';

// A primary that aggregates announces it when a worker comes online. In a worker that has just started,
// callers wait up to this time for the announcement.
const START_MILLISECONDS = 2000;

// As in the primary: a page that takes longer is waiting for a slow worker, and later callers do not wait for
// that page.
const OVERLAP_MILLISECONDS = 250;

// How long after its deadline a caller may get a page: the primary pauses for up to 250 ms between two pages
// of one worker, and may take 2 seconds for the text.
const GRACE_MILLISECONDS = 3000;

// A page of a million series takes some 150 MB.
const MAX_PAGE_BYTES = 2 ** 29;

// Counts all requests of this process, over all links: in a group, a process that connects to the same leader
// again may still get answers to its earlier requests.
let lastPageId = 0;

/** @typedef {import('../../exposition/page-bytes').PageBytes} PageBytes */
/** @typedef {import('../wire/scrape-callers').Format} Format */

class ClusterPages {
  #link;
  #startedAt = performance.now();
  /** @type {Error | undefined} why the primary answers no requests */
  #refusal = unavailable(NOBODY_AGGREGATES, undefined, 'NO_AGGREGATOR');
  /** @type {((value?: unknown) => void)[]} called at the announcement of the primary */
  #onAnnounced = [];
  /** The primary's. */
  #directory = '';
  /** @type {Map<number, {resolve: (message: any) => void, reject: (error: Error) => void}>} by id */
  #unanswered = new Map();
  /**
   * Callers with different timeouts do not share pages, so each gets its page in time.
   *
   * @type {(request: Format & {timeout: number}) => Promise<PageBytes | undefined>}
   */
  #shared = coalesce(
    requests => requests.map(({ timeout, ...format }) => this.#request(format, timeout)),
    OVERLAP_MILLISECONDS,
  );

  /** @param {import('../links/ipc').Link} link to the primary */
  constructor(link) {
    this.#link = link;
  }

  /**
   * @param {Format} format
   * @param {number} timeout milliseconds after which the last known numbers of missing workers are used
   * @returns {Promise<PageBytes | undefined>} undefined if there are no metrics
   * @throws {RangeError} if there are too many names
   * @throws {Error} if the primary does not aggregate
   */
  async page(format, timeout) {
    if (format.names !== undefined && !isListOfNames(format.names))
      throw invalidOption(TOO_MANY_NAMES, RangeError);
    const patience = Math.min(this.#startedAt + START_MILLISECONDS - performance.now(), timeout);
    if (this.#refusal !== undefined && patience > 0)
      await new Promise(resolve => this.#onAnnounced.push(resolve) && setTimeout(resolve, patience));
    this.#checkPrimary();
    return this.#shared({ ...format, timeout: Math.min(timeout, MAX_TIMEOUT_MILLISECONDS) });
  }

  #checkPrimary() {
    if (this.#refusal !== undefined) throw this.#refusal;
    if (!this.#link.isConnected()) throw unavailable(NOBODY_AGGREGATES, undefined, 'NO_AGGREGATOR');
  }

  /** @param {any} message of the primary */
  receive(message) {
    const { type, directory, pageId, file } = message;
    if (typeof directory === 'string') {
      this.#directory = directory;
      this.#refusal = undefined;
      for (const resolve of this.#onAnnounced.splice(0)) resolve();
    }
    if (type !== PAGE) return;
    const request = this.#unanswered.get(pageId);
    if (pageId === undefined) this.rejectAll(unavailable(NOBODY_AGGREGATES, undefined, 'NO_AGGREGATOR'));
    else if (request !== undefined) request.resolve(message);
    // Nobody waits for this page any more.
    else if (isPageNameOf(file, this.#link.id, pageId)) this.#remove(file);
  }

  /** @param {Error} error why the primary does not answer any more */
  rejectAll(error) {
    this.#refusal = error;
    for (const { reject } of this.#unanswered.values()) reject(error);
  }

  /**
   * @param {Format} format
   * @param {number} timeout
   * @returns {Promise<PageBytes | undefined>}
   */
  async #request(format, timeout) {
    this.#checkPrimary();
    if (this.#unanswered.size >= MAX_UNANSWERED_PAGES) throw unavailable(TOO_MANY_PAGES);
    const pageId = ++lastPageId;
    /** @type {NodeJS.Timeout | undefined} */
    let timer;
    try {
      const message = await new Promise((resolve, reject) => {
        this.#unanswered.set(pageId, { resolve, reject });
        timer = setTimeout(reject, timeout + GRACE_MILLISECONDS, timedOut());
        // Files of another user cannot be read. send() may throw if the program has replaced process.send().
        this.#link.send({ type: PAGE, pageId, format, timeout, inMessage: isOthers(this.#directory) });
      });
      return await this.#pageIn(message);
    } finally {
      clearTimeout(timer);
      this.#unanswered.delete(pageId);
    }
  }

  /**
   * @param {any} message of type PAGE
   * @returns {Promise<PageBytes | undefined>}
   */
  async #pageIn({ pageId, file, bytes, page, hookFailures, hasNative, error, reason, code }) {
    if (typeof error === 'string')
      throw typeof reason === 'string' ? unavailable(error, reason, codeNamed(code)) : new Error(error);
    const isFile = isPageNameOf(file, this.#link.id, pageId);
    if (!isFile && typeof page !== 'string') return undefined;
    const content = isFile ? await this.#readFile(file, bytes) : Buffer.from(page, 'base64');
    const failures = Array.isArray(hookFailures) ? hookFailures.filter(isHookFailure) : undefined;
    return withFacts(content, { hookFailures: failures, hasNative: hasNative === true });
  }

  /**
   * Reads and removes the file of a page.
   *
   * @param {string} file
   * @param {unknown} bytes its length
   * @returns {Promise<Buffer>}
   */
  async #readFile(file, bytes) {
    const directory = this.#directory;
    try {
      checkDirectory(directory);
      const steps = readInSteps(path.join(directory, file), { maxBytes: MAX_PAGE_BYTES });
      const content = await runInSlices(steps, undefined, slice => timedSection('worker:page', slice));
      if (content.length === bytes) return content;
      throw new Error(`${content.length} bytes instead of ${bytes}`);
    } catch (error) {
      debug('a page cannot be read: %s', error);
      const reason = codeOf(error) ?? 'its length is wrong';
      throw unavailable(`The page that the primary has written cannot be read in this process: ${reason}.`);
    } finally {
      this.#remove(file);
    }
  }

  /** @param {string} file */
  #remove(file) {
    try {
      checkDirectory(this.#directory);
      fs.unlinkSync(path.join(this.#directory, file));
    } catch (error) {
      // The primary removes it when this worker has ended.
      debug('a page cannot be removed: %s', error);
    }
  }
}

/** @param {any} failure */
function isHookFailure(failure) {
  return typeof failure?.[0] === 'string' && typeof failure[1] === 'number';
}

module.exports = { ClusterPages };
