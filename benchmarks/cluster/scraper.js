'use strict';

// A scraper like Prometheus: HTTP on a keep-alive connection, with or without gzip.

const http = require('node:http');
const zlib = require('node:zlib');

const DEADLINE = 60_000;
const agent = new http.Agent({ keepAlive: true });

/**
 * @param {number} port on loopback
 * @param {{gzip: boolean}} options
 * @returns {Promise<{milliseconds: number, bytes: number, text: () => string}>} the time from the request to
 *   the last byte, the bytes of the body as sent, and the body, unpacked when asked for
 * @throws {Error} unless the answer is 200 and, if asked for, gzip
 */
async function scrapeOverHttp(port, { gzip }) {
  const began = performance.now();
  const { response, body } = await get(port, gzip ? 'gzip' : 'identity');
  const milliseconds = performance.now() - began;
  if (response.statusCode !== 200)
    throw new Error(`scrape answered ${response.statusCode}: ${body.subarray(0, 200)}`);
  const packed = response.headers['content-encoding'] === 'gzip';
  if (packed !== gzip) throw new Error(`asked with gzip: ${gzip}, answered with gzip: ${packed}`);
  return { milliseconds, bytes: body.length, text: () => (packed ? zlib.gunzipSync(body) : body).toString() };
}

function get(port, encoding) {
  return new Promise((resolve, reject) => {
    const options = {
      host: '127.0.0.1',
      port,
      path: '/metrics',
      agent,
      headers: { 'Accept-Encoding': encoding },
    };
    const request = http.get({ ...options, signal: AbortSignal.timeout(DEADLINE) }, response => {
      const chunks = [];
      response.on('data', chunk => chunks.push(chunk));
      response.on('end', () => resolve({ response, body: Buffer.concat(chunks) }));
      response.on('error', reject);
    });
    request.on('error', reject);
  });
}

module.exports = { scrapeOverHttp };
