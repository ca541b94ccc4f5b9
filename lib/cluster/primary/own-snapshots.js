'use strict';

// The primary's own registries, as one more worker among those that are added up: number 0, asked without IPC and
// without a file. What takes its time is done as in a worker: hooks within the scrape's deadline, digests in slices.

const { debuglog } = require('node:util');
const { SnapshotSource } = require('../capture/snapshot-source');
const { timedSection } = require('../../event-loop/timed-section');

const debug = debuglog('prom-client-cluster');

/** Ids of workers start at 1. */
const OWN_ID = 0;

class OwnSnapshots {
  #source;
  #isBusy = false;

  /** @param {() => Iterable<any>} registries */
  constructor(registries) {
    this.#source = new SnapshotSource(registries);
    /** @type {import('../wire/messages').JournalPosition | undefined} what the aggregator knows already */
    this.known = undefined;
  }

  /** Whether the last capture has not ended: a hook takes longer than its scrape. */
  get isBusy() {
    return this.#isBusy;
  }

  /**
   * The numbers of this instant. Never rejects.
   *
   * @param {number} hookTime milliseconds for the `collect` hooks
   * @returns {Promise<Buffer | undefined>} in memory of its own; undefined where it failed
   */
  async capture(hookTime) {
    this.#isBusy = true;
    try {
      await this.#source.prepare(hookTime);
      return timedSection('primary:capture', () => {
        const { chunks, bytes } = this.#source.capture(OWN_ID, this.known);
        return joined(chunks, bytes);
      });
    } catch (error) {
      debug("the primary's own metrics cannot be captured: %s", error);
      return undefined;
    } finally {
      this.#isBusy = false;
    }
  }
}

/**
 * @param {Uint8Array[]} chunks
 * @param {number} bytes
 * @returns {Buffer} whose memory can be handed to a thread, and starts at a multiple of 8 for the columns
 */
function joined(chunks, bytes) {
  const buffer = Buffer.allocUnsafeSlow(bytes);
  let end = 0;
  for (const chunk of chunks) {
    buffer.set(chunk, end);
    end += chunk.length;
  }
  return buffer;
}

module.exports = { OwnSnapshots, OWN_ID };
