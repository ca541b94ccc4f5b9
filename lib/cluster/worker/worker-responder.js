'use strict';

// Runs in the worker, on the application's event loop. Answers the primary's requests: captures the
// registries, writes their columns to a file, and sends the file's name. No error may reach the application.

const path = require('node:path');
const { Source } = require('../../source/source');
const { joined } = require('../../source/byte-buffers');
const { isOthers } = require('../../spool/safe-files');
const { Checkpoints } = require('./checkpoints');
const { SourceFiles } = require('./source-files');
const { inMessage } = require('./over-ipc');
const { textOf } = require('../../options/thrown');
const { hookTime } = require('../../source/collect-hooks');
const { timedSection } = require('../../event-loop/timed-section');
const { RESPONSE, WELCOME } = require('../wire/messages');
const { debug } = require('../../options/debug-log');

/** @typedef {import('../wire/messages').Request} Request */

class WorkerResponder {
  #source;
  /** @type {Request | undefined} not answered yet */
  #newest = undefined;
  #busy = false;
  /** When the hooks of the last capture began, see Source.prepare(). */
  #hooksBegan = Infinity;
  #files;
  #checkpoints;
  #link;

  /**
   * @param {import('../links/ipc').Link} link to the primary
   * @param {() => Iterable<any>} registries
   */
  constructor(link, registries) {
    this.#link = link;
    this.workerId = link.id;
    this.registries = registries;
    this.#source = new Source(registries);
    this.#files = new SourceFiles(this.#source, link.id);
    this.#checkpoints = new Checkpoints(this.#source, link, this.#files);
  }

  /** @param {any} message of one of the types that a primary sends */
  receive(message) {
    if (typeof message.directory !== 'string') {
      if (message.type !== WELCOME) this.#answerStockPrimary(message.requestId);
      return;
    }
    // The directory and the request id become part of file paths, so they are checked.
    if (message.directory !== '' && !path.isAbsolute(message.directory)) return;
    const { requestId } = message;
    if (message.type !== WELCOME && !(Number.isSafeInteger(requestId) && requestId >= 0)) return;
    this.#aimAt(message.directory);
    // A welcome has no position: it may come from a new thread, which has nothing yet.
    this.#checkpoints.readerPosition = message.known;
    this.#checkpoints.setInterval(message.checkpointInterval);
    if (message.type === WELCOME) return;
    if (message.badLog === this.#source.log.name) this.#source.log.restart();
    this.#source.asked(message.ended);
    // While this process was stopped or busy, several requests may have queued up: one capture answers the
    // newest.
    this.#newest = message;
    if (!this.#busy) this.#answerNewest();
  }

  /** @param {string} directory one of another user is treated as none; '' for none */
  #aimAt(directory) {
    const own = isOthers(directory) ? '' : directory;
    if (own !== this.#files.directory) this.#checkpoints.invalidate();
    this.#files.aimAt(own);
  }

  /** The directory may have moved, or the process may have changed its user, since the last request. */
  #aimAgain() {
    this.#aimAt(this.#link.directory?.() ?? this.#files.directory);
  }

  /** @param {number} interval milliseconds between checkpoints, whatever the primary says */
  keepInterval(interval) {
    this.#checkpoints.keepInterval(interval);
  }

  async #answerNewest() {
    this.#busy = true;
    try {
      while (this.#newest !== undefined) await this.#answer(this.#newest);
    } catch (error) {
      // Unexpected, but the application must not see it.
      debug('a scrape failed in worker %d: %s', this.workerId, error);
      if (this.#newest !== undefined) this.#respondError(this.#newest.requestId, error);
      this.#newest = undefined;
    } finally {
      this.#busy = false;
    }
  }

  /** @param {Request} request */
  async #answer(request) {
    const { requestId, known, timeout } = request;
    this.#hooksBegan = Infinity;
    await this.#files.write({ requestId, known, hookTime: hookTime(timeout) }, (file, ahead, hooksBegan) => {
      if (this.#newest !== request) return;
      this.#newest = undefined;
      this.#hooksBegan = hooksBegan;
      this.#answerWithFile(request, file, ahead);
    });
  }

  /**
   * @param {Request} request
   * @param {import('./columns-file').ColumnsFile} file
   * @param {import('../../source/blocks-ahead').BlocksAhead} ahead
   */
  #answerWithFile(request, file, ahead) {
    try {
      const bytes = timedSection('worker:capture', () => this.#files.finish(file, ahead));
      this.#respond(request.requestId, { file: file.name, bytes });
      this.#checkpoints.postpone();
    } catch (error) {
      if (this.#files.directory !== '') this.#source.countFailure('write', '', error);
      this.#answerOverIpc(request, error, ahead);
    }
  }

  /**
   * Sends columns and log in a message if no file can be written. This is slower.
   *
   * @param {Request} request
   * @param {unknown} reason why no file was written
   * @param {import('../../source/blocks-ahead').BlocksAhead} [ahead]
   */
  #answerOverIpc({ requestId, known }, reason, ahead) {
    try {
      const source = timedSection('worker:capture', () =>
        this.#source.captureWithLog(this.workerId, known, { ahead }),
      );
      const isDirect = this.#link.isDirect === true;
      this.#respond(requestId, isDirect ? { source: joined(source.chunks) } : inMessage(source, reason));
    } catch (error) {
      this.#source.countFailure('capture', '', error);
      this.#respondError(requestId, error);
    }
  }

  /**
   * Answers a primary that runs prom-client, as prom-client does.
   *
   * @param {number} requestId
   */
  async #answerStockPrimary(requestId) {
    try {
      const metrics = await Promise.all([...this.registries()].map(registry => registry.getMetricsAsJSON()));
      // Throws if JSON cannot represent what the program's metrics returned.
      this.#respond(requestId, { metrics });
    } catch (error) {
      this.#respondError(requestId, error);
    }
  }

  /**
   * @param {number} requestId
   * @param {object} answer
   */
  #respond(requestId, answer) {
    const milliseconds = Math.max(Math.floor(performance.now() - this.#hooksBegan), 0);
    const hookMilliseconds = milliseconds > 0 ? milliseconds : undefined;
    this.#link.send({ type: RESPONSE, requestId, ...answer, hookMilliseconds });
  }

  /**
   * Never throws.
   *
   * @param {number} requestId
   * @param {unknown} error
   */
  #respondError(requestId, error) {
    try {
      this.#respond(requestId, { error: textOf(error) });
    } catch (failure) {
      debug('worker %d cannot answer: %s', this.workerId, failure);
    }
  }

  /**
   * Writes the numbers of a program that is about to end.
   *
   * @param {number} timeout milliseconds for `collect` hooks
   * @returns {Promise<void>} never rejected
   */
  handOver(timeout) {
    this.#aimAgain();
    return this.#checkpoints.handOver(hookTime(timeout));
  }

  /**
   * Writes the last numbers in the 'exit' handler, without running hooks, if the directory still exists. They
   * include everything that was recorded after a disconnect or after the last scrape.
   */
  writeLast() {
    try {
      this.#aimAgain();
      this.#checkpoints.writeLast();
    } catch (error) {
      debug('worker %d could not write its last numbers: %s', this.workerId, error);
    }
  }
}

module.exports = { WorkerResponder };
