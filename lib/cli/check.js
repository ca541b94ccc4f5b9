'use strict';

// `prom-client-cluster check <url>`: checks a page like `promtool check metrics`.

const { parsePage } = require('../testing/parse-page');
const { lintFamilies } = require('../testing/lint');
const { textOf } = require('../options/thrown');

/** The default timeout of Prometheus. */
const TIMEOUT = 10_000;

const MAX_LINE = 200;

/** Names that prom-client has given to default metrics. Dashboards use them, so they stay. */
const STAYS = /nodejs_active_(?:handles|requests|resources)_total$/;

/**
 * Fetches a page and prints its problems.
 *
 * @param {string} address URL; without a scheme http
 * @param {(text: string) => void} write
 * @param {{timeout?: number}} [limits] milliseconds for all of the page
 * @returns {Promise<number>} exit status: 0, 1 if the page has problems, 2 if there is no page
 */
async function check(address, write, { timeout = TIMEOUT } = {}) {
  let text;
  try {
    text = await fetchPage(address, timeout);
  } catch (error) {
    write(`${address}: ${reasonOf(error, timeout)}`);
    return 2;
  }
  try {
    const families = parsePage(text);
    const all = lintFamilies(families);
    const problems = all.filter(({ metric }) => !STAYS.test(metric));
    for (const { metric, text: problem } of problems) write(`${metric} ${problem}`);
    if (all.length > problems.length)
      write(
        `${all.length - problems.length} default metrics keep prom-client's name, which promtool reports`,
      );
    write(`${families.length} metrics, ${problems.length} problems`);
    return problems.length === 0 ? 0 : 1;
  } catch (error) {
    write(`${address}: this is not a page of metrics. ${textOf(error).slice(0, MAX_LINE)}`);
    return 1;
  }
}

/**
 * @param {string} address
 * @param {number} timeout milliseconds
 * @returns {Promise<string>}
 * @throws {Error} if there is none
 */
async function fetchPage(address, timeout) {
  const { url, authorization } = parse(address);
  const headers = { accept: 'text/plain;version=0.0.4,*/*;q=0.1', ...authorization };
  const response = await fetch(url, { headers, signal: AbortSignal.timeout(timeout) });
  const text = await response.text();
  if (response.ok) return text;
  throw new Error(`status ${response.status}: ${text.split('\n', 1)[0].slice(0, MAX_LINE)}`);
}

/** @param {string} address */
function parse(address) {
  const url = new URL(address.includes('://') ? address : `http://${address}`);
  if (!/^https?:$/.test(url.protocol)) throw new Error('the URL must be one of http or https');
  const { username, password } = url;
  if (username === '' && password === '') return { url };
  // fetch() refuses a URL with credentials.
  url.username = url.password = '';
  const credentials = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`);
  return { url, authorization: { authorization: `Basic ${credentials.toString('base64')}` } };
}

/**
 * @param {any} error
 * @param {number} timeout milliseconds
 * @returns {string} for a person
 */
function reasonOf(error, timeout) {
  if (error?.name === 'TimeoutError') return `no complete answer within ${timeout} ms`;
  // fetch() says `fetch failed`, and why in the cause; an AggregateError has no text.
  return textOf(error?.cause?.message || error?.cause?.code || error);
}

module.exports = { check };
