'use strict';

// The labels of rows with those that all series get, sorted, as Prometheus wants them. Label sets rarely
// change, so they are kept between pushes, as long as one of their series is.

const { isValidLabelName } = require('../registry/names');

/** How many values of a label are remembered, so that rows share them. */
const MAX_VALUES = 10_000;

/** @typedef {import('../exposition/text-format').Family} Family */

/**
 * @typedef {object} Label
 * @property {string} name
 * @property {string} value
 * @property {string} key equal for equal labels
 * @property {boolean} isValid whether Prometheus accepts it
 * @property {Buffer} [encoded] as version 1.0 has it
 * @property {number} [request] of version 2.0, which has these:
 * @property {number} [nameReference]
 * @property {number} [valueReference]
 */

/**
 * A metric name, with the `le` or `quantile` of its samples.
 *
 * @typedef {object} SampleName
 * @property {Label[]} labels of both, sorted
 * @property {boolean} isMarked whether it has one of these
 * @property {boolean} isValid whether Prometheus accepts the name
 * @property {boolean} isNative whether its series are native histograms
 * @property {Map<Row, number>} series with the last push that has them
 */

/**
 * A label set.
 *
 * @typedef {object} Row
 * @property {Label[]} labels sorted by name, without those of the sample's name
 * @property {string} key equal for equal label sets
 * @property {string} text by which a family finds it
 * @property {number} series how many there are
 */

class LabelRows {
  #added;
  /** @type {Map<string, Map<string, Label>>} by name and value; rows share them */
  #labels = new Map();
  /** @type {Map<string, Row>} by key */
  #rows = new Map();
  /** @type {Map<string, Row>} by text */
  #texts = new Map();

  /** @param {Record<string, string>} labels that all series get that do not have a label of that name */
  constructor(labels) {
    this.#added = Object.entries(labels).map(([name, value]) => labelOf(name, value));
  }

  /**
   * @param {Family} family
   * @param {number} number of its row
   * @param {boolean} isMarked whether the sample has a `le` or `quantile`, which the row then leaves out
   * @returns {Row | undefined} undefined if Prometheus would refuse the labels
   */
  rowOf(family, number, isMarked) {
    const text = family.labelText(number, isMarked);
    // Flattens it: V8 hashes and compares a text that was built with + more slowly.
    Number(text);
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    const labels = this.#labelsOf(family.labels(number, isMarked));
    if (labels === undefined) return undefined;
    let key = '';
    for (const label of labels) key += label.key;
    let row = this.#rows.get(key);
    if (row === undefined) this.#rows.set(key, (row = { labels, key, text, series: 0 }));
    else this.#texts.delete(row.text);
    row.text = text;
    this.#texts.set(text, row);
    return row;
  }

  /**
   * Forgets a series.
   *
   * @param {Row} row
   * @param {SampleName} name
   */
  drop(row, name) {
    name.series.delete(row);
    if (--row.series > 0) return;
    this.#rows.delete(row.key);
    this.#texts.delete(row.text);
  }

  /** @param {import('../exposition/label-text').LabelPair[]} pairs */
  #labelsOf(pairs) {
    const labels = pairs.map(([name, value]) => this.#labelOf(name, value));
    const added = this.#added.filter(({ name }) => !labels.some(own => own.name === name));
    const all = [...labels, ...added].filter(({ value }) => value !== '').sort(byName);
    return all.every(({ isValid, name }, i) => isValid && name !== all[i + 1]?.name) ? all : undefined;
  }

  /**
   * @param {string} name
   * @param {string} value
   * @returns {Label} the same for equal labels
   */
  #labelOf(name, value) {
    const known = this.#labels.get(name)?.get(value);
    if (known !== undefined) return known;
    const label = labelOf(name, value);
    const values = this.#labels.get(name) ?? new Map();
    if (values.size >= MAX_VALUES) values.clear();
    this.#labels.set(name, values.set(value, label));
    return label;
  }
}

/**
 * @param {string} name
 * @param {string} value
 * @returns {Label}
 */
function labelOf(name, value) {
  const text = value.toWellFormed();
  const isValid = isValidLabelName(name) && name !== '__name__';
  return { name, value: text, isValid, key: `${name}=${text.length}:${text}` };
}

/**
 * @param {Row} row
 * @param {SampleName} name
 * @returns {Label[]} all labels of a series, sorted by name
 */
function labelsOfSeries({ labels }, { labels: others }) {
  const all = [];
  let i = 0;
  for (const label of labels) {
    while (i < others.length && others[i].name < label.name) all.push(others[i++]);
    all.push(label);
  }
  while (i < others.length) all.push(others[i++]);
  return all;
}

/**
 * @param {Label} a
 * @param {Label} b
 */
function byName(a, b) {
  return a.name < b.name ? -1 : 1;
}

module.exports = { LabelRows, labelOf, labelsOfSeries };
