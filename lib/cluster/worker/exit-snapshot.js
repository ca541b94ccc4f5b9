'use strict';

// Runs in the worker. Writes the worker's exit snapshot: the file that the primary reads after the worker has
// died. It is written by the process's 'exit' handler, and earlier if the worker may be killed: at
// checkpoints, and when the program announces its end. Each version replaces the one before as a whole. If no
// file can be written, the snapshot is sent over IPC, except at checkpoints.

const fs = require('node:fs');
const path = require('node:path');
const { SnapshotFile } = require('./snapshot-file');
const { isOthers } = require('../../spool/safe-files');
const { ChangeDetector } = require('./change-detector');
const { inMessage, NO_DIRECTORY } = require('./over-ipc');
const { LAST, SHORTEST_CHECKPOINT_INTERVAL } = require('../wire/messages');
const { lastName, dictionaryName, unfinishedName } = require('../../spool/file-names');
const { timedSection } = require('../../event-loop/timed-section');
const { debug } = require('../../options/debug-log');
const { MAX_TIMER, unref } = require('../../event-loop/timers');

const DISK_FULL_CODES = new Set(['ENOSPC', 'EDQUOT']);

// A third more in base64.
const MAX_COMPLETE_BYTES = 131_072;

/** @typedef {import('../../source/snapshot-source').SnapshotSource} SnapshotSource */
/** @typedef {import('../wire/messages').JournalPosition} JournalPosition */

class ExitSnapshot {
  #source;
  #link;
  #workerId;
  /** '' if there is none that this process may write into. */
  #directory = '';
  #name = '';
  #interval = 0;
  #changes = new ChangeDetector();
  /** @type {NodeJS.Timeout | undefined} */
  #timer = undefined;
  /** @type {Promise<void>} the last checkpoint: they are written one after the other */
  #writing = Promise.resolve();
  /** @type {SnapshotFile | undefined} the checkpoint that is being written */
  #unfinished = undefined;

  /**
   * @param {SnapshotSource} source
   * @param {import('../links/ipc').Link} link to the primary
   */
  constructor(source, link) {
    this.#source = source;
    this.#link = link;
    this.#workerId = link.id;
    /**
     * @type {JournalPosition | undefined} what the primary has of the journal: a checkpoint, and a snapshot
     *   over IPC, leave that out
     */
    this.readerPosition = undefined;
  }

