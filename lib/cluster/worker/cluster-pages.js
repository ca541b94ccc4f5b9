'use strict';

// Runs in the worker. The cluster's page for callers in this process: asks the primary for it, and reads the
// file that the aggregator has written. Concurrent callers share pages; none gets numbers older than its
// call.

const fs = require('node:fs');
const path = require('node:path');
const { unavailable } = require('../../registry/unavailable');
const { runInSlices } = require('../../event-loop/slices');
const { timedSection } = require('../../event-loop/timed-section');
const { PAGE } = require('../wire/messages');
const { isPageNameOf } = require('../../spool/file-names');
const { ScrapeCaller, isListOfNames } = require('../wire/scrape-callers');
const { TOO_MANY_SELECTIONS, hasTooManySelections } = require('../../exposition/page-format');
const { readInSteps, checkDirectory } = require('../../spool/safe-files');
const { withHookFailures } = require('../../exposition/page-bytes');
const { debug } = require('../../options/debug-log');

const NOBODY_AGGREGATES =
  "Nobody aggregates this cluster's metrics: create an AggregatorRegistry of prom-client-cluster in the primary.";

const TOO_MANY_NAMES = 'names are too many: a worker can ask for 10,000 metrics, in a million characters.';

// A primary that aggregates says so when a worker comes online. The first callers in a worker that has just
// started wait for that.
const START_MILLISECONDS = 2000;

// The primary refuses more.
const MAX_UNANSWERED = 16;

// As in the primary: a page that takes longer waits for a slow worker, and later callers do not wait for it.
const OVERLAP_MILLISECONDS = 250;

// How long after its deadline a caller may get a page: the primary pauses for up to 250 ms between two pages
// of one worker, and may take 2 seconds for the text.
const GRACE_MILLISECONDS = 3000;

const TIME_IS_UP = Symbol('time is up');

const INVALID_ANSWER = 'the answer of the primary is not valid';

// A page of a million series has some 150 MB.
const MAX_PAGE_BYTES = 2 ** 29;

// Reading a file fails so if its directory is another user's, or in another container.
const OTHER_PLACE_CODES = new Set(['EACCES', 'EPERM', 'ENOENT', 'ENOTDIR']);

// Of all requests of this process: a process of a group may lose its link and get another one to the same
// primary, which still answers what was requested before.
let lastPageId = 0;

/** @typedef {import('../../exposition/page-bytes').PageBytes} PageBytes */
/** @typedef {import('../wire/scrape-callers').Format} Format */

/** A page that was requested, or is going to be. Concurrent callers share it. */
class PendingPage extends ScrapeCaller {
  /**
   * @param {Format} format
   * @param {number} timeout milliseconds until the last known numbers are used; 0 for callers whose time is
   *   up, who do not share pages with those who wait longer
   */
  constructor(format, timeout) {
    super(format, timeout);
    this.sharingKey = timeout > 0 ? this.key : `${this.key} at once`;
  }

  sentAt = 0; // by performance.now()
  /** Whether the primary sends it in messages. */
  inParts = false;
  /** @type {Buffer[]} that have come */
  parts = [];
}

class ClusterPages {
  #link;
  #startedAt = performance.now();
  /** Whether the primary answers requests. */
  #isAnswered = false;
  /** @type {((value?: unknown) => void)[]} called when the primary has said so */
  #onAnnounced = [];
  /** The primary's. */
  #directory = '';
  /** Directory that this process cannot read. */
  #unreadable = '';
  /** @type {Map<string, PendingPage>} by format, not requested yet */
  #waiting = new Map();
  /** @type {Map<number, PendingPage>} by id, requested and not answered */
  #unanswered = new Map();
  /** @type {NodeJS.Timeout | undefined} */
  #overlap = undefined;

