'use strict';

// Reads a family's samples one by one, for protocols that are not text. Names and values are those that
// text-format.js writes.

const { kindOf, samplesOf } = require('../series/layouts');

/** @typedef {import('./text-format').Family} Family */
/** @typedef {import('./text-format').Exemplar} Exemplar */
/** @typedef {import('./formats').Format} Format */
/** @typedef {import('./label-text').LabelPair} LabelPair */

/**
 * @template N
 * @typedef {object} SampleSink
 * @property {(name: string, marker?: LabelPair) => N} nameOf called once for each metric name of a family,
 *   for buckets and quantiles with their `le` or `quantile`
 * @property {(name: N, row: number, value: number, exemplar?: Exemplar | null) => void} onSample
 */

/**
 * @template N
 * @param {Family} family
 * @param {Pick<Format, 'sampleName'>} format whose names samples have
 * @param {SampleSink<N>} sink
 * @returns {(row: number) => void} calls onSample for each sample of a row
 */
function sampleReader(family, { sampleName }, sink) {
  const name = String(family.name);
  if (family.sampleName !== undefined) return namedReader(family, name, sampleName, sink);
  return layoutReader(family, sampleName(name, family.type), sink);
}

/**
 * @template N
 * @param {Family} family
 * @param {string} familyName
 * @param {Format['sampleName']} sampleName
 * @param {SampleSink<N>} sink
 */
function namedReader(family, familyName, sampleName, { nameOf, onSample }) {
  /** @type {Map<string, N>} by the name as the family has it */
  const names = new Map();
  return (/** @type {number} */ row) => {
    const own = family.sampleName?.(row) || familyName;
    let name = names.get(own);
    if (name === undefined) {
      name = nameOf(sampleName(own, family.type));
      names.set(own, name);
    }
    const value = family.pageOf(row)[family.offsetOf(row)];
    onSample(name, row, value, family.exemplarAt?.(row, 0));
  };
}

/**
 * @template N
 * @param {Family} family
 * @param {string} name
 * @param {SampleSink<N>} sink
 */
function layoutReader(family, name, { nameOf, onSample }) {
  const { marker = '', read } = kindOf(family.layout);
  const samples = samplesOf(family.layout).map(({ suffix, mark, column }) => ({
    name: nameOf(name + suffix, mark === undefined ? undefined : [marker, String(mark)]),
    column,
  }));
  const values = new Array(samples.length).fill(0);
  return (/** @type {number} */ row) => {
    read(values, family.pageOf(row), family.offsetOf(row), family.quantileValues?.(row) ?? []);
    samples.forEach(({ name, column }, i) => {
      const exemplar = column === undefined ? undefined : family.exemplarAt?.(row, column);
      onSample(name, row, values[i], exemplar);
    });
  };
}

module.exports = { sampleReader };
