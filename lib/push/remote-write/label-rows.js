'use strict';

// The labels of a row with those that all series get, sorted, as Prometheus wants them. Label sets rarely
// change, so they are cached between pushes, with what was made of them, by their text.

const { KINDS } = require('../../series/layouts');
const { isValidLabelName } = require('../../registry/names');
const { joinLabels } = require('../../exposition/label-text');

/** Rows that are cached at most. One with six labels takes 550 bytes. */
const MAX_ROWS = 50_000;

/** Labels with a longer text are read again at each push. */
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

/** @typedef {import('../../exposition/text-format').Family} Family */
/** @typedef {{name: string, value: string, key: string} & Encoding} Label `key`: equal for equal labels */

/**
 * The labels that all samples of a row have, sorted by name.
 *
 * @typedef {object} Row
 * @property {Label[]} labels
 * @property {number} nameAt how many of them are before `__name__`
 * @property {number} markerAt how many are before the marker, which is `le` or `quantile`
 * @property {string} key keys of the labels, without `markers`
 * @property {string} markers those of labels called `le` or `quantile`, because a sample of another metric
 *   may have them as its marker
 */

class LabelRows {
  #added;
  /** @type {Map<string | undefined, Map<string, Row>>} by marker and text */
  #rows = new Map();
  /** How many there are. */
  #count = 0;
  /** How many were asked for since the last clean(). */
  #used = 0;
  /** @type {Map<string, Map<string, Label>>} by name and value; rows have many in common */
  #labels = new Map();

  /** @param {Record<string, string>} labels that all series get that do not have a label of that name */
  constructor(labels) {
    this.#added = Object.entries(labels).map(([name, value]) => labelOf(name, value));
  }

  /**
   * @param {Family} family
   * @param {number} number of its row
   * @param {string | undefined} marker name of the label that the sample has in addition
   * @returns {Row | undefined} undefined if Prometheus would refuse the labels
   */
  rowOf(family, number, marker) {
    this.#used++;
    const text = family.labelText(number, marker !== undefined);
    // Flattens it: V8 hashes and compares a text that was built with + more slowly.
    Number(text);
    let rows = this.#rows.get(marker);
    if (rows === undefined) this.#rows.set(marker, (rows = new Map()));
    const cached = rows.get(text);
    if (cached !== undefined) return cached;
    const row = this.#read(family.labels(number, marker !== undefined), marker);
    if (row === undefined || text.length > MAX_CHARACTERS || this.#count >= MAX_ROWS) return row;
    for (const label of row.labels) this.#share(label);
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
   * @param {import('../../exposition/label-text').LabelPair[]} pairs
   * @param {string | undefined} marker
   * @returns {Row | undefined}
   */
  #read(pairs, marker) {
    const labels = pairs.map(([name, value]) => this.#labelOf(name, value.toWellFormed()));
    const own = labels.length;
    for (const label of this.#added)
      if (label.name !== marker && !hasName(labels, own, label.name)) labels.push(label);
    labels.sort(byName);
    for (let i = 0; i < labels.length; i++) {
      const { name } = labels[i];
      if (!isValidLabelName(name) || name === '__name__' || name === marker || name === labels[i + 1]?.name)
        return undefined;
    }
    return rowFrom(labels.every(hasValue) ? labels : labels.filter(hasValue), marker);
  }

  /**
   * @param {string} name
   * @param {string} value
   */
  #labelOf(name, value) {
    return this.#labels.get(name)?.get(value) ?? labelOf(name, value);
  }

  /** @param {Label} label to be found from now on */
  #share(label) {
    const { name, value } = label;
    const values = this.#labels.get(name) ?? new Map();
    if (!values.has(value)) this.#labels.set(name, values.set(value, label));
  }
}

/**
 * @param {string} key a row's
 * @param {string} markers
 * @returns {Row} with all these labels
 */
function rowOfKey(key, markers) {
  /** @type {[string, string][]} */
  const pairs = JSON.parse(`[${joinLabels(key, markers)}]`);
  return rowFrom(pairs.map(pair => labelOf(...pair)).sort(byName), undefined);
}

/**
 * @param {Label[]} labels sorted by name
 * @param {string | undefined} marker name of the label that the sample has in addition
 * @returns {Row}
 */
function rowFrom(labels, marker) {
  const row = { labels, nameAt: 0, markerAt: 0, key: '', markers: '' };
  for (const { name, key } of labels) {
    if (name < '__name__') row.nameAt++;
    if (marker === undefined || name < marker) row.markerAt++;
    if (KINDS.some(({ marker }) => marker === name)) row.markers = joinLabels(row.markers, key);
    else row.key = joinLabels(row.key, key);
  }
  return row;
}

/**
 * @param {string} name
 * @param {string} value
 * @returns {Label}
 */
function labelOf(name, value) {
  return { name, value, key: JSON.stringify([name, value]) };
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
