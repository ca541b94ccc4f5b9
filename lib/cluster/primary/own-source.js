'use strict';

// Runs on the primary's loop. Captures the primary's own registries, which are aggregated like one more
// worker's: its id is 0, and its columns need neither IPC nor a file. As in a worker, `collect` hooks have
// to end before the scrape's deadline, and digests are encoded in slices.

const { Source } = require('../../source/source');
const { hookTime, isLonger } = require('../../source/collect-hooks');
const { joined } = require('../../source/byte-buffers');
const { timedSection } = require('../../event-loop/timed-section');
const { debug } = require('../../options/debug-log');

/** Ids of workers start at 1. */
const OWN_ID = 0;

class OwnSource {
  worker = { id: OWN_ID };
  /** Whether a page has ever had its numbers. */
  isShown = false;
  #source;
  #onCaptured;
  #isBusy = false;
  /** Whether the aggregator was lost while a capture waited for hooks, and the next one has nothing yet. */
  #isLost = false;
  /** @type {(() => void) | undefined} drops what the capture that waits for hooks has copied */
  #renewCopies = undefined;
  /** Longest time that a scrape has waited for the capture under way and timed out, in milliseconds. */
  #longestWait = 0;

  /**
   * @param {() => Iterable<any>} registries
   * @param {(bytes: Buffer | undefined, isAnswer: boolean, hooksBegan: number) => void} onCaptured gets
   *   columns and log in memory of their own, undefined if the capture failed; whether scrapes wait for no
   *   other one; and when its hooks began, see Source.prepare()
   */
  constructor(registries, onCaptured) {
    this.#source = new Source(registries);
    this.#onCaptured = onCaptured;
    /**
     * @type {import('../../source/source-log').LogPosition | undefined} what the aggregator has of the log
     */
    this.position = undefined;
    /** @type {number | undefined} the last batch of ended rows that is part of the retired totals */
    this.ended = undefined;
  }

  /**
   * Captures the numbers, unless a capture is under way. If hooks have begun before this call that it waits
   * for, the scrape asks again.
   *
   * @param {number} timeout milliseconds that the scrape waits at most
   * @returns {number} milliseconds that the scrape waits; 0 if another has waited as long and timed
   *   out, because a hook hangs
   */
  ask(timeout) {
    if (this.#isBusy) {
      const isAwaited = isLonger(timeout, this.#longestWait);
      if (!this.#isLost) return isAwaited ? timeout : 0;
      this.#isLost = false;
      // Without hooks, because one may hang: no page may have fewer numbers than the one before.
      this.#capture(undefined).then(([bytes, began]) => this.#onCaptured(bytes, !isAwaited, began));
      return timeout;
    }
    this.#longestWait = 0;
    this.#isBusy = true;
    this.#capture(hookTime(timeout)).then(([bytes, began]) => {
      this.#isBusy = this.#isLost = false;
      this.#onCaptured(bytes, true, began);
    });
    return timeout;
  }

  /** The aggregator is lost: the next one has no numbers. */
  startAgain() {
    this.position = undefined;
    this.#isLost = this.#isBusy;
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
   * @param {number | undefined} hookTime milliseconds for the `collect` hooks; undefined to run none
   * @returns {Promise<[bytes: Buffer | undefined, hooksBegan: number]>} never rejected
   */
  async #capture(hookTime) {
    let hooksBegan = Infinity;
    try {
      this.#source.startLogFor(this.position);
      const bytes = await this.#source.prepare(hookTime, {
        onWaiting: renew => (this.#renewCopies = renew),
        capture: (ahead, began) =>
          timedSection('primary:capture', () => {
            hooksBegan = began;
            const { chunks } = this.#source.captureWithLog(OWN_ID, this.position, { ahead });
            // The aggregator gets these numbers before those of the capture that waits.
            this.#renewCopies?.();
            return joined(chunks);
          }),
      });
      return [bytes, hooksBegan];
    } catch (error) {
      debug("the primary's own metrics cannot be captured: %s", error);
      return [undefined, Infinity];
    }
  }
}

module.exports = { OwnSource, OWN_ID };
