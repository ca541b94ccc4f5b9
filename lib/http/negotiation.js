'use strict';

// Reads what a scrape asks for, from the headers and query of its request.

const { formatOf } = require('../exposition/formats');

// Part of the scraper's timeout that is reserved for rendering and for sending the response.
const MARGIN_MILLISECONDS = 500;
const MARGIN_SHARE = 0.2;

// Any client can set the timeout header. It cannot make a scrape wait for a hung worker longer than this, or
// longer than the registry's own timeout if that is more.
const MAX_WAIT_MILLISECONDS = 10_000;

/** @typedef {string | string[] | null | undefined} Header */

/**
 * An element of a header that lists alternatives with weights (RFC 9110, 12.4.2).
 *
 * @typedef {{name: string, parameters: Map<string, string>, weight: number}} Alternative
 */

/**
 * @param {Header} header in which no value in quotes has a separator: no scraper sends one
 * @returns {Alternative[]}
 */
function alternativesOf(header) {
  const parts = String(header ?? '')
    .toLowerCase()
    .split(',');
  return parts.map(part => {
    const [name, ...rest] = part.split(';').map(text => text.trim());
    const parameters = new Map(
      rest.map(text => {
        const [key, value = ''] = text.split('=');
        return [key.trim(), value.trim().replace(/^"(.*)"$/, '$1')];
      }),
    );
    return { name, parameters, weight: Number(parameters.get('q') ?? 1) };
  });
}

/**
 * Whether a scraper accepts gzip (RFC 9110, 12.5.3): by name or by `*`, with a weight above 0.
 *
 * @param {Header} header Accept-Encoding
 * @returns {boolean}
 */
function acceptsGzip(header) {
  const weights = new Map(alternativesOf(header).map(({ name, weight }) => [name, weight]));
  return (weights.get('gzip') ?? weights.get('x-gzip') ?? weights.get('*') ?? 0) > 0;
}

/**
 * Returns the content type with the highest weight (RFC 9110, 12.5.1), or the first text format of equal
 * ones. A reader of text fails if it gets anything else: a binary format is only sent to a reader that asks
 * for it by name and prefers it to all text formats.
 *
 * @param {Header} header Accept
 * @param {string[]} contentTypes at least one
 * @returns {string} the first if the scraper accepts none: a page is more useful than an error
 */
function chooseContentType(header, contentTypes) {
  if (contentTypes.length === 1) return contentTypes[0];
  const ranges = alternativesOf(header);
  const weights = contentTypes.map(contentType => weightOf(contentType, ranges));
  const highest = Math.max(...weights);
  const best = contentTypes.filter((_, i) => weights[i] === highest);
  return best.find(contentType => !formatOf(contentType).isBinary) ?? best[0];
}

/**
 * @param {string} contentType
 * @param {Alternative[]} ranges
 * @returns {number} of the most specific range that includes the content type, 0 if none does
 */
function weightOf(contentType, ranges) {
  const [own] = alternativesOf(contentType);
  const { isBinary } = formatOf(contentType);
  const names = isBinary ? [own.name] : ['*/*', `${own.name.split('/')[0]}/*`, own.name];
  let most = -1;
  let result = 0;
  for (const range of ranges) {
    const precision = names.indexOf(range.name);
    if (precision === -1 || !(isBinary ? hasAllOf(own, range) : isReadable(own, range))) continue;
    const isVersion = range.parameters.get('version') === own.parameters.get('version');
    const specificity = precision * 2 + (isVersion ? 1 : 0);
    // NaN is not a weight.
    if (specificity < most || !(range.weight >= 0)) continue;
    result = specificity === most ? Math.max(result, range.weight) : range.weight;
    most = specificity;
  }
  return result;
}

/**
 * @param {Alternative} own
 * @param {Alternative} range
 * @returns {boolean} whether it has all parameters of ours
 */
function hasAllOf(own, range) {
  return [...own.parameters].every(([name, value]) => range.parameters.get(name) === value);
}

/**
 * Scrapers also list versions that are not served. Prometheus text 0.0.4 is valid 1.0.0, too; other
 * parameters do not matter.
 *
 * @param {Alternative} own
 * @param {Alternative} range
 */
function isReadable(own, range) {
  const version = range.parameters.get('version');
  return version === undefined || version === own.parameters.get('version') || own.name === 'text/plain';
}

/**
 * The metrics that a scrape asks for with `?name[]=…`, as in Go's client library.
 *
 * @param {string | undefined} url
 * @returns {string[] | undefined} sorted, each once; undefined for all
 */
function namesOf(url) {
  const query = /\?([^#]*)/.exec(url ?? '')?.[1];
  if (query === undefined) return undefined;
  const names = new URLSearchParams(query).getAll('name[]');
  return names.length === 0 ? undefined : [...new Set(names)].sort();
}

/**
 * How long to wait for workers.
 *
 * @param {Header} header X-Prometheus-Scrape-Timeout-Seconds
 * @param {number} own the registry's own timeout, milliseconds
 * @returns {number | undefined} milliseconds; undefined for the registry's own timeout
 */
function waitOf(header, own) {
  const milliseconds = Number(header) * 1000;
  if (!(milliseconds > 0) || milliseconds === Infinity) return undefined;
  const wait = milliseconds - Math.min(MARGIN_MILLISECONDS, milliseconds * MARGIN_SHARE);
  return Math.min(wait, Math.max(own, MAX_WAIT_MILLISECONDS));
}

module.exports = { acceptsGzip, chooseContentType, namesOf, waitOf };
