'use strict';

// Runs in every process of a group, on its event loop. The process's own numbers, for whichever process
// leads: answers its requests, and writes the last columns to where the next one will look.

const { WorkerResponder } = require('../worker/worker-responder');
const { WELCOME } = require('../wire/messages');

// Another process may take over at any moment, and move the directory to which the snapshot goes.
const MAX_TRIES = 3;

class MemberSnapshots {
  #directory;
  #link;
  #registries;
  /** @type {WorkerResponder | undefined} once the leader has asked */
  #responder = undefined;
  /** @type {unknown} */
  #checkpointInterval = undefined;

  /**
   * @param {import('./group-directory').GroupDirectory} directory
   * @param {() => import('../links/ipc').Link} link to whoever leads
   * @param {() => Iterable<any>} registries of this process
   */
  constructor(directory, link, registries) {
    this.#directory = directory;
    this.#link = link;
    this.#registries = registries;
  }

  /** @param {any} message of the leader, of type REQUEST or WELCOME */
  receive(message) {
    this.#checkpointInterval = message.checkpointInterval;
    this.#responder ??= new WorkerResponder(this.#link(), this.#registries);
    this.#responder.receive(message);
  }

  /**
   * Runs hooks once more, and writes the process's numbers for the leader.
   *
   * @param {number} timeout milliseconds
   */
  async handOver(timeout) {
    for (let i = 0; i < MAX_TRIES; i++) {
      const spool = this.#aim();
      await this.#responder?.handOver(timeout);
      if (this.#directory.spool() === spool) return;
    }
  }

  writeLast() {
    for (let i = 0; i < MAX_TRIES; i++) {
      const spool = this.#aim();
      this.#responder?.writeLast();
      if (this.#directory.spool() === spool) return;
    }
  }

  /** @returns {string | undefined} the directory to which they go; undefined if there is none */
  #aim() {
    const directory = this.#directory.spool();
    const checkpointInterval = this.#checkpointInterval;
    if (directory !== undefined) this.#responder?.receive({ type: WELCOME, directory, checkpointInterval });
    return directory;
  }
}

module.exports = { MemberSnapshots };
