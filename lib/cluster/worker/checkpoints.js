'use strict';

// Runs in the worker. Writes the numbers that the primary reads after the worker has died. They are written
// in the process's 'exit' handler and, because a killed worker does not run that, at checkpoints and when the
// program announces its end. If no file can be written, they are sent over IPC, except at checkpoints.

const { ChangeDetector } = require('./change-detector');
const { inMessage } = require('./over-ipc');
const { LAST } = require('../wire/messages');
const { timedSection } = require('../../event-loop/timed-section');
const { debug } = require('../../options/debug-log');
const { MAX_TIMER, unref } = require('../../event-loop/timers');

const DEFAULT_INTERVAL = 1000;
// A message may ask for a shorter interval, but that would keep the event loop busy.
const SHORTEST_INTERVAL = 100;

/** Share of the event loop's time that checkpoints may take by default. */
const MAX_SHARE = 0.001;

/** @typedef {import('../../source/source').Source} Source */
/** @typedef {import('../../source/source-log').LogPosition} LogPosition */

class Checkpoints {
  #source;
  #link;
  #files;
  /**
   * @type {number | undefined} milliseconds; 0 for none; undefined for the default, which is longer if
   *   checkpoints take long
   */
  #interval = 0;
  /** @type {number | undefined} the interval that this program has set, if any */
  #ownInterval = undefined;
  #changes = new ChangeDetector();
  /**
   * How many milliseconds of the event loop's time each of the last checkpoints took. The smallest counts,
   * because the first one writes all label sets, and on a busy machine even two in a row may have waited for
   * a processor.
   */
  #costs = [0, 0, 0, 0];
  /** Milliseconds of the event loop's time that captures and the writing of their files have taken so far. */
  #spent = 0;
  /** @type {NodeJS.Timeout | undefined} */
  #timer = undefined;
  /** @type {Promise<void>} the last checkpoint: they are written one after the other */
  #writing = Promise.resolve();

  /**
   * @param {Source} source
   * @param {import('../links/ipc').Link} link to the primary
   * @param {import('./source-files').SourceFiles} files
   */
  constructor(source, link, files) {
    this.#source = source;
    this.#link = link;
    this.#files = files;
    /** @type {LogPosition | undefined} what the primary has of the log, for messages */
    this.readerPosition = undefined;
    /** Whether the primary expects the last numbers. */
    this.isWanted = false;
  }

  /** @param {unknown} interval from a message: milliseconds, 0 for none; the default unless it is a number */
  setInterval(interval) {
    this.isWanted = true;
    const valid = typeof interval === 'number' && interval >= 0 ? interval : undefined;
    const wanted = this.#ownInterval ?? valid;
    if (wanted === this.#interval) return;
    this.#interval = wanted;
    this.postpone();
  }

  /** @param {number} interval set by this program: it overrides those from messages */
  keepInterval(interval) {
    this.#ownInterval = interval;
    if (this.isWanted) this.setInterval(undefined);
  }

  /** Restarts the interval, because the numbers have just been written in answer to a request. */
  postpone() {
    clearTimeout(this.#timer);
    this.#wait();
  }

  /** Makes the next checkpoint write, whether or not anything has changed. */
  invalidate() {
    this.#changes.forget();
  }

  /**
   * Runs all `collect` hooks and writes the numbers, in a process that is about to end.
   *
   * @param {number} hookTime milliseconds for the hooks
   * @returns {Promise<void>} never rejected
   */
  async handOver(hookTime) {
    if (this.isWanted) await this.#checkpoint(hookTime);
  }

  /** Writes the current numbers, synchronously, in the process's 'exit' handler. */
  writeLast() {
    if (!this.isWanted) return;
    try {
      this.#files.replaceLast(this.readerPosition);
    } catch (error) {
      this.#sendOverIpc(error);
    }
  }

  /**
   * Sends the current numbers over IPC. In an 'exit' handler, Node.js writes only what fits into the
   * channel's buffer (200 kB on Linux), and the rest is lost.
   *
   * @param {unknown} reason why no file could be written
   * @returns {Promise<void>} resolved when they have been sent, or cannot be; never rejected
   */
  #sendOverIpc(reason) {
    debug('worker %d cannot write its last numbers: %s', this.#link.id, reason);
    if (!this.#link.isConnected()) return Promise.resolve();
    return new Promise(resolve => {
      try {
        // A short log is sent completely, because the thread that has its beginning may be lost.
        const position = this.#source.log.start === 0 ? undefined : this.readerPosition;
        const source = this.#source.captureWithLog(this.#link.id, position, { isLast: true });
        this.#link.send({ type: LAST, ...inMessage(source, reason) }, () => resolve());
      } catch (error) {
        this.#source.countFailure('capture', '', error);
        resolve();
      }
    });
  }

  #wait() {
    if (this.#interval === 0) return;
    const interval = this.#interval ?? Math.max(DEFAULT_INTERVAL, Math.min(...this.#costs) / MAX_SHARE);
    const milliseconds = Math.min(Math.max(interval, SHORTEST_INTERVAL), MAX_TIMER);
    // The timer does not keep the process alive.
    this.#timer = unref(setTimeout(() => this.#tick(), milliseconds));
  }

  async #tick() {
    const timer = this.#timer;
    const before = this.#allSpent();
    try {
      if (this.#files.directory !== '' && (await this.#changes.hasChanged(this.#source.registries()))) {
        // Without hooks: a hook may expect one call per scrape.
        await this.#checkpoint(undefined);
      }
    } catch (error) {
      // A registry of the application may have thrown. The application must not see that.
      debug('no checkpoint: %s', error);
      this.invalidate();
    }
    this.#costs = [...this.#costs.slice(1), this.#allSpent() - before];
    if (timer === this.#timer) this.#wait();
  }

  #allSpent() {
    return this.#changes.spent + this.#source.spent + this.#spent;
  }

  /** @param {number | undefined} hookTime milliseconds for the hooks; undefined to run none */
  #checkpoint(hookTime) {
    this.#writing = this.#writing.then(() => this.#replace(hookTime));
    return this.#writing;
  }

  /** @param {number | undefined} hookTime */
  async #replace(hookTime) {
    try {
      const request = { requestId: 0, known: this.readerPosition, hookTime };
      await this.#files.write(request, (file, ahead) => {
        const start = performance.now();
        timedSection('worker:checkpoint', () => this.#files.replace(file, { ahead }));
        this.#spent += performance.now() - start;
      });
    } catch (error) {
      this.invalidate();
      if (this.#files.directory !== '') this.#source.countFailure('checkpoint', '', error);
      if (hookTime !== undefined) await this.#sendOverIpc(error);
    }
  }
}

module.exports = { Checkpoints };
