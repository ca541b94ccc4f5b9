'use strict';

// Runs on the primary's loop. Captures the primary's own registries, which are aggregated like one more
// worker's: its id is 0, and its snapshot needs neither IPC nor a file. As in a worker, `collect` hooks have
// to end before the scrape's deadline, and digests are encoded in slices.

const { SnapshotSource } = require('../capture/snapshot-source');
const { hookTime } = require('../capture/collect-hooks');
const { isLonger } = require('./worker-requests');
const { joined } = require('../wire/byte-buffers');
const { timedSection } = require('../../event-loop/timed-section');
const { debug } = require('../../options/debug-log');

/** Ids of workers start at 1. */
const OWN_ID = 0;

class OwnSnapshots {
  #source;
  #onCaptured;
  #isBusy = false;
  /** Longest time that a scrape has waited for the capture under way and timed out, in milliseconds. */
  #longestWait = 0;

  /**
   * @param {() => Iterable<any>} registries
   * @param {(snapshot: Buffer | undefined) => void} onCaptured gets a snapshot in memory of its own;
   *   undefined if the capture failed
   */
  constructor(registries, onCaptured) {
    this.#source = new SnapshotSource(registries);
    this.#onCaptured = onCaptured;
    /**
     * @type {import('../wire/messages').JournalPosition | undefined} how much of the dictionary the
     *   aggregator has
     */
    this.position = undefined;
  }

  /**
   * Captures the numbers, unless a capture is under way: it ends after this call, so its numbers are new
   * enough.
   *
   * @param {number} timeout milliseconds that the scrape waits at most
   * @returns {number} milliseconds that the scrape waits; 0 if another has waited as long and timed
   *   out, because a hook hangs
   */
  ask(timeout) {
    if (this.#isBusy) return isLonger(timeout, this.#longestWait) ? timeout : 0;
    this.#longestWait = 0;
    this.#capture(hookTime(timeout)).then(this.#onCaptured);
    return timeout;
  }

  /**
   * Notes that a scrape has timed out.
   *
   * @param {number} milliseconds
   */
  timeOut(milliseconds) {
    if (this.#isBusy) this.#longestWait = Math.max(this.#longestWait, milliseconds);
  }

  /**
   * @param {number} hookTime milliseconds for the `collect` hooks
   * @returns {Promise<Buffer | undefined>} never rejected
   */
  async #capture(hookTime) {
    this.#isBusy = true;
    try {
      return await this.#source.prepare(hookTime, {
        readerPosition: this.position,
        capture: dictionary =>
          timedSection('primary:capture', () => {
            return joined(this.#source.capture(OWN_ID, this.position, { dictionary }).chunks);
          }),
      });
    } catch (error) {
      debug("the primary's own metrics cannot be captured: %s", error);
      return undefined;
    } finally {
      this.#isBusy = false;
    }
  }
}

module.exports = { OwnSnapshots, OWN_ID };
