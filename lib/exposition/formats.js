'use strict';

// The formats of pages. To add a format, add such a value to FORMATS.

const { inspect } = require('util');
const { isCounter } = require('../series/layouts');
const { textFormat } = require('./text-format');
const { invalidOption } = require('../options/coded-error');

/** @typedef {import('./text-format').Family} Family */

/**
 * A format of pages. Between threads and processes, it is passed by its name.
 *
 * @typedef {object} Format
 * @property {string} name also in options
 * @property {string} contentType
 * @property {boolean} [isBinary] whether pieces are bytes, and metrics() resolves with bytes
 * @property {boolean} [hasExemplars]
 * @property {string} separator between two families; empty if pieces are bytes
 * @property {string} ending of a page
 * @property {string} emptyPage without families
 * @property {(name: string, type: string) => string} familyName given the metric's name
 * @property {(name: string, type: string) => string} sampleName
 * @property {(family: Family) => Generator<string | Buffer, void>} write yields the pieces of a family,
 *   without what separates families
 * @property {(family: Family) => string} [head] with `rowWriter`: what precedes the rows of a family
 * @property {(family: Family) => (row: number) => string} [rowWriter] if each row is a text that can be kept
 */

/** Prometheus text 0.0.4. */
const TEXT = textFormat({
  name: 'text',
  contentType: 'text/plain; version=0.0.4; charset=utf-8',
  separator: '\n\n',
  ending: '\n',
  emptyPage: '\n',
  familyName: name => name,
  sampleName: name => name,
});

/** OpenMetrics text 1.0.0. It allows no empty line; metrics() has one without families, as in prom-client. */
const OPENMETRICS = textFormat({
  name: 'openmetrics',
  contentType: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
  hasExemplars: true,
  separator: '\n',
  ending: '\n# EOF\n',
  emptyPage: '# EOF\n',
  familyName: (name, type) => (isCounter(type) ? baseName(name) : name),
  sampleName: (name, type) => (isCounter(type) ? `${baseName(name)}_total` : name),
});

/** @type {Format} Its writer is loaded on first use, because most programs never need it. */
const PROTOBUF = {
  name: 'protobuf',
  contentType: 'application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited',
  isBinary: true,
  hasExemplars: true,
  separator: '',
  ending: '',
  emptyPage: '',
  familyName: name => name,
  sampleName: name => name,
  write: family => require('./protobuf-format').writeFamily(family),
};

/** @type {Format[]} */
const FORMATS = [TEXT, OPENMETRICS, PROTOBUF];

/** @param {string} name of a counter */
function baseName(name) {
  return name.replace(/_total$/, '');
}

/**
 * @param {unknown} id name or content type
 * @returns {Format} Prometheus text if there is no such format
 */
function formatOf(id) {
  return FORMATS.find(({ name, contentType }) => name === id || contentType === id) ?? TEXT;
}

/**
 * @param {unknown} contentType
 * @returns {contentType is string} whether this format is supported
 */
function isSupported(contentType) {
  return formatOf(contentType).contentType === contentType;
}

/**
 * @param {unknown} names of formats
 * @returns {string[]} their content types, each once
 * @throws {TypeError} if it is not a list of names, or is empty
 */
function contentTypesOf(names) {
  const list = Array.isArray(names) ? names : [];
  if (list.length === 0 || list.some(name => formatOf(name).name !== name)) {
    const known = FORMATS.map(({ name }) => `'${name}'`).join(', ');
    throw invalidOption(`formats must be a list of ${known}: ${inspect(names)}`);
  }
  return [...new Set(list.map(name => formatOf(name).contentType))];
}

module.exports = {
  FORMATS,
  TEXT,
  OPENMETRICS,
  PROTOBUF,
  formatOf,
  isSupported,
  contentTypesOf,
};
