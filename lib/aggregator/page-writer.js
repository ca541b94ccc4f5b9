'use strict';

// Runs with the aggregator. Writes families in the requested forms: pages in memory, pages in files, and
// pushes of remote write.

const { renderBytes } = require('../exposition/text-bytes');
const { formatOf } = require('../exposition/formats');
const { formatsFor, selectFamilies, textKeyOf } = require('../exposition/page-format');
const { compressBody } = require('./gzip');
const { debug } = require('../options/debug-log');

/** @typedef {import('../exposition/text-format').Family} Family */
/** @typedef {import('../cluster/wire/scrape-callers').Format} Format */
/** @typedef {import('../cluster/wire/scrape-callers').PageFile} PageFile */
/** @typedef {import('../cluster/wire/scrape-callers').BuiltPush} BuiltPush */
/** @typedef {import('./gzip').Body} Body */

// A larger buffer is dropped: otherwise a page that has become much shorter would hold its memory for good.
const MAX_OVERSIZE = 4;

// Additional bytes: the last piece of a page needs space for its longest possible encoding.
const LAST_PIECE_BYTES = 262_144;

class PageWriter {
  #pushSessions;
  #onFailure;
  /** @type {ArrayBuffer | undefined} memory of a page that was compressed, for the next one */
  #memory = undefined;
  /** Bytes of the last page. */
  #lastLength = 65536;

  /**
   * @param {import('./push-sessions').PushSessions} pushSessions
   * @param {(family: Family, error: unknown) => void} onFailure called for each family that cannot be written
   */
  constructor(pushSessions, onFailure) {
    this.#pushSessions = pushSessions;
    this.#onFailure = onFailure;
  }

  /**
   * @param {Family[]} families
   * @param {Family[]} selfFamilies for the formats that include self-metrics
   * @param {Format[]} formats
   * @returns {Generator<void, (Body | BuiltPush)[]>} by format; yields where a slice may end
   */
  *write(families, selfFamilies, formats) {
    /** @type {Map<string, Body>} */
    const texts = new Map();
    /** @type {(Body | BuiltPush)[]} */
    const bodies = [];
    for (const format of formatsFor(formats, families)) {
      const all = format.selfMetrics ? [...families, ...selfFamilies] : families;
      if (format.push !== undefined) {
        bodies.push(yield* this.#pushSessions.build(all, formatOf(format.format), format.push));
        continue;
      }
      const key = `${textKeyOf(format)} ${format.selfMetrics}`;
      let text = texts.get(key);
      if (text === undefined) {
        text = yield* this.#textOf(all, format);
        texts.set(key, text);
      }
      if (format.gzip) bodies.push(compressBody(text));
      else bodies.push(bodies.includes(text) ? { ...text, buffer: text.buffer.slice(0) } : text);
      yield;
    }
    for (const text of texts.values()) if (!bodies.includes(text)) this.#memory = text.buffer;
    return bodies;
  }

  /**
   * @param {Family[]} families
   * @param {Format} format
   * @returns {Generator<void, Body>}
   */
  *#textOf(families, { format, names }) {
    const shown = selectFamilies(families, names);
    const body = yield* renderBytes(shown, formatOf(format), this.#memoryForPage(), this.#onFailure);
    // The length of a page with only some families does not predict that of the next page.
    if (names === undefined) this.#lastLength = body.length;
    return body;
  }

  /** @returns {number | ArrayBuffer} such that a page somewhat longer than the last one is not moved */
  #memoryForPage() {
    const memory = this.#memory;
    this.#memory = undefined;
    const least = this.#lastLength + LAST_PIECE_BYTES;
    const expected = least + (this.#lastLength >> 4);
    const fits = memory && memory.byteLength >= least && memory.byteLength <= expected * MAX_OVERSIZE;
    return fits ? memory : expected;
  }

  /**
   * Writes the pages that workers have requested to files. What cannot be written goes over IPC.
   *
   * @param {(Body | BuiltPush)[]} bodies
   * @param {Format[]} formats
   * @param {import('../spool/spool').Spool | undefined} spool
   * @returns {Generator<void, (Body | PageFile | BuiltPush)[]>} yields where a slice may end
   */
  *writeFiles(bodies, formats, spool) {
    /** @type {(Body | PageFile | BuiltPush)[]} */
    const pages = [...bodies];
    for (const [i, { file }] of formats.entries()) {
      const body = bodies[i];
      if (file === undefined || spool === undefined || !('buffer' in body)) continue;
      const { buffer, length } = body;
      try {
        yield* spool.create(file, new Uint8Array(buffer, 0, length));
        pages[i] = { file, length };
      } catch (error) {
        debug('a page cannot be written to a file: %s', error);
      }
    }
    return pages;
  }
}

module.exports = { PageWriter };
