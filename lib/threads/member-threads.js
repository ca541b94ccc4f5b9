'use strict';

// Runs on the event loop of a member of a cluster or group, which sends its numbers to another process. The
// member's threads are read here, as further registries of this process.

const { ThreadMirror } = require('../source/thread-mirror');
const { runInSlices, runThrough } = require('../event-loop/slices');
const { debug } = require('../options/debug-log');
const { EndedThreads } = require('./ended-threads');

/** @typedef {import('./thread-record').ThreadRecord} ThreadRecord */

class MemberThreads {
  /** @type {Map<number, ThreadMirror>} by number of the thread, in the order in which they were shown */
  #mirrors = new Map();
  #retired = new EndedThreads();
  #isReading = false;

  /** @returns {any[]} as they are now */
  get registries() {
    const mirrors = [...this.#mirrors.values()];
    for (const mirror of mirrors) runThrough(mirror.read());
    // Living threads come first: if two metrics with the same name have different types, the first one is
    // shown.
    return [...mirrors.flatMap(({ registries }) => registries), ...this.#retired.registries];
  }

  /**
   * @param {ThreadRecord} record
   * @param {import('../source/thread-mirror').SharedParts} parts
   */
  share(record, parts) {
    let mirror = this.#mirrors.get(record.number);
    if (mirror === undefined) {
      mirror = new ThreadMirror(number => record.hookOf(number), this.#retired.addRow);
      this.#mirrors.set(record.number, mirror);
    }
    mirror.add(parts);
    void this.#readSoon();
  }

  /** @param {ThreadRecord} record which is now shown as another one. Rows that have ended in it stay */
  forget({ number }) {
    const mirror = this.#mirrors.get(number);
    if (mirror !== undefined) runThrough(mirror.read());
    this.#mirrors.delete(number);
  }

  /** @param {ThreadRecord} record of a thread that has ended */
  retire({ number }) {
    const mirror = this.#mirrors.get(number);
    if (mirror === undefined) return;
    this.#mirrors.delete(number);
    this.#retired.mirrors.add(mirror);
    void this.#readSoon();
  }

  /**
   * Reads what the threads have published, in slices, because many label sets would block the loop.
   *
   * @returns {Promise<void>}
   */
  async read() {
    try {
      for (const mirror of this.#mirrors.values()) await runInSlices(mirror.read());
      await runInSlices(this.#retired.merge());
    } catch (error) {
      debug('what a thread has counted cannot be added up: %O', error);
    }
  }

  /** Reads ahead, so that a capture has little left to read. */
  async #readSoon() {
    if (this.#isReading) return;
    this.#isReading = true;
    await undefined;
    await this.read();
    this.#isReading = false;
  }
}

module.exports = { MemberThreads };
