'use strict';

// Runs where the spool runs. Shows other processes that the owner of a spool lives.

const fs = require('node:fs');
const path = require('node:path');
const { OWNER_FILE } = require('./owner');
const { LOCK } = require('./sweep');
const { unlessMissing } = require('./safe-files');
const { unref } = require('../event-loop/timers');

const FRESHEN_MILLISECONDS = 3_600_000;

/** @typedef {import('./spool').Spool} Spool */

/**
 * @param {Spool} spool
 * @param {{lock: boolean, stale: number, update: number}} terms see Spool.open()
 * @param {(reason: string) => void} onLost called if the directory is gone or its lock is lost
 * @returns {() => void} ends it
 */
function hold(spool, { lock, stale, update }, onLost) {
  const release = lock
    ? takeLock(spool.directory, stale, update, onLost)
    : touchOwnerFile(spool, update, onLost);
  // Some systems delete files in temporary directories that have not changed for days.
  const timer = setInterval(() => spool.freshen(), FRESHEN_MILLISECONDS);
  unref(timer);
  return () => {
    clearInterval(timer);
    release();
  };
}

/**
 * The lock is in the directory, so it is moved and removed with it. `lockSync` renews the lock with
 * synchronous file operations.
 *
 * @param {string} directory
 * @param {number} stale
 * @param {number} update
 * @param {(reason: string) => void} onLost
 */
function takeLock(directory, stale, update, onLost) {
  // Loaded here, because loading it hooks signals and replaces functions of `process`, which is harmless in a
  // thread with its own `process`, and because most processes never need it.
  const { lockSync } = require('proper-lockfile');
  return lockSync(directory, {
    lockfilePath: path.join(directory, LOCK),
    realpath: false,
    stale,
    update,
    onCompromised: error => onLost(error.message),
  });
}

/**
 * Replaces the lock on a main thread: touches the owner file often enough that the directory never looks
 * abandoned.
 *
 * @param {Spool} spool
 * @param {number} update
 * @param {(reason: string) => void} onLost
 */
function touchOwnerFile(spool, update, onLost) {
  const timer = setInterval(() => {
    if (spool.isPresent()) spool.touch(OWNER_FILE);
    else onLost(`${spool.directory} is gone`);
  }, update);
  unref(timer);
  return () => clearInterval(timer);
}

/** @param {string} directory */
function removeLock(directory) {
  unlessMissing(() => fs.rmdirSync(path.join(directory, LOCK)));
}

module.exports = { hold, removeLock };
