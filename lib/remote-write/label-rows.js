'use strict';

// The label text of a row, read: its labels with those that all series get, sorted, as Prometheus wants them.
// Label sets rarely change, and reading a text takes longer than encoding its labels. So they are cached
// between pushes.

const { KINDS } = require('../series/layouts');
const { joinLabels, labelPair, parseLabels } = require('../exposition/label-text');

/** Rows that are cached at most. One with six labels takes 550 bytes. */
const MAX_ROWS = 50_000;

/** A longer text is read again at each push. */
const MAX_CHARACTERS = 1000;

/** The cache may have this many rows more than twice those of a push, so that small ones are not cleared. */
const SPARE_ROWS = 1000;

/**
 * What write-request.js has made of a label.
 *
 * @typedef {object} Encoding
 * @property {Buffer} [encoded] as version 1.0 has it
 * @property {number} [request] of version 2.0, whose symbols these are:
 * @property {number} [nameReference]
 * @property {number} [valueReference]
 */

/** @typedef {import('../exposition/label-text').Label & Encoding} Label */

/**
 * The labels that all samples of a row have, sorted by name.
 *
 * @typedef {object} Row
 * @property {Label[]} labels
 * @property {number} nameAt how many of them are before `__name__`
 * @property {number} markerAt how many are before the marker, which is `le` or `quantile`
 * @property {string} key the labels as text, without `markers`
 * @property {string} markers those called `le` or `quantile` as text, because a sample of another metric may
 *   have them as its marker
 */

class LabelRows {
  #added;
  /** @type {Map<string | undefined, Map<string, Row>>} by marker and text */
  #rows = new Map();
  /** How many there are. */
  #count = 0;
  /** How many were asked for since the last clean(). */
  #used = 0;
  /** @type {Map<string, Label>} by text; rows have many in common */
  #labels = new Map();

  /** @param {Record<string, string>} labels that all series get that do not have a label of that name */
  constructor(labels) {
    this.#added = Object.entries(labels).map(([name, value]) => labelOf(name, value));
  }

  /**
   * @param {string} text of labels
   * @param {string | undefined} marker name of the label that the sample has in addition
   * @returns {Row | undefined} undefined if Prometheus would refuse the labels
   */
  rowOf(text, marker) {
    this.#used++;
    let rows = this.#rows.get(marker);
    if (rows === undefined) this.#rows.set(marker, (rows = new Map()));
    const cached = rows.get(text);
    if (cached !== undefined) return cached;
    const row = this.#read(text, marker);
    if (row === undefined || text.length > MAX_CHARACTERS || this.#count >= MAX_ROWS) return row;
    row.labels = row.labels.map(label => this.#shared(label));
    rows.set(text, row);
    this.#count++;
    return row;
  }

  /** Clears the cache if most of it is of label sets that have ended; to be called after each push. */
  clean() {
    if (this.#count > 2 * this.#used + SPARE_ROWS) {
      this.#rows.clear();
      this.#labels.clear();
      this.#count = 0;
    }
    this.#used = 0;
  }

  /**
   * @param {string} text
   * @param {string | undefined} marker
   * @returns {Row | undefined}
   */
  #read(text, marker) {
    const labels = parseLabels(text.toWellFormed());
    if (labels === undefined) return undefined;
    const own = labels.length;
    for (const label of this.#added)
      if (label.name !== marker && !hasName(labels, own, label.name)) labels.push(label);
    labels.sort(byName);
    for (let i = 0; i < labels.length; i++) {
      const { name } = labels[i];
      if (name === '__name__' || name === marker || name === labels[i + 1]?.name) return undefined;
    }
    return rowFrom(labels.every(hasValue) ? labels : labels.filter(hasValue), marker);
  }

  /**
   * @param {Label} label
   * @returns {Label} the one of this text
   */
  #shared(label) {
    const existing = this.#labels.get(label.pair);
    if (existing !== undefined) return existing;
    this.#labels.set(label.pair, label);
    return label;
  }
}

/**
 * @param {string} key a row's
 * @param {string} markers
 * @returns {Row} with all these labels
 */
function rowOfKey(key, markers) {
  const labels = /** @type {Label[]} */ (parseLabels(joinLabels(key, markers)));
  return rowFrom(labels.sort(byName), undefined);
}

/**
 * @param {Label[]} labels sorted by name
 * @param {string | undefined} marker name of the label that the sample has in addition
 * @returns {Row}
 */
function rowFrom(labels, marker) {
  const row = { labels, nameAt: 0, markerAt: 0, key: '', markers: '' };
  for (const { name, pair } of labels) {
    if (name < '__name__') row.nameAt++;
    if (marker === undefined || name < marker) row.markerAt++;
    if (KINDS.some(({ marker }) => marker === name)) row.markers = joinLabels(row.markers, pair);
    else row.key = joinLabels(row.key, pair);
  }
  return row;
}

/**
 * @param {string} name
 * @param {string} value
 * @returns {Label}
 */
function labelOf(name, value) {
  return { name, value, pair: labelPair(name, value) };
}

/**
 * @param {Label[]} labels
 * @param {number} count how many of them to search
 * @param {string} name
 */
function hasName(labels, count, name) {
  for (let i = 0; i < count; i++) if (labels[i].name === name) return true;
  return false;
}

/**
 * @param {Label} a
 * @param {Label} b
 */
function byName(a, b) {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

/** @param {Label} label */
function hasValue({ value }) {
  return value !== '';
}

module.exports = { LabelRows, labelOf, rowOfKey };
