'use strict';

// What a scrape asks for: headers and query of its request.

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
 * @param {Header} header
 * @returns {Alternative[]}
 */
function alternativesOf(header) {
  return String(header ?? '')
    .toLowerCase()
    .split(',')
    .map(part => {
      const [name, ...rest] = part.split(';').map(text => text.trim());
      const parameters = new Map(
        rest.map(text => {
          const [key, value = ''] = text.split('=').map(side => side.trim());
          return [key, value.replace(/^"(.*)"$/, '$1')];
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
 * The content type with the highest weight (RFC 9110, 12.5.1); of equal ones, the first.
 *
 * @param {Header} header Accept
 * @param {string[]} contentTypes at least one
 * @returns {string} the first if the scraper accepts none: a page is more useful than an error
 */
function chooseContentType(header, contentTypes) {
  if (contentTypes.length === 1) return contentTypes[0];
  const ranges = alternativesOf(header);
  const weights = contentTypes.map(contentType => weightOf(contentType, ranges));
  return contentTypes[weights.indexOf(Math.max(...weights))];
}

/**
 * @param {string} contentType
 * @param {Alternative[]} ranges
 * @returns {number} of the most specific range that includes the content type, 0 if none does
 */
function weightOf(contentType, ranges) {
  const [{ name, parameters }] = alternativesOf(contentType);
  const type = name.split('/')[0];
  let most = -1;
  let result = 0;
  for (const range of ranges) {
    const version = range.parameters.get('version');
    // Scrapers also list versions that are not served.
    if (version !== undefined && version !== parameters.get('version')) continue;
    const precision = ['*/*', `${type}/*`, name].indexOf(range.name);
    if (precision === -1) continue;
    const specificity = precision * 2 + (version === undefined ? 0 : 1);
    // NaN is no weight.
    if (specificity < most || !(range.weight >= 0)) continue;
    result = specificity === most ? Math.max(result, range.weight) : range.weight;
    most = specificity;
  }
  return result;
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
