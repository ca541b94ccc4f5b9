'use strict';

// Runs in every process of a group, on its event loop. The group as AggregatorRegistry uses it: its page, its
// state, and the last columns of this process.

const { GroupDirectory } = require('./group-directory');
const { Election } = require('./election');
const { REQUEST, WELCOME } = require('../wire/messages');
const { exitListeners } = require('../worker/worker-hook');
const { WorkerResponder } = require('../worker/worker-responder');
const { timedOut } = require('../../registry/unavailable');
const { debug } = require('../../options/debug-log');

const IS_REPLACED = 'Another process took over the group while the metrics were collected.';

/** @typedef {import('../wire/scrape-callers').Format} Format */
/** @typedef {import('../../exposition/page-bytes').PageBytes} PageBytes */

class Group {
  #directory;
  #options;
  /** @type {Election} */
  #election;
  #registries;
  /** @type {WorkerResponder | undefined} answers whoever leads; once the leader has asked */
  #responder = undefined;
  /** Whether the options are those of the program. */
  #isConfigured = false;
  #listenToExit = exitListeners(
    () => this.#responder?.writeLast(),
    () => this.#directory.leave(this.#election.id),
  );

  /**
   * @param {string} directory absolute path
   * @param {import('../cluster-options').ClusterOptions} options
   * @param {() => Iterable<any>} registries
   */
  constructor(directory, options, registries) {
    this.#directory = new GroupDirectory(directory);
    this.#options = options;
    this.#election = new Election(this.#directory, {
      options: () => this.#options,
      onRequest: message => this.#onRequest(message),
    });
    this.#registries = registries;
  }

  /** Joins the group. Never throws. */
  join() {
    this.#listenToExit();
    this.#election.join();
  }

  /** @param {any} message of the leader */
  #onRequest(message) {
    if (message.type !== REQUEST && message.type !== WELCOME) return;
    this.#responder ??= new WorkerResponder(this.#link(), this.#registries);
    this.#responder.receive(message);
    this.#listenToExit();
  }

  /** @returns {import('../links/ipc').Link} to the leader, whichever process that is */
  #link() {
    const election = this.#election;
    return {
      id: election.id,
      directory: () => this.#directory.spool(),
      isConnected: () => election.link?.isConnected === true,
      send: (message, onSent) => {
        if (election.link === undefined) onSent?.();
        else election.link.send(message, onSent);
      },
    };
  }

  /**
   * Applies options that the program sets after the process has joined by its environment.
   *
   * @param {import('../cluster-options').ClusterOptions} options
   */
  configure(options) {
    if (this.#isConfigured) return;
    this.#isConfigured = true;
    this.#options = options;
  }

  /** @returns {import('../primary/cluster-state').ClusterState} */
  state() {
    const { id, leader, link, failure } = this.#election;
    const { generation, ...facts } = leader?.facts ?? this.#directory.facts();
    const group = {
      ...facts,
      id,
      isLeader: leader !== undefined,
      leaderChanges: Math.max(generation - 1, 0),
      generation,
      failure: link === undefined ? failure : '',
    };
    return { aggregator: 'none', aggregatorReason: '', directory: '', ...this.primary?.state(), group };
  }

  /** @returns {import('../primary/cluster-primary').ClusterPrimary | undefined} if this process aggregates */
  get primary() {
    return this.#election.leader?.primary;
  }

  /**
   * The group's page.
   *
   * @param {Format} format
   * @param {number} timeout milliseconds after which the last known numbers of missing members are used
   * @returns {Promise<PageBytes | undefined>} undefined if there are no metrics
   */
  async collect(format, timeout) {
    const deadline = performance.now() + timeout;
    const election = this.#election;
    for (;;) {
      const timeLeft = () => Math.max(deadline - performance.now(), 1);
      const link = await election.linked(timeLeft());
      try {
        return await link.page(format, timeLeft());
      } catch (error) {
        if (election.link === link && link.isConnected) throw error;
        if (performance.now() >= deadline) throw timedOut(IS_REPLACED);
        debug('the page is requested again: %s', error);
        // The link may have ended without that being handled yet.
        if (!link.isConnected) link.close();
        await new Promise(resolve => setImmediate(resolve));
      }
    }
  }

  /**
   * For RemoteWrite.
   *
   * @param {number} timeout milliseconds
   * @returns {Promise<import('../../registry/push-target').PushTarget | undefined>} undefined if another
   *   process aggregates
   */
  async pushTarget(timeout) {
    await this.#election.linked(timeout);
    return this.#election.leader?.pushTarget();
  }

  /**
   * Runs hooks once more, and writes the process's numbers for the leader.
   *
   * @param {number} timeout milliseconds
   */
  async handOver(timeout) {
    await this.#responder?.handOver(timeout);
  }
}

module.exports = { Group };
