'use strict';

// Runs in the worker. The files of the worker's source: one log, and the columns that refer to it. The reader
// removes the columns of a request when it has later ones. The worker itself removes all other columns, and
// logs.

const fs = require('node:fs');
const path = require('node:path');
const { ColumnsFile } = require('./columns-file');
const { columnsName, logName } = require('../../spool/file-names');
const { checkDirectory, writeAll } = require('../../spool/safe-files');
const { debug } = require('../../options/debug-log');

const { O_WRONLY, O_NOFOLLOW = 0 } = fs.constants;

const DISK_FULL_CODES = new Set(['ENOSPC', 'EDQUOT']);

class SourceFiles {
  #source;
  #workerId;
  /** The last directory that was not ''. */
  #place = '';
  /** Name of the log in that directory, and how many bytes of it are written. */
  #log = { name: '', length: 0 };
  /** @type {string[]} names of logs that no columns need once the next columns are complete */
  #oldLogs = [];
  /** Names of the last columns of a request, and of the last ones that nobody has asked for. '' for none. */
  #last = { asked: '', unasked: '' };

  /**
   * @param {import('../../source/source').Source} source
   * @param {number} workerId
   */
  constructor(source, workerId) {
    this.#source = source;
    this.#workerId = workerId;
    /** The primary's; '' if it has none that this process may write into. */
    this.directory = '';
  }

  /** @param {string} directory '' for none */
  aimAt(directory) {
    this.directory = directory;
    // After an answer in a message, the log in the same directory is continued.
    if (directory === '' || directory === this.#place) return;
    this.#place = directory;
    // The files may have been moved to the new directory, where another leader removes this log's file.
    if (this.#log.name === this.#source.log.name) this.#source.log.restart();
    this.#log = { name: '', length: 0 };
    this.#oldLogs = [];
    this.#last = { asked: '', unasked: '' };
  }

  /**
   * Answers a request with a file.
   *
   * @param {number} requestId
   * @returns {ColumnsFile} empty
   */
  start(requestId) {
    // If a part of the log was dropped from memory before it was written, the file cannot be continued.
    const { log } = this.#source;
    if (log.start > (log.name === this.#log.name ? this.#log.length : 0)) log.restart();
    const name = columnsName(this.#workerId, requestId);
    return new ColumnsFile(this.directory, name, minBytes => this.#writeLog(minBytes));
  }

  /**
   * @param {ColumnsFile} file from start()
   * @param {import('../../source/columns-encoder').EncodedColumns} columns
   * @throws {Error} of the file system; the file is removed then
   */
  finish(file, columns) {
    file.finish(columns);
    this.#last.asked = file.name;
    this.#removeOldLogs();
  }

  /**
   * Writes columns that nobody has asked for. They replace the previous ones of this kind.
   *
   * @param {number | undefined} hookTime milliseconds for the `collect` hooks; undefined to run none
   * @param {(capture: () => void) => void} timed runs the capture, which also writes
   * @throws {Error} if writing fails; nothing is left of the new file then
   */
  async replace(hookTime, timed) {
    const file = this.start(0);
    try {
      await this.#source.prepare(hookTime, {
        onProgress: blocks => file.writeAhead(blocks),
        capture: ahead =>
          timed(() => {
            file.finish(this.#source.capture(this.#workerId, { ahead }));
            this.#replaced(file);
          }),
      });
    } finally {
      file.discard();
    }
  }

  /**
   * The same for the last columns, synchronously, in the process's 'exit' handler. Columns that were being
   * written stay incomplete: they have no header.
   *
   * @throws {Error} if writing fails
   */
  replaceLast() {
    try {
      this.#writeLast();
    } catch (error) {
      if (!DISK_FULL_CODES.has(/** @type {any} */ (error).code)) throw error;
      // The new columns replace these: removing them first frees the space.
      for (const name of Object.values(this.#last)) this.#remove(name);
      this.#writeLast();
    }
  }

  #writeLast() {
    const file = this.start(0);
    file.finish(this.#source.capture(this.#workerId, { isLast: true }));
    this.#replaced(file);
  }

  /** @param {ColumnsFile} file */
  #replaced({ name }) {
    this.#remove(this.#last.unasked);
    this.#last.unasked = name;
    this.#removeOldLogs();
  }

  /**
   * Appends to the file what it lacks of the log.
   *
   * @param {number} [minBytes] nothing is written if less is missing
   */
  #writeLog(minBytes = 1) {
    const { log } = this.#source;
    const isNew = log.name !== this.#log.name;
    const from = isNew ? 0 : this.#log.length;
    if (log.length - from < minBytes) return;
    if (from < log.start) throw new Error('the beginning of the log is missing');
    checkDirectory(this.directory);
    const name = logName(this.#workerId, log.name);
    const file = path.join(this.directory, name);
    try {
      // Written at an explicit position, so that the remains of a failed write are overwritten.
      const descriptor = fs.openSync(file, isNew ? 'wx' : O_WRONLY | O_NOFOLLOW, 0o600);
      try {
        writeAll(descriptor, log.bytesFrom(from), from);
      } finally {
        fs.closeSync(descriptor);
      }
    } catch (error) {
      if (isNew && /** @type {any} */ (error).code !== 'EEXIST') this.#remove(name);
      // Somebody has removed the file: the next call writes the log again from its start, or starts another
      // one.
      else if (/** @type {any} */ (error).code === 'ENOENT') this.#log = { name: '', length: 0 };
      throw error;
    }
    if (isNew && this.#log.name !== '') this.#oldLogs.push(logName(this.#workerId, this.#log.name));
    this.#log = { name: log.name, length: log.length };
    log.forgetBefore(log.length);
  }

  #removeOldLogs() {
    for (const name of this.#oldLogs.splice(0)) this.#remove(name);
  }

  /** @param {string} name '' for none */
  #remove(name) {
    if (name === '') return;
    try {
      fs.rmSync(path.join(this.directory, name), { force: true });
    } catch (error) {
      // The primary removes it when this worker has ended.
      debug('%s cannot be removed: %s', name, error);
    }
  }
}

module.exports = { SourceFiles };
