'use strict';

// Runs in every process of a group, on its event loop. Names: the path of the group's directory, and the keys
// of its processes.

const { randomBytes } = require('node:crypto');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { ifReadable } = require('../spool/safe-files');

const PREFIX = 'prom-client-group-';
const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}$/;
const KEY = /^[0-9a-f]{10}$/;

// The shortest limit of a socket's path, that of macOS, without the final zero.
const MAX_SOCKET_PATH = 103;

/**
 * @param {string} group a name, or the absolute path of the directory
 * @returns {string} the directory's path
 * @throws {TypeError} if the name is not valid, or the path is too long for a socket
 */
function pathOfGroup(group) {
  const isPath = path.isAbsolute(group);
  if (!isPath && !NAME.test(group)) {
    throw new TypeError(
      'group must be a name of at most 32 letters, digits, dots, hyphens and underscores, or an absolute path',
    );
  }
  const directory = isPath
    ? path.resolve(group)
    : path.join(ifReadable(() => fs.realpathSync(os.tmpdir())) ?? os.tmpdir(), prefixOfUser() + group);
  if (process.platform !== 'win32' && Buffer.byteLength(path.join(directory, newKey())) > MAX_SOCKET_PATH) {
    throw new TypeError(`group: the path of the directory is too long for a socket: '${directory}'`);
  }
  return directory;
}

/** @returns {string} with which the names of the directories of this user's groups begin */
function prefixOfUser() {
  return `${PREFIX}${process.geteuid?.() ?? 0}-`;
}

/** @returns {string} for a process */
function newKey() {
  return randomBytes(5).toString('hex');
}

/**
 * @param {unknown} key
 * @returns {key is string}
 */
function isKey(key) {
  return typeof key === 'string' && KEY.test(key);
}

module.exports = { pathOfGroup, prefixOfUser, newKey, isKey };
