'use strict';

// Sends the requests of a push. A request is repeated if it may succeed later: if the connection fails, and
// on status 5xx and 429. Other answers are final. Neither sockets nor timers keep the process alive; the
// caller that waits for the push does.

const timers = require('timers/promises');
const { PACKAGE_VERSION } = require('../options/package-version');
const { asError } = require('../options/thrown');
const { unref } = require('../event-loop/timers');
const { codedError } = require('../options/coded-error');

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

/** Takes the requests of one push. */
class Receiver {
  #url;
  #headers;
  #timeout;
  #retries;
  #superseded = new AbortController();
  #isAborted = false;
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
   * @throws {Error} if the last attempt had no answer, or after an abort
   */
  async send(body, headers) {
    if (this.#isAborted) throw new Error(ABORTED);
    const { signal } = this.#superseded;
    let pause = FIRST_PAUSE_MILLISECONDS;
    for (let retries = this.#retries; ; retries--) {
      const result = await this.#attempt(body, headers).catch(asError);
      const isFinal = !(result instanceof Error) && result.status !== 429 && result.status < 500;
      const wait = result instanceof Error ? pause : result.retryAfter || pause;
      const isLast = isFinal || wait > LONGEST_RETRY_AFTER_MILLISECONDS || retries <= 0;
      if (!isLast) await timers.setTimeout(wait, undefined, { ref: false, signal }).catch(() => {});
      if (isLast || signal.aborted) {
        if (result instanceof Error) throw result;
        return result;
      }
      pause = Math.min(pause * 2, LONGEST_PAUSE_MILLISECONDS);
    }
  }

  /**
   * A newer push waits: this one is not sent again if it fails.
   *
   * @param {boolean} isAborted whether nothing more is sent at all, and the request under way fails
   */
  supersede(isAborted) {
    this.#superseded.abort();
    if (!isAborted) return;
    this.#isAborted = true;
    this.#request?.destroy(new Error(ABORTED));
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
          request.destroy(
            codedError('TIMEOUT', Error, `the receiver has not answered within ${this.#timeout} ms`),
          );
        }, this.#timeout),
      );
      /** @type {Answer | undefined} */
      let answer;
      let failure = new Error('the receiver has closed the connection');
      request.on('socket', socket => socket.unref());
      request.on('response', response => (answer = answerOf(response)));
      request.on('error', error => (failure = error));
      request.on('close', () => {
        clearTimeout(timer);
        // The status counts, even if the connection breaks after it, or the time is up.
        if (answer === undefined) reject(failure);
        else resolve(answer);
      });
      request.end(body);
    });
  }
}

/**
 * @param {import('node:http').IncomingMessage} response
 * @returns {Answer} whose reason is what has come so far
 */
function answerOf(response) {
  const { statusCode: status = 0, headers } = response;
  const answer = { status, reason: '', retryAfter: millisecondsOf(headers['retry-after']), headers };
  let text = '';
  let bytes = 0;
  response.on('data', chunk => {
    bytes += chunk.length;
    if (text.length < MAX_REASON_CHARACTERS) text += chunk.toString('utf8', 0, MAX_ANSWER_BYTES);
    answer.reason = text
      .trim()
      .replaceAll(/[\s\p{Cc}]+/gu, ' ')
      .slice(0, MAX_REASON_CHARACTERS);
    if (bytes > MAX_ANSWER_BYTES) response.destroy();
  });
  response.on('error', () => {});
  return answer;
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
