'use strict';

// Runs in the worker, on the application's event loop. On a request of the primary it captures the
// registries, writes them to a file, and answers with the file's name. No error may reach the application.

const path = require('node:path');
const { SnapshotSource } = require('../../source/snapshot-source');
const { SnapshotFile } = require('./snapshot-file');
const { isOthers } = require('../../spool/safe-files');
const { ExitSnapshot } = require('./exit-snapshot');
const { inMessage, NO_DIRECTORY } = require('./over-ipc');
const { textOf } = require('../../options/thrown');
const { hookTime } = require('../../source/collect-hooks');
const { timedSection } = require('../../event-loop/timed-section');
const { RESPONSE, READY, WELCOME } = require('../wire/messages');
const { snapshotName, isExitName } = require('../../spool/file-names');
const { debug } = require('../../options/debug-log');

/** @typedef {import('../wire/messages').Request} Request */

class WorkerResponder {
  #source;
  /** @type {Request | undefined} not answered yet */
  #newest = undefined;
  #busy = false;
  /** When the hooks of the last capture began, see SnapshotSource.prepare(). */
  #hooksBegan = Infinity;
  #exit;
  #link;
  /** @type {number | undefined} milliseconds between checkpoints, if this program sets them */
  #checkpointInterval = undefined;
  /** Whether the primary is one of ours: another one gets no message that it did not ask for. */
  #isOurs = false;

  /**
   * @param {import('../links/ipc').Link} link to the primary
   * @param {() => Iterable<any>} registries
   */
  constructor(link, registries) {
    this.#link = link;
    this.workerId = link.id;
    this.registries = registries;
    this.#source = new SnapshotSource(registries);
    this.#exit = new ExitSnapshot(this.#source, link);
  }

  /** @param {any} message of one of the types that a primary sends */
  receive(message) {
    try {
      this.#receive(message);
    } catch (error) {
      // The program may have replaced process.send(). Its 'message' event must not throw.
      debug('a message of the primary failed in worker %d: %s', this.workerId, error);
    }
  }

  /** @param {any} message */
  #receive(message) {
    if (typeof message.directory !== 'string') {
      if (message.type !== WELCOME) this.#answerStockPrimary(message.requestId);
      return;
    }
    // The names of files are made of these.
    if (message.directory !== '' && !path.isAbsolute(message.directory)) return;
    const { requestId } = message;
    if (message.type !== WELCOME && !(Number.isSafeInteger(requestId) && requestId >= 0)) return;
    // Then as without one.
    const directory = isOthers(message.directory) ? '' : message.directory;
    const isFirst = !this.#isOurs;
    this.#isOurs = true;
    if (isExitName(message.exitName)) {
      this.#exit.aimAt(directory, message.exitName, message.checkpointInterval);
    }
    if (message.type === WELCOME) {
      // Also sent by a primary that has lost its state: the next checkpoint must have the whole dictionary.
      this.#exit.readerPosition = undefined;
      this.#exit.invalidate();
      this.#announce();
      return;
    }
    if (isFirst && this.#checkpointInterval !== undefined) this.#announce();
    this.#exit.readerPosition = message.known;
    // While this process was stopped or busy, several requests may have queued up: one capture answers the
    // newest.
    this.#newest = { ...message, directory };
    if (!this.#busy) this.#answerNewest();
  }

  /** @param {number} interval milliseconds between checkpoints of this worker */
  requestCheckpoints(interval) {
    this.#checkpointInterval = interval;
    if (this.#isOurs) this.#announce();
  }

  #announce() {
    this.#link.send({ type: READY, checkpointInterval: this.#checkpointInterval });
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
    const { requestId, directory, known: readerPosition, timeout } = request;
    const name = snapshotName(this.workerId, requestId);
    const file = directory ? new SnapshotFile(directory, name) : undefined;
    this.#hooksBegan = Infinity;
    try {
      file?.open();
      await this.#source.prepare(hookTime(timeout), {
        readerPosition,
        onProgress: part => file?.writeAhead(part),
        capture: (dictionary, hooksBegan) => {
          if (this.#newest !== request) return;
          this.#newest = undefined;
          this.#hooksBegan = hooksBegan;
          if (file === undefined) this.#answerOverIpc(requestId, readerPosition, NO_DIRECTORY);
          else this.#answerWithFile(request, name, file, dictionary);
        },
      });
    } finally {
      // If it is not finished: a newer request is answered instead, or a registry of the application has
      // thrown.
      file?.discard();
    }
  }

  /**
   * @param {Request} request
   * @param {string} name
   * @param {SnapshotFile} file
   * @param {import('../../source/dictionary-part').DictionaryPart} dictionary
   */
  #answerWithFile({ requestId, known: readerPosition }, name, file, dictionary) {
    try {
      const bytes = timedSection('worker:capture', () => {
        const snapshot = this.#source.capture(this.workerId, readerPosition, { dictionary });
        file.finish(snapshot);
        return snapshot.bytes;
      });
      this.#respond(requestId, { file: name, bytes });
    } catch (error) {
      file.discard();
      this.#source.countFailure('write', '', error);
      this.#answerOverIpc(requestId, readerPosition, error);
    }
  }

  /**
   * Sends the snapshot itself if no file can be written. This is slower.
   *
   * @param {number} requestId
   * @param {Request['known']} readerPosition
   * @param {unknown} reason why no file was written
   */
  #answerOverIpc(requestId, readerPosition, reason) {
    try {
      this.#respond(requestId, inMessage(this.#source.capture(this.workerId, readerPosition), reason));
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
   * Writes the exit snapshot of a program that is about to end.
   *
   * @param {number} timeout milliseconds for `collect` hooks
   * @returns {Promise<void>} never rejected
   */
  handOver(timeout) {
    return this.#exit.handOver(hookTime(timeout));
  }

  /**
   * Writes the exit snapshot in the 'exit' handler, without running hooks, if the directory still exists. It
   * has all that was recorded after a disconnect or after the last scrape.
   */
  writeExitSnapshot() {
    try {
      this.#exit.write();
    } catch (error) {
      debug('worker %d could not write its exit snapshot: %s', this.workerId, error);
    }
  }
}

module.exports = { WorkerResponder };
