'use strict';

// Runs in every process of a group, on its event loop. The process's own numbers, for whichever process
// aggregates: answers its requests, and writes the exit snapshot to where the next one will look.

const { WorkerResponder } = require('../worker/worker-responder');
const { WELCOME } = require('../wire/messages');
const { isExitName } = require('../../spool/file-names');

// Another process may take over at any moment, and move the directory to which the snapshot goes.
const MAX_TRIES = 3;

class MemberSnapshots {
  #directory;
  #registries;
  #holder;
  /** Of this process; 0 if no holder has given it one yet. */
  id = 0;
  /** @type {WorkerResponder | undefined} once the holder has asked */
  #responder = undefined;
  /** Where the exit snapshot goes, and its name. */
  #spool = '';
  #exitName = '';
  #checkpointInterval = 0;

  /**
   * @param {import('./group-directory').GroupDirectory} directory
   * @param {() => Iterable<any>} registries of this process
   * @param {() => import('./holder-link').HolderLink | undefined} holder the link to it, if there is one
   */
  constructor(directory, registries, holder) {
    this.#directory = directory;
    this.#registries = registries;
    this.#holder = holder;
  }

  /** @param {number} id that a holder gives this process: another one after the group has lost all it knew */
  identify(id) {
    if (id !== this.id) {
      this.#aimAt('');
      this.#responder = undefined;
      this.#exitName = '';
    }
    this.id = id;
  }

  /** @param {any} message of the holder, of type REQUEST or WELCOME */
  receive(message) {
    this.#spool = message.directory;
    // That of the first holder: the file of another name would stay in the directory.
    if (isExitName(message.exitName)) this.#exitName ||= message.exitName;
    this.#checkpointInterval = message.checkpointInterval;
    this.#responder ??= new WorkerResponder(this.#link(), this.#registries);
    this.#responder.receive({ ...message, exitName: this.#exitName });
  }

  /** @returns {import('../links/ipc').Link} to whoever is the holder */
  #link() {
    return {
      id: this.id,
      isConnected: () => this.#holder()?.isConnected === true,
      send: (message, onSent) => {
        const holder = this.#holder();
        if (holder === undefined) onSent?.();
        else holder.send(message, onSent);
      },
    };
  }

  /**
   * Runs hooks once more, and writes the process's numbers for the holder.
   *
   * @param {number} timeout milliseconds
   */
  async handOver(timeout) {
    for (let i = 0; i < MAX_TRIES; i++) {
      const spool = this.#aimAtCurrent();
      await this.#responder?.handOver(timeout);
      if (this.#directory.spool() === spool) return;
    }
  }

  writeExitSnapshot() {
    for (let i = 0; i < MAX_TRIES; i++) {
      const spool = this.#aimAtCurrent();
      this.#responder?.writeExitSnapshot();
      if (this.#directory.spool() === spool) return;
    }
  }

  /** @returns {string | undefined} the directory of snapshot files, if there is one */
  #aimAtCurrent() {
    const spool = this.#directory.spool();
    if (spool !== undefined && spool !== this.#spool) this.#aimAt(spool);
    return spool;
  }

  /** @param {string} directory of snapshot files; '' ends checkpoints */
  #aimAt(directory) {
    this.#spool = directory;
    const exitName = this.#exitName;
    const checkpointInterval = directory === '' ? 0 : this.#checkpointInterval;
    this.#responder?.receive({ type: WELCOME, directory, exitName, checkpointInterval });
  }
}

module.exports = { MemberSnapshots };
