'use strict';

// Runs where the spool runs. Determines which process created a spool directory, and whether it still runs.
// The functions throw if that can only be determined later.

const fs = require('node:fs');
const path = require('node:path');
const { readRegularFile, ifReadableNow, codeOf } = require('./safe-files');

const OWNER_FILE = 'owner.json';
const OWNER_FILE_VERSION = 1;

/**
 * The process that created a directory. Its id and its start time identify it within one boot and one pid
 * namespace. Without /proc, only the id is available.
 *
 * @typedef {object} Owner
 * @property {number} pid
 * @property {string} [startTime] clock ticks after boot
 * @property {string} [bootId]
 * @property {string} [pidNamespace]
 */

/**
 * @param {string} directory
 * @returns {Owner | undefined}
 */
function readOwner(directory) {
  return parseOwner(ifReadableNow(() => readRegularFile(path.join(directory, OWNER_FILE))));
}

/**
 * @param {Buffer | undefined} bytes
 * @returns {Owner | undefined} undefined if it is not an owner record
 */
function parseOwner(bytes) {
  try {
    const owner = JSON.parse(String(bytes));
    const isRecord = Number.isSafeInteger(owner?.version) && Number.isSafeInteger(owner.pid) && owner.pid > 0;
    return isRecord ? owner : undefined;
  } catch {
    return undefined;
  }
}

/**
 * @param {number} startedAt milliseconds since the epoch
 * @returns {Buffer}
 */
function ownerRecord(startedAt) {
  const record = { version: OWNER_FILE_VERSION, ...thisProcess(), startedAt };
  return Buffer.from(`${JSON.stringify(record)}\n`);
}

/** @returns {Owner} in a thread, that of the whole process */
function thisProcess() {
  return {
    pid: process.pid,
    startTime: processState(process.pid)?.startTime,
    bootId: ifReadableNow(() => fs.readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()),
    pidNamespace: ifReadableNow(() => fs.readlinkSync('/proc/self/ns/pid')),
  };
}

/**
 * @param {Owner | undefined} owner
 * @returns {boolean}
 */
function isThisProcess(owner) {
  const self = thisProcess();
  return (
    owner?.pid === self.pid &&
    owner.startTime === self.startTime &&
    owner.bootId === self.bootId &&
    owner.pidNamespace === self.pidNamespace
  );
}

/**
 * @param {Owner | undefined} owner of a directory
 * @returns {boolean | undefined} whether it is known to run; undefined if that cannot be determined: a pid of
 *   another pid namespace or machine is meaningless here. The age of the files decides then
 */
function isKnownToLive(owner) {
  const self = thisProcess();
  if (owner === undefined) return undefined;
  // Without /proc (macOS, Windows) there are no pid namespaces. If the pid was reused, the directory stays:
  // that is better than removing the directory of a primary that slept.
  if (self.bootId === undefined && owner.bootId === undefined)
    return processExists(owner.pid) ? true : undefined;
  if (self.bootId === undefined || self.pidNamespace === undefined) return undefined;
  if (owner.bootId !== self.bootId || owner.pidNamespace !== self.pidNamespace) return undefined;
  if (!processExists(owner.pid)) return false;
  const state = processState(owner.pid);
  if (state === undefined) return true;
  if (state.isZombie) return false; // zombies stay if a container's first process does not reap them
  return owner.startTime === undefined || owner.startTime === state.startTime; // else the pid was reused
}

/**
 * @param {number} pid
 * @returns {boolean}
 */
function processExists(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) !== 'ESRCH';
  }
}

/**
 * From /proc/<pid>/stat: state is field 3 and start time field 22, counted after the command's name, which is
 * in parentheses and may contain anything. See proc_pid_stat(5).
 *
 * @param {number} pid
 * @returns {{isZombie: boolean, startTime: string} | undefined}
 */
function processState(pid) {
  const line = ifReadableNow(() => fs.readFileSync(`/proc/${pid}/stat`, 'latin1'));
  if (line === undefined) return undefined;
  const fromThird = line.slice(line.lastIndexOf(')') + 2).split(' ');
  return { isZombie: fromThird[0] === 'Z' || fromThird[0] === 'X', startTime: fromThird[19] };
}

module.exports = { OWNER_FILE, readOwner, ownerRecord, isThisProcess, isKnownToLive };
