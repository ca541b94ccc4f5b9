'use strict';

// One worker's part of a family as prom-client's JSON, for a custom aggregator.

const { NAME_LABEL } = require('./row-map');
const { widthOf } = require('./column-layout');
const { quantileFrom } = require('./family-quantiles');

/** @typedef {import('./cluster-family').Source} Source */

/**
 * @param {Source} source its rows are mapped to the family's
 * @param {Iterable<number>} liveRows
 * @param {(row: number) => Record<string, string>} labelsOf a row's labels
 */
function sourceAsJson(source, liveRows, labelsOf) {
  const { name, help, type, aggregator } = source.definition;
  const samplesOf = SAMPLES_BY_LAYOUT[source.definition.layout];
  const values = Array.from(liveRows, row => samplesOf(source, row, labelsOf(row))).flat();
  return { name, help, type, aggregator, values };
}

/** @type {Record<string, (source: Source, row: number, labels: Record<string, string>) => any[]>} */
const SAMPLES_BY_LAYOUT = {
  value: ({ columns }, row, labels) => {
    const { [NAME_LABEL]: metricName, ...own } = labels;
    return [
      metricName === undefined
        ? { value: columns[row], labels }
        : { value: columns[row], metricName, labels: own },
    ];
  },
  histogram: ({ columns, definition: { name, boundsOrQuantiles: bounds } }, row, labels) => {
    const at = row * widthOf('histogram', bounds.length);
    let count = 0;
    const buckets = [...bounds, '+Inf'].map((le, column) => {
      count += columns[at + column];
      return { value: count, metricName: `${name}_bucket`, labels: { ...labels, le } };
    });
    return [...buckets, ...sumAndCount(name, labels, columns[at + bounds.length + 1], count)];
  },
  summary: ({ columns, digestOf, definition: { name, boundsOrQuantiles: quantiles } }, row, labels) => {
    const digest = digestOf?.(row);
    const values = quantiles.map(quantile => ({
      value: quantileFrom(digest, quantile),
      labels: { ...labels, quantile },
    }));
    return [...values, ...sumAndCount(name, labels, columns[row * 2], columns[row * 2 + 1])];
  },
};

/**
 * @param {string} name
 * @param {Record<string, string>} labels
 * @param {number} sum
 * @param {number} count
 */
function sumAndCount(name, labels, sum, count) {
  return [
    { value: sum, metricName: `${name}_sum`, labels },
    { value: count, metricName: `${name}_count`, labels },
  ];
}

module.exports = { sourceAsJson };
