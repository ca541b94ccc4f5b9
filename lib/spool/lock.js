'use strict';

// Runs where the spool runs. Shows other processes that the owner of a spool lives: its lock is renewed.

const fs = require('node:fs');
const path = require('node:path');
const { LOCK } = require('./sweep');
const { unlessMissing } = require('./safe-files');
const { unref } = require('../event-loop/timers');

/** @typedef {import('./spool').Spool} Spool */

/**
 * The lock is in the directory, so it is moved and removed with it.
 *
 * @param {Spool} spool
 * @param {{lock: boolean, stale: number, update: number}} terms see Spool.open()
 * @param {(reason: string) => void} onLost called if the directory is gone or its lock is lost
 * @returns {() => void} ends it
 */
function hold(spool, { lock, stale, update }, onLost) {
  const { directory } = spool;
  // An earlier thread's, which has ended.
  unlessMissing(() => fs.rmdirSync(path.join(directory, LOCK)));
  if (!lock) return renewLock(spool, update, onLost);
  // Loaded here, because loading it hooks signals and replaces functions of `process`, which is harmless in a
  // thread with its own `process`, and because most processes never need it.
  const { lockSync } = require('proper-lockfile');
  // It renews the lock with synchronous file operations.
  return lockSync(directory, {
    lockfilePath: path.join(directory, LOCK),
    realpath: false,
    stale,
    update,
    onCompromised: error => onLost(error.message),
  });
}

/**
 * The same on a main thread.
 *
 * @param {Spool} spool
 * @param {number} update
 * @param {(reason: string) => void} onLost
 */
function renewLock(spool, update, onLost) {
  fs.mkdirSync(path.join(spool.directory, LOCK), { mode: 0o700 });
  const timer = setInterval(() => {
    if (spool.isPresent()) spool.touch(LOCK);
    else onLost(`${spool.directory} is gone`);
  }, update);
  unref(timer);
  return () => clearInterval(timer);
}

module.exports = { hold };
