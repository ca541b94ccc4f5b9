'use strict';

// Runs where the spool runs. Renews the lock of a spool, which shows other processes that its owner is alive.

const fs = require('node:fs');
const path = require('node:path');
const { LOCK } = require('./sweep');
const { unlessMissing, ifReadable } = require('./safe-files');
const { unref } = require('../event-loop/timers');

/** @typedef {import('./spool').Spool} Spool */

/**
 * The lock is in the directory, so it is moved and removed with it.
 *
 * @param {Spool} spool
 * @param {{lock: boolean, update: number}} terms see Spool.open()
 * @param {(reason: string) => void} onLost called if the directory is gone
 * @returns {() => void} ends it
 */
function hold(spool, { lock, update }, onLost) {
  const { directory } = spool;
  const lockfilePath = path.join(directory, LOCK);
  // An earlier thread's, which has ended.
  unlessMissing(() => fs.rmdirSync(lockfilePath));
  if (!lock) {
    fs.mkdirSync(lockfilePath, { mode: 0o700 });
    return renewLock(spool, update, onLost);
  }
  // Loaded here, because loading it hooks signals and replaces functions of `process`, which is harmless in a
  // thread with its own `process`, and because most processes never need it.
  const { lockSync } = require('proper-lockfile');
  // It renews the lock with synchronous file operations.
  let release = lockSync(directory, {
    lockfilePath,
    realpath: false,
    stale: 3 * update,
    update,
    onCompromised: error => {
      if (spool.isPresent()) release = renewLock(spool, update, onLost);
      else onLost(error.message);
    },
  });
  return () => release();
}

/**
 * The same on a main thread, and after somebody has removed the lock.
 *
 * @param {Spool} spool
 * @param {number} update
 * @param {(reason: string) => void} onLost
 */
function renewLock(spool, update, onLost) {
  const renew = () => {
    if (!spool.isPresent()) {
      onLost(`${spool.directory} is gone`);
      return;
    }
    ifReadable(() => fs.mkdirSync(path.join(spool.directory, LOCK), { mode: 0o700 }));
    spool.touch(LOCK);
  };
  renew();
  const timer = unref(setInterval(renew, update));
  return () => clearInterval(timer);
}

module.exports = { hold };
