'use strict';

// The file in which a worker leaves its last numbers for its primary, who reads it when the worker is dead. Written
// when the process ends; and before, where a worker may be killed: at checkpoints, and when the program says that it
// is about to end. Each replaces the one before as a whole.

const fs = require('node:fs');
const path = require('node:path');
const { debuglog } = require('node:util');
const { SnapshotFile } = require('./snapshot-file');
const { Fingerprint } = require('./change-detector');
const { timedSection } = require('../../event-loop/timed-section');

const debug = debuglog('prom-client-cluster');

// A message may say anything; a timer that never rests would take the whole loop.
const SHORTEST_INTERVAL = 100;
const LONGEST_INTERVAL = 2 ** 31 - 1;

/** @typedef {import('../capture/snapshot-source').SnapshotSource} SnapshotSource */
/** @typedef {{chunks: Uint8Array[], bytes: number}} Snapshot */

class ExitSnapshot {
  #source;
  #capture;
  #file = new SnapshotFile();
  #fingerprint = new Fingerprint();
  #directory = '';
  #name = '';
  #interval = 0;
  /** @type {NodeJS.Timeout | undefined} */
  #timer = undefined;
  /** @type {Promise<void>} checkpoints are written one after the other */
  #writing = Promise.resolve();
  #hasEnded = false;

  /**
   * @param {SnapshotSource} source
   * @param {object} capture the numbers of this instant
   * @param {() => Snapshot} capture.whole with all label sets
   * @param {() => Snapshot} capture.news with those that the primary does not know
   */
  constructor(source, capture) {
    this.#source = source;
    this.#capture = capture;
  }

  /**
   * Where the primary looks for the file, and how often it wants one before the end.
   *
   * @param {string} directory '' where there is none
   * @param {string} name
   * @param {unknown} interval milliseconds between checkpoints; none where it is no number above 0
   */
  aimAt(directory, name, interval) {
    if (directory !== this.#directory || name !== this.#name) this.forget();
    this.#directory = directory;
    this.#name = name;
    const wanted = typeof interval === 'number' && interval > 0 ? interval : 0;
    if (wanted === this.#interval) return;
    this.#interval = wanted;
    clearTimeout(this.#timer);
    if (wanted > 0) this.#wait();
  }

  /** What was written may lack what the primary has forgotten: the next checkpoint is due, whatever has changed. */
  forget() {
    this.#fingerprint.forget();
  }

  /**
   * Writes the numbers as they are after all `collect` hooks have run, for a process that is about to end.
   *
   * @param {number} hookTime milliseconds for the hooks
   * @returns {Promise<void>} never rejected
   */
  async handOver(hookTime) {
    await this.#source.prepare(hookTime, true);
    await this.#checkpoint();
  }

  /** Writes the numbers of this instant, at once: for the process's 'exit' handler. */
  write() {
    this.#hasEnded = true;
    if (this.#directory === '') return;
    const unfinished = this.#unfinished();
    // An asynchronous write of a checkpoint may still be under way; it goes on where nobody sees it.
    fs.rmSync(unfinished, { force: true });
    // Whole: by the time it is read, the primary's thread may be another, which knows nothing.
    SnapshotFile.writeSync(unfinished, this.#capture.whole());
    fs.renameSync(unfinished, path.join(this.#directory, this.#name));
  }

  #wait() {
    const milliseconds = Math.min(Math.max(this.#interval, SHORTEST_INTERVAL), LONGEST_INTERVAL);
    this.#timer = setTimeout(() => this.#tick(), milliseconds);
    // Checkpoints keep no process alive.
    this.#timer.unref();
  }

  async #tick() {
    const timer = this.#timer;
    try {
      if (this.#directory !== '' && (await this.#fingerprint.hasChanged(this.#source.registries()))) {
        // Without hooks: they may count from call to call, and these calls are the scrapes'.
        await this.#source.encode();
        await this.#checkpoint();
      }
    } catch (error) {
      // The application's own registry may throw here; it must not learn of it from us.
      debug('no checkpoint: %s', error);
      this.forget();
    }
    if (timer === this.#timer && this.#interval > 0) this.#wait();
  }

  #checkpoint() {
    this.#writing = this.#writing.then(() => this.#replace());
    return this.#writing;
  }

  async #replace() {
    if (this.#directory === '' || this.#hasEnded) return;
    const [unfinished, file] = [this.#unfinished(), path.join(this.#directory, this.#name)];
    try {
      // One that could not be put in place.
      fs.rmSync(unfinished, { force: true });
      const writing = timedSection('worker:checkpoint', () =>
        this.#file.write(path.dirname(unfinished), path.basename(unfinished), this.#capture.news()),
      );
      if (writing !== undefined) await writing;
      if (this.#hasEnded) return;
      // Not over it, which some file systems answer with a write to the disk at once (see Spool.rename). A process that is
      // killed in between leaves the unfinished name, with all that belongs in it.
      fs.rmSync(file, { force: true });
      fs.renameSync(unfinished, file);
    } catch (error) {
      this.forget();
      this.#source.countFailure('checkpoint', '', error);
    }
  }

  #unfinished() {
    return path.join(this.#directory, `${this.#name}.part`);
  }
}

module.exports = { ExitSnapshot };
