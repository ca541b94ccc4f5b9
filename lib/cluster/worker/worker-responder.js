'use strict';

// The worker's side: asked by the primary, it captures its registries, writes them to a file and tells the file's name.

const { debuglog } = require('node:util');
const { SnapshotSource } = require('../capture/snapshot-source');
const { SnapshotFile } = require('./snapshot-file');
const { ExitSnapshot } = require('./exit-snapshot');
const { hookTime } = require('../capture/collect-hooks');
const { timedSection } = require('../../event-loop/timed-section');
const { RESPONSE, READY, WELCOME } = require('../wire/messages');
const { snapshotName, isExitName } = require('../wire/file-names');

const debug = debuglog('prom-client-cluster');

/** @typedef {import('../wire/messages').Request} Request */

class WorkerResponder {
  #source;
  #file = new SnapshotFile();
  /** @type {Request | undefined} asked and not answered */
  #newest = undefined;
  #busy = false;
  #exit;
  /** @type {import('../wire/messages').JournalPosition | undefined} */
  #known = undefined;

  /**
   * @param {number} workerId
   * @param {() => Iterable<any>} registries
   */
  constructor(workerId, registries) {
    this.workerId = workerId;
    this.registries = registries;
    this.#source = new SnapshotSource(registries);
    this.#exit = new ExitSnapshot(this.#source, {
      whole: () => this.#source.capture(workerId, undefined, true),
      news: () => this.#source.capture(workerId, this.#known),
    });
  }

  /** @param {any} message of one of the types that a primary sends */
  receive(message) {
    if (typeof message.directory !== 'string') {
      if (message.type !== WELCOME) this.#answerStockPrimary(message.requestId);
      return;
    }
    if (isExitName(message.exitName)) {
      this.#exit.aimAt(message.directory, message.exitName, message.checkpointInterval);
    }
    if (message.type === WELCOME) {
      // Also sent by a primary that has forgotten what it knew: the last snapshot then has to tell everything.
      this.#known = undefined;
      this.#exit.forget();
      send({ type: READY });
      return;
    }
    this.#known = message.known;
    // Several questions may have piled up while this process was stopped or busy: one capture answers the newest.
    this.#newest = message;
    if (!this.#busy) this.#answerNewest();
  }

  async #answerNewest() {
    this.#busy = true;
    try {
      while (this.#newest !== undefined) {
        const request = this.#newest;
        await this.#source.prepare(hookTime(request.timeout));
        if (this.#newest !== request) continue;
        this.#newest = undefined;
        await this.#answer(request);
      }
    } catch (error) {
      // Nothing above is expected to throw; whatever it is, the application must not see it.
      debug('a scrape failed in worker %d: %s', this.workerId, error);
      if (this.#newest !== undefined) respond(this.#newest, { error: messageOf(error) });
      this.#newest = undefined;
    } finally {
      this.#busy = false;
    }
  }

  /** @param {Request} request */
  async #answer(request) {
    const name = snapshotName(this.workerId, request.requestId);
    try {
      const { writing, bytes } = timedSection('worker:capture', () => {
        const snapshot = this.#source.capture(this.workerId, request.known);
        if (request.directory === '') return { bytes: -1, writing: undefined };
        const writing = this.#file.write(/** @type {string} */ (request.directory), name, snapshot);
        return { writing, bytes: snapshot.bytes };
      });
      if (bytes === -1) return this.#answerOverIpc(request, 'the primary has no directory');
      if (writing !== undefined) await writing;
      respond(request, { file: name, bytes });
    } catch (error) {
      this.#source.countFailure('write', '', error);
      this.#answerOverIpc(request, /** @type {any} */ (error).code ?? messageOf(error));
    }
  }

  /**
   * Where no file can be written the snapshot itself travels: slower, but the scrape is answered.
   *
   * @param {Request} request
   * @param {string} reason
   */
  #answerOverIpc(request, reason) {
    try {
      const { chunks, bytes } = this.#source.capture(this.workerId, request.known);
      respond(request, { snapshot: Buffer.concat(chunks, bytes).toString('base64'), reason });
    } catch (error) {
      this.#source.countFailure('capture', '', error);
      respond(request, { error: messageOf(error) });
    }
  }

  /**
   * A primary that runs prom-client gets what prom-client's workers send.
   *
   * @param {number} requestId
   */
  async #answerStockPrimary(requestId) {
    try {
      const metrics = await Promise.all([...this.registries()].map(registry => registry.getMetricsAsJSON()));
      send({ type: RESPONSE, requestId, metrics });
    } catch (error) {
      send({ type: RESPONSE, requestId, error: messageOf(error) });
    }
  }

  /**
   * Leaves the numbers of this process to its primary, for a program that is about to end it.
   *
   * @param {number} timeout milliseconds for `collect` hooks
   * @returns {Promise<void>} never rejected
   */
  handOver(timeout) {
    return this.#exit.handOver(hookTime(timeout));
  }

  /**
   * The last numbers of this process, from its 'exit' handler: without hooks, if the directory is still there. Whoever
   * disconnected and then finished its work, or ended between two scrapes, loses nothing.
   */
  writeExitSnapshot() {
    try {
      this.#exit.write();
    } catch (error) {
      debug('worker %d could not write its last snapshot: %s', this.workerId, error);
    }
  }
}

/**
 * @param {Request} request
 * @param {object} answer
 */
function respond(request, answer) {
  send({ type: RESPONSE, requestId: request.requestId, ...answer });
}

/** @param {object} message */
function send(message) {
  if (!process.connected) return;
  // With a callback a channel that closes meanwhile is no 'error' event on the application's process.
  /** @type {any} */ (process).send(message, undefined, undefined, (/** @type {Error | null} */ error) => {
    if (error) debug('the primary did not get an answer: %s', error);
  });
}

/** @param {unknown} error */
function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}

module.exports = { WorkerResponder };
