'use strict';

// Sends requests, and again what may succeed later: if the connection fails, on status 5xx and on 429. Other
// answers are final. Neither sockets nor timers keep the process alive: who waits for a push does.

const { PACKAGE_VERSION } = require('../options/package-version');
const { asError } = require('../options/thrown');
const { unref } = require('../event-loop/timers');

// http and https are loaded on first use, as in lib/http/pushgateway.js.

const FIRST_PAUSE_MILLISECONDS = 100;
const LONGEST_PAUSE_MILLISECONDS = 5000;

/** A receiver that asks for a longer pause is not asked again. */
const LONGEST_RETRY_AFTER_MILLISECONDS = 60_000;

/** An answer is empty or one line of text. Another server's may be endless. */
const MAX_ANSWER_BYTES = 4096;
const MAX_REASON_CHARACTERS = 256;

const ABORTED = 'stop() has not waited any longer';

/**
 * @typedef {object} Answer
 * @property {number} status
 * @property {string} reason the start of the text
 * @property {number} retryAfter milliseconds; 0 if the receiver does not say
 * @property {import('node:http').IncomingHttpHeaders} headers
 */

class Receiver {
  #url;
  #headers;
  #timeout;
  #retries;
  #isSuperseded = false;
  #isAborted = false;
  #endPause = () => {};
  /** @type {import('node:http').ClientRequest | undefined} the last one */
  #request = undefined;

  /**
   * @param {object} settings
   * @param {string} settings.url
   * @param {Record<string, string>} settings.headers
   * @param {number} settings.timeout of an attempt, milliseconds
   * @param {number} settings.retries
   */
  constructor({ url, headers, timeout, retries }) {
    this.#url = new URL(url);
    this.#headers = headers;
    this.#timeout = timeout;
    this.#retries = retries;
  }

  /**
   * @param {Buffer} body
   * @param {Record<string, string>} headers of this format
   * @returns {Promise<Answer>} the last one
   * @throws {Error} if the last attempt had no answer, or after abort()
   */
  async send(body, headers) {
    if (this.#isAborted) throw new Error(ABORTED);
    let pause = FIRST_PAUSE_MILLISECONDS;
    for (let retries = this.#retries; ; retries--) {
      const result = await this.#attempt(body, headers).catch(asError);
      const isFinal = !(result instanceof Error) && result.status !== 429 && result.status < 500;
      const wait = result instanceof Error ? pause : result.retryAfter || pause;
      const isLast = isFinal || wait > LONGEST_RETRY_AFTER_MILLISECONDS || retries <= 0;
      if (!isLast && !this.#isSuperseded) await this.#pause(wait);
      // Possibly since the pause has begun.
      if (isLast || this.#isSuperseded) {
        if (result instanceof Error) throw result;
        return result;
      }
      pause = Math.min(pause * 2, LONGEST_PAUSE_MILLISECONDS);
    }
  }

  /**
   * A newer push waits: the one under way is not tried again if it fails.
   *
   * @param {boolean} isSuperseded
   */
  supersede(isSuperseded) {
    this.#isSuperseded = isSuperseded;
    if (isSuperseded) this.#endPause();
  }

  /** Nothing more is sent until reopen(). The push under way fails. */
  abort() {
    this.#isAborted = true;
    this.supersede(true);
    this.#request?.destroy(new Error(ABORTED));
  }

  reopen() {
    this.#isAborted = false;
  }

  /** @param {number} milliseconds */
  #pause(milliseconds) {
    return new Promise(resolve => {
      const timer = unref(setTimeout(resolve, milliseconds));
      this.#endPause = () => {
        clearTimeout(timer);
        resolve(undefined);
      };
    });
  }

  /**
   * @param {Buffer} body
   * @param {Record<string, string>} headers of this format
   * @returns {Promise<Answer>}
   */
  #attempt(body, headers) {
    return new Promise((resolve, reject) => {
      const transport = this.#url.protocol === 'https:' ? require('https') : require('http');
      const request = transport.request(this.#url, {
        method: 'POST',
        headers: {
          'User-Agent': `prom-client-cluster/${PACKAGE_VERSION}`,
          ...this.#headers,
          ...headers,
          'Content-Length': body.length,
        },
      });
      this.#request = request;
      const timer = unref(
        setTimeout(() => {
          request.destroy(new Error(`the receiver has not answered within ${this.#timeout} ms`));
        }, this.#timeout),
      );
      request.on('socket', socket => socket.unref());
      request.on('error', reject);
      request.on('close', () => {
        clearTimeout(timer);
        reject(new Error('the receiver has closed the connection'));
      });
      request.on('response', response => readAnswer(request, response, resolve));
      request.end(body);
    });
  }
}

/**
 * @param {import('node:http').ClientRequest} request
 * @param {import('node:http').IncomingMessage} response
 * @param {(answer: Answer) => void} resolve
 */
function readAnswer(request, response, resolve) {
  const { statusCode: status = 0, headers } = response;
  let text = '';
  const done = () => {
    const reason = text
      .trim()
      .replaceAll(/[\s\p{Cc}]+/gu, ' ')
      .slice(0, MAX_REASON_CHARACTERS);
    resolve({ status, reason, retryAfter: millisecondsOf(headers['retry-after']), headers });
  };
  let bytes = 0;
  response.on('data', chunk => {
    bytes += chunk.length;
    if (text.length < MAX_REASON_CHARACTERS) text += chunk.toString('utf8', 0, MAX_ANSWER_BYTES);
    if (bytes > MAX_ANSWER_BYTES) response.destroy();
  });
  // The status counts, even if the connection breaks or ends after it, or the time is up.
  request.prependListener('error', done);
  request.prependListener('close', done);
  response.on('error', done);
  response.on('close', done);
  response.on('end', done);
}

/**
 * @param {string | undefined} retryAfter seconds, or a date
 * @returns {number}
 */
function millisecondsOf(retryAfter = '') {
  if (/^\d+$/.test(retryAfter)) return Number(retryAfter) * 1000;
  return Math.max(Date.parse(retryAfter) - Date.now(), 0) || 0;
}

module.exports = { Receiver };
