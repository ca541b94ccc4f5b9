'use strict';

// Runs in every process of a group, on its event loop. The files of a generation, in its directory `g<n>`:
// who aggregates, and the list of members. Whatever is not valid in them is ignored.

const fs = require('node:fs');
const path = require('node:path');
const { isKey } = require('./group-names');
const { ifReadable, readRegularFile, writeFile } = require('../spool/safe-files');
const { debug } = require('../../options/debug-log');

const HOLDER = 'holder-';
const MEMBERS_FILE = 'members.json';
const MAX_FILE_BYTES = 2 ** 20;

/** @typedef {{next: number, keys: Map<number, string>}} MemberList ids and keys; next: the next id */

/**
 * @param {string} place directory of the generation
 * @param {string} key of this process, which aggregates
 */
function writeHolder(place, key) {
  const file = path.join(place, HOLDER + key);
  try {
    writeJson(file, { pid: process.pid });
  } catch (error) {
    // On a full disk the file is empty, but its name says who aggregates.
    if (!fs.existsSync(file)) throw error;
    debug('%s is incomplete: %s', file, error);
  }
}

/**
 * Writes the holder's file if it is incomplete. One that is missing stays so: the directory may be that of
 * another holder now.
 *
 * @param {string} place directory of the generation
 * @param {string} key of this process, which aggregates
 */
function completeHolder(place, key) {
  if (isHolder(place, key) && pidOfHolder(place, key) === undefined)
    writeJson(path.join(place, HOLDER + key), { pid: process.pid });
}

/**
 * @param {string} place
 * @returns {string} key of the process that aggregates; '' if it is not known
 */
function holderIn(place) {
  const files = holderFilesIn(place);
  return files.length === 1 ? files[0].slice(HOLDER.length) : '';
}

/**
 * @param {string} place
 * @param {string} key of the process that aggregates
 * @returns {number | undefined} undefined if it is not known
 */
function pidOfHolder(place, key) {
  const { pid } = readJson(path.join(place, HOLDER + key)) ?? {};
  return Number.isSafeInteger(pid) ? pid : undefined;
}

/**
 * @param {string} place
 * @param {string} key
 * @returns {boolean} whether the process with this key aggregates
 */
function isHolder(place, key) {
  return fs.existsSync(path.join(place, HOLDER + key));
}

/**
 * @param {string} key of the process that aggregates
 * @returns {string[]} names of all files
 */
function namesFor(key) {
  return [HOLDER + key, MEMBERS_FILE];
}

/**
 * @param {string} place
 * @param {MemberList} list
 */
function writeMembers(place, { next, keys }) {
  const file = path.join(place, MEMBERS_FILE);
  writeJson(`${file}.tmp`, { next, members: [...keys] });
  fs.renameSync(`${file}.tmp`, file);
}

/**
 * @param {string} place
 * @returns {MemberList} empty if it cannot be read
 */
function readMembers(place) {
  const { next, members } = readJson(path.join(place, MEMBERS_FILE)) ?? {};
  const valid = (Array.isArray(members) ? members : []).filter(
    member => Array.isArray(member) && Number.isSafeInteger(member[0]) && member[0] > 0 && isKey(member[1]),
  );
  return { next: Number.isSafeInteger(next) ? next : 1, keys: new Map(valid) };
}

/** @param {string} place is removed, unless there is anything else in it */
function remove(place) {
  try {
    for (const name of [MEMBERS_FILE, `${MEMBERS_FILE}.tmp`, ...holderFilesIn(place)])
      fs.rmSync(path.join(place, name), { force: true });
    fs.rmdirSync(place);
  } catch (error) {
    debug('%s cannot be removed: %s', place, error);
  }
}

/** @param {string} place */
function holderFilesIn(place) {
  return namesIn(place).filter(name => name.startsWith(HOLDER) && isKey(name.slice(HOLDER.length)));
}

/**
 * @param {string} directory
 * @returns {string[]} empty if it cannot be read
 */
function namesIn(directory) {
  return ifReadable(() => fs.readdirSync(directory)) ?? [];
}

/**
 * @param {string} file
 * @returns {any} undefined if it cannot be read
 */
function readJson(file) {
  return ifReadable(() => JSON.parse(readRegularFile(file, MAX_FILE_BYTES).toString()) ?? undefined);
}

/**
 * @param {string} file
 * @param {object} content
 */
function writeJson(file, content) {
  writeFile(file, [Buffer.from(JSON.stringify(content))]);
}

module.exports = {
  writeHolder,
  completeHolder,
  holderIn,
  pidOfHolder,
  isHolder,
  namesFor,
  writeMembers,
  readMembers,
  remove,
  namesIn,
};
