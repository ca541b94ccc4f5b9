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

/** @typedef {import('../../source/source-log').LogPosition} LogPosition */
/** @typedef {import('../../source/blocks-ahead').BlocksAhead} BlocksAhead */

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
   * Runs hooks, and writes a file of columns.
   *
   * @param {object} request
   * @param {number} request.requestId 0 if nobody has asked
   * @param {LogPosition | undefined} request.known what the primary has of the log, if there is no directory
   * @param {number | undefined} request.hookTime milliseconds for the `collect` hooks; undefined to run none
   * @param {(file: ColumnsFile, ahead: BlocksAhead, hooksBegan: number) => void} capture calls finish() or
   *   replaces the last columns; see Source.prepare()
   */
  async write({ requestId, known, hookTime }, capture) {
    const file = this.#start(requestId, known);
    try {
      await this.#source.prepare(hookTime, {
        onProgress: blocks => file.writeAhead(blocks),
        capture: (ahead, hooksBegan) => capture(file, ahead, hooksBegan),
      });
    } finally {
      // Does nothing if the file is finished. It is not if a newer request is answered instead, or a registry
      // of the application has thrown.
      file.discard();
    }
  }

  /**
   * @param {number} requestId
   * @param {LogPosition | undefined} known
   * @returns {ColumnsFile} empty
   */
  #start(requestId, known) {
    // If a part of the log was dropped from memory before it was written, the file cannot be continued.
    const { log } = this.#source;
    if (this.directory === '') this.#source.startLogFor(known);
    else if (log.start > (log.name === this.#log.name ? this.#log.length : 0)) log.restart();
    const name = columnsName(this.#workerId, requestId);
    return new ColumnsFile(this.directory, name, minBytes => this.#writeLog(minBytes));
  }

  /**
   * @param {ColumnsFile} file of write(), which answers a request
   * @param {BlocksAhead} ahead
   * @returns {number} how many bytes it has
   * @throws {Error} of the file system, or because there is no directory; the file is removed then
   */
  finish(file, ahead) {
    const bytes = file.finish(() => this.#source.capture(this.#workerId, { ahead }));
    this.#last.asked = file.name;
    this.#removeOldLogs();
    return bytes;
  }

  /**
   * Writes columns that nobody has asked for. They replace the previous ones of this kind.
   *
   * @param {ColumnsFile} file of write()
   * @param {{ahead?: BlocksAhead, isLast?: boolean}} options see Source.capture()
   * @throws {Error} as finish()
   */
  replace(file, options) {
    file.finish(() => this.#source.capture(this.#workerId, options));
    this.#remove(this.#last.unasked);
    this.#last.unasked = file.name;
    this.#removeOldLogs();
  }

  /**
   * The same for the last columns, synchronously, in the process's 'exit' handler. Columns that were being
   * written stay incomplete: they have no header.
   *
   * @param {LogPosition | undefined} known as that of write()
   * @throws {Error} as finish()
   */
  replaceLast(known) {
    const write = () => this.replace(this.#start(0, known), { isLast: true });
    try {
      write();
    } catch (error) {
      if (!DISK_FULL_CODES.has(/** @type {any} */ (error).code)) throw error;
      // The new columns replace these: removing them first frees the space.
      for (const name of Object.values(this.#last)) this.#remove(name);
      write();
    }
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