  /** @param {Omit<import('../links/ipc').Link, 'user'>} link to the primary */
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
    if (format.names !== undefined && !isListOfNames(format.names)) throw new RangeError(TOO_MANY_NAMES);
    const patience = Math.min(this.#startedAt + START_MILLISECONDS - performance.now(), timeout);
    if (!this.#isAnswered && patience > 0)
      await new Promise(resolve => this.#onAnnounced.push(resolve) && setTimeout(resolve, patience));
    if (!this.#isAnswered || !this.#link.isConnected()) throw unavailable(NOBODY_AGGREGATES);
    return this.#shared(format, timeout);
  }

  /**
   * @param {Format} format
   * @param {number} timeout
   * @returns {Promise<any>}
   */
  #shared(format, timeout) {
    const page = new PendingPage(format, timeout);
    const shared = this.#waiting.get(page.sharingKey);
    if (shared !== undefined) {
      shared.deadline = Math.max(shared.deadline, page.deadline);
      return this.#until(page.deadline, shared);
    }
    // Any client of a public port can ask for some of the metrics only. They do not delay those who ask for
    // all.
    const formats = Array.from(this.#waiting.values(), other => other.format);
    if (hasTooManySelections(formats, format)) return Promise.reject(unavailable(TOO_MANY_SELECTIONS));
    this.#waiting.set(page.sharingKey, page);
    this.#requestWaiting();
    return this.#until(page.deadline, page);
  }

  /**
   * @param {number} deadline of a caller, by performance.now()
   * @param {PendingPage} page whose other callers may wait longer
   * @returns {Promise<any>} the page or, if it has not come by then, one with the last known numbers
   */
  async #until(deadline, page) {
    /** @type {NodeJS.Timeout | undefined} */
    let timer;
    const timeIsUp = new Promise(resolve => {
      timer = setTimeout(resolve, Math.max(deadline - performance.now(), 1), TIME_IS_UP);
    });
    const first = await Promise.race([page.promise, timeIsUp]).finally(() => clearTimeout(timer));
    if (first !== TIME_IS_UP) return first;
    // Otherwise the primary answers about now.
    return page.deadline > deadline + OVERLAP_MILLISECONDS ? this.#shared(page.format, 0) : page.promise;
  }

  /** @param {any} message of the primary */
  receive(message) {
    const { directory, pages } = message;
    if (typeof directory === 'string') this.#directory = directory;
    if (typeof pages === 'boolean') {
      this.#isAnswered = pages;
      for (const resolve of this.#onAnnounced.splice(0)) resolve();
      if (!pages) this.rejectAll(unavailable(NOBODY_AGGREGATES));
    }
    if (message.type === PAGE && message.pageId !== undefined) this.#receivePage(message);
  }

  /** @param {Error} error why the primary answers no more */
  rejectAll(error) {
    for (const pages of [this.#waiting, this.#unanswered]) {
      for (const page of pages.values()) page.reject(error);
      pages.clear();
    }
  }

  /** @param {any} message of type PAGE */
  #receivePage(message) {
    const { pageId, file, part, error, reason } = message;
    const page = this.#unanswered.get(pageId);
    if (page === undefined) {
      // Its callers do not wait any more.
      if (isPageNameOf(file, this.#link.id, pageId)) this.#remove(file);
    } else if (typeof part === 'string') {
      this.#takePart(pageId, page, message);
    } else {
      this.#unanswered.delete(pageId);
      if (isPageNameOf(file, this.#link.id, pageId)) void this.#readFile(page, message);
      else if (typeof error === 'string')
        page.reject(typeof reason === 'string' ? unavailable(error, reason) : new Error(error));
      else page.resolve(undefined);
    }
    this.#requestWaiting();
  }

  /** Requests what callers wait for, unless the same page was requested a moment ago. */
  #requestWaiting() {
    clearTimeout(this.#overlap);
    let pause = Infinity;
    for (const [key, page] of this.#waiting) {
      if (this.#unanswered.size >= MAX_UNANSWERED) return;
      const same = [...this.#unanswered.values()].filter(page => page.sharingKey === key);
      const left = Math.max(...same.map(({ sentAt }) => sentAt + OVERLAP_MILLISECONDS)) - performance.now();
      if (left > 0) pause = Math.min(pause, left);
      else {
        this.#waiting.delete(key);
        this.#request(page);
      }
    }
    if (pause < Infinity) this.#overlap = setTimeout(() => this.#requestWaiting(), Math.ceil(pause));
  }

  /** @param {PendingPage} page */
  #request(page) {
    if (!this.#link.isConnected()) {
      page.reject(unavailable(NOBODY_AGGREGATES));
      return;
    }
    const pageId = ++lastPageId;
    this.#unanswered.set(pageId, page);
    page.sentAt = performance.now();
    page.parts = [];
    page.inParts ||= this.#directory === this.#unreadable;
    page.afterDeadline(GRACE_MILLISECONDS, () => this.#giveUp(pageId, page));
    const { format, timeLeft: timeout, inParts } = page;
    try {
      this.#link.send({ type: PAGE, pageId, format, timeout, inParts });
    } catch (error) {
      // The program has replaced process.send().
      this.#unanswered.delete(pageId);
      page.reject(/** @type {Error} */ (error));
    }
  }

  /**
   * @param {number} pageId
   * @param {PendingPage} page
   */
  #giveUp(pageId, page) {
    this.#unanswered.delete(pageId);
    page.reject(unavailable('Operation timed out.', 'The metrics of the cluster were not ready in time.'));
    this.#requestWaiting();
  }

  /**
   * @param {number} pageId
   * @param {PendingPage} page
   * @param {any} message
   */
  #takePart(pageId, page, message) {
    const { part, bytes } = message;
    page.parts.push(Buffer.from(part, 'base64'));
    const length = page.parts.reduce((sum, each) => sum + each.length, 0);
    if (length < bytes && length <= MAX_PAGE_BYTES) return;
    this.#unanswered.delete(pageId);
    if (length === bytes) page.resolve(pageOf(Buffer.concat(page.parts), message));
    else page.reject(new Error(INVALID_ANSWER));
  }

  /**
   * Reads and removes the file of a page. If that fails, the page is requested again, in parts, once.
   *
   * @param {PendingPage} page
   * @param {any} message
   */
  async #readFile(page, message) {
    const { file, bytes } = message;
    const directory = this.#directory;
    try {
      checkDirectory(directory);
      const steps = readInSteps(path.join(directory, file), MAX_PAGE_BYTES);
      const content = await runInSlices(steps, undefined, slice => timedSection('worker:page', slice));
      if (content.length !== bytes) throw new Error(`${content.length} bytes instead of ${bytes}`);
      page.resolve(pageOf(content, message));
    } catch (error) {
      debug('a page cannot be read: %s', error);
      if (OTHER_PLACE_CODES.has(/** @type {any} */ (error).code)) this.#unreadable = directory;
      if (page.inParts) page.reject(new Error(INVALID_ANSWER));
      else {
        page.inParts = true;
        this.#request(page);
      }
    }
    this.#remove(file);
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

/**
 * @param {Buffer} bytes
 * @param {any} message of type PAGE
 * @returns {PageBytes}
 */
function pageOf(bytes, { ascii, hookFailures }) {
  const failures = Array.isArray(hookFailures) ? hookFailures.filter(isHookFailure) : undefined;
  return withHookFailures({ bytes, ascii: ascii === true }, failures);
}

/** @param {any} failure */
function isHookFailure(failure) {
  return typeof failure?.[0] === 'string' && typeof failure[1] === 'number';
}

module.exports = { ClusterPages };