  /**
   * Sets the file's directory and name, and how often it is written while the worker runs.
   *
   * @param {string} directory '' if there is none
   * @param {string} name
   * @param {unknown} interval milliseconds between checkpoints; no checkpoints unless it is a number above 0
   */
  aimAt(directory, name, interval) {
    if (directory !== this.#directory || name !== this.#name) this.invalidate();
    this.#directory = directory;
    this.#name = name;
    const wanted = typeof interval === 'number' && interval > 0 ? interval : 0;
    if (wanted === this.#interval) return;
    this.#interval = wanted;
    clearTimeout(this.#timer);
    if (wanted > 0) this.#wait();
  }

  /**
   * Makes the next checkpoint complete: the primary may have lost the label sets that the last one left out.
   */
  invalidate() {
    this.#changes.forget();
  }

  /**
   * Runs all `collect` hooks and writes a checkpoint, in a process that is about to end.
   *
   * @param {number} hookTime milliseconds for the hooks
   * @returns {Promise<void>} never rejected
   */
  async handOver(hookTime) {
    if (this.#name === '') return;
    if (this.#directory !== '') {
      await this.#checkpoint(hookTime);
      return;
    }
    try {
      await this.#source.prepare(hookTime);
    } catch (error) {
      this.#source.countFailure('checkpoint', '', error);
    }
    await this.#sendOverIpc(NO_DIRECTORY);
  }

  /** Writes the current numbers, synchronously, in the process's 'exit' handler. */
  write() {
    if (this.#name === '') return;
    this.#unfinished?.discard();
    // With all label sets, it would be most of what a killed primary leaves.
    if (this.#link.hasEnded?.()) return;
    try {
      // It may have become another user since the last request.
      if (isOthers(this.#directory)) this.#directory = '';
      if (this.#directory === '') throw new Error(NO_DIRECTORY);
      this.#writeMakingRoom();
    } catch (error) {
      this.#sendOverIpc(error);
    }
  }

  #writeMakingRoom() {
    try {
      this.#write();
    } catch (error) {
      if (!DISK_FULL_CODES.has(/** @type {any} */ (error).code)) throw error;
      // The exit snapshot replaces what the directory has of this worker, so there is space for it.
      for (const name of [lastName(this.#workerId), dictionaryName(this.#workerId)])
        fs.rmSync(path.join(this.#directory, name), { force: true });
      this.#write();
    }
  }

  #write() {
    const name = unfinishedName(this.#name);
    const unfinished = path.join(this.#directory, name);
    // It exists if an earlier checkpoint could not be renamed.
    fs.rmSync(unfinished, { force: true });
    const file = new SnapshotFile(this.#directory, name);
    // With all label sets: the aggregator may be restarted before it reads the file, and then has none.
    file.finish(this.#source.capture(this.#workerId, undefined, { isLast: true }));
    fs.renameSync(unfinished, path.join(this.#directory, this.#name));
  }

  /**
   * Sends the current numbers over IPC. In an 'exit' handler, Node.js writes at once what fits into the
   * channel's buffer, 200 kB on Linux, and the rest is lost. So a large snapshot is sent without the label
   * sets that the primary has.
   *
   * @param {unknown} reason why no file could be written
   * @returns {Promise<void>} resolved when they have been sent, or cannot be; never rejected
   */
  #sendOverIpc(reason) {
    debug('worker %d cannot write its exit snapshot: %s', this.#workerId, reason);
    if (!this.#link.isConnected()) return Promise.resolve();
    return new Promise(resolve => {
      try {
        // In this order: a complete one begins a new epoch.
        const rest = this.#source.capture(this.#workerId, this.readerPosition, { isLast: true });
        const complete = this.#source.capture(this.#workerId, undefined, { isLast: true });
        const snapshot = complete.bytes <= MAX_COMPLETE_BYTES ? complete : rest;
        this.#link.send({ type: LAST, ...inMessage(snapshot, reason) }, () => resolve());
      } catch (error) {
        this.#source.countFailure('capture', '', error);
        resolve();
      }
    });
  }

  #wait() {
    const milliseconds = Math.min(Math.max(this.#interval, SHORTEST_CHECKPOINT_INTERVAL), MAX_TIMER);
    this.#timer = setTimeout(() => this.#tick(), milliseconds);
    // The timer does not keep the process alive.
    unref(this.#timer);
  }

  async #tick() {
    const timer = this.#timer;
    try {
      if (this.#directory !== '' && (await this.#changes.hasChanged(this.#source.registries()))) {
        // Without hooks: a hook may expect one call per scrape.
        await this.#checkpoint(undefined);
      }
    } catch (error) {
      // A registry of the application may have thrown. The application must not see that.
      debug('no checkpoint: %s', error);
      this.invalidate();
    }
    if (timer === this.#timer && this.#interval > 0) this.#wait();
  }

  /** @param {number | undefined} hookTime milliseconds for the hooks; undefined to run none */
  #checkpoint(hookTime) {
    this.#writing = this.#writing.then(() => this.#replace(hookTime));
    return this.#writing;
  }

  /** @param {number | undefined} hookTime */
  async #replace(hookTime) {
    if (this.#directory === '') return;
    const unfinished = path.join(this.#directory, unfinishedName(this.#name));
    const finished = path.join(this.#directory, this.#name);
    const file = new SnapshotFile(this.#directory, unfinishedName(this.#name));
    this.#unfinished = file;
    try {
      fs.rmSync(unfinished, { force: true });
      await this.#source.prepare(hookTime, {
        readerPosition: this.readerPosition,
        onProgress: part => file.writeAhead(part),
        capture: dictionary => {
          timedSection('worker:checkpoint', () =>
            file.finish(this.#source.capture(this.#workerId, this.readerPosition, { dictionary })),
          );
        },
      });
      // Not renamed over the old file: some file systems then write to the disk at once (see Spool.rename).
      // If the process is killed in between, the file with the unfinished name is complete.
      fs.rmSync(finished, { force: true });
      fs.renameSync(unfinished, finished);
    } catch (error) {
      file.discard();
      this.invalidate();
      this.#source.countFailure('checkpoint', '', error);
      if (hookTime !== undefined) await this.#sendOverIpc(error);
    } finally {
      this.#unfinished = undefined;
    }
  }
}

module.exports = { ExitSnapshot };
