'use strict';

// Runs in every process of a group, on its event loop. Supplies the process's own numbers to the leader:
// answers its requests, and writes the last columns where the next leader will look for them.

const { WorkerResponder } = require('../worker/worker-responder');
const { WELCOME } = require('../wire/messages');

class MemberSource {
  #directory;
  #link;
  #registries;
  /** @type {WorkerResponder | undefined} once the leader has asked */
  #responder = undefined;
  /** @type {unknown} */
  #checkpointInterval = undefined;

  /**
   * @param {import('./group-directory').GroupDirectory} directory
   * @param {() => import('../links/ipc').Link} link to the leader
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
    this.#aim();
    await this.#responder?.handOver(timeout);
  }

  writeLast() {
    this.#aim();
    this.#responder?.writeLast();
  }

  /** Another process may have taken over, and moved the directory. */
  #aim() {
    const directory = this.#directory.spool();
    const checkpointInterval = this.#checkpointInterval;
    if (directory !== undefined) this.#responder?.receive({ type: WELCOME, directory, checkpointInterval });
  }
}

module.exports = { MemberSource };
