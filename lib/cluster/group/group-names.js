'use strict';

// Runs in every process of a group, on its event loop. Names: the path of the group's directory, and the
// files of its processes, which are named by their ids.

const { createHash } = require('node:crypto');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { isOurs, ifReadable } = require('../../spool/safe-files');
const { invalidOption } = require('../../options/coded-error');

const PREFIX = 'prom-client-group-';
const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}$/;
const SOCKET = /^m([1-9][0-9]{0,9})$/;
const LEADER = /^leader-([1-9][0-9]{0,9})-([1-9][0-9]{0,9})$/;

/** 32 bits, the size of the field in snapshots. */
const MAX_ID = 2 ** 32 - 1;

/** @typedef {{id: number, pid: number}} LeaderRecord */

// In bytes, without the final zero: that of Linux, and that of macOS and other systems.
const MAX_SOCKET_PATH_OF_LINUX = 107;
const MAX_SOCKET_PATH = 103;

// Used if the directory for temporary files cannot be, or makes the path too long.
const OTHER_PLACES = ['/dev/shm', '/tmp'];

/**
 * @param {string} group a name, or the absolute path of the directory
 * @returns {string} the directory's path
 * @throws {TypeError} if the name is not valid, or it is a path that is too long for a socket
 */
function pathOfGroup(group) {
  if (path.isAbsolute(group)) {
    const directory = path.resolve(group);
    if (hasRoomForSockets(directory)) return directory;
    throw invalidOption(`group: the path of the directory is too long for a socket: '${directory}'`);
  }
  if (NAME.test(group)) return pathOfName(group);
  throw invalidOption(
    'group must be a name of at most 32 letters, digits, dots, hyphens and underscores, or an absolute path',
  );
}

/**
 * All processes of a group must find the same directory. So the first one that already exists is taken. A
 * place is skipped only for a reason that all processes see: it is missing, read-only, not accessible to this
 * user, or too long.
 *
 * @param {string} name
 * @returns {string} the directory; if no place can be used, the first path that is not too long
 */
function pathOfName(name) {
  const place = realPath(os.tmpdir());
  // Two groups with the same name but different temporary directories stay separate in the other places, too.
  const hash = createHash('sha256').update(JSON.stringify([place, name]));
  // No name begins with a dot.
  const short = `${prefixOfUser()}.${hash.digest('hex').slice(0, 10)}`;
  const others = [place, ...OTHER_PLACES.map(realPath)].map(other => path.join(other, short));
  const possible = [path.join(place, prefixOfUser() + name), ...others].filter(hasRoomForSockets);
  const usable = possible.filter(directory => isWritable(path.dirname(directory)));
  const isThere = (/** @type {string} */ directory) => ifReadable(() => isOurs(fs.lstatSync(directory)));
  return usable.find(isThere) ?? usable[0] ?? possible[0];
}

/** @param {string} directory */
function hasRoomForSockets(directory) {
  const max = process.platform === 'linux' ? MAX_SOCKET_PATH_OF_LINUX : MAX_SOCKET_PATH;
  return process.platform === 'win32' || Buffer.byteLength(path.join(directory, socketName(MAX_ID))) <= max;
}

/** @param {string} place */
function realPath(place) {
  return ifReadable(() => fs.realpathSync(place)) ?? path.resolve(place);
}

/** @param {string} place */
function isWritable(place) {
  const isUsable = ifReadable(() => {
    fs.accessSync(place, fs.constants.W_OK | fs.constants.X_OK);
    return fs.statSync(place).isDirectory();
  });
  return isUsable === true;
}

/** @returns {string} with which the names of the directories of this user's groups begin */
function prefixOfUser() {
  return `${PREFIX}${process.geteuid?.() ?? 0}-`;
}

/**
 * A new id for a process: the time of its start in milliseconds, without the upper bits. Only a process that
 * was started 50 days earlier to the millisecond has the same id.
 *
 * @param {number} [earlier] an id that another process already has
 * @returns {number}
 */
function newId(earlier = Date.now() % MAX_ID) {
  return (earlier % MAX_ID) + 1;
}

/**
 * @param {unknown} id
 * @returns {id is number}
 */
function isId(id) {
  return Number.isSafeInteger(id) && Number(id) > 0 && Number(id) <= MAX_ID;
}

/** @param {number} id */
function socketName(id) {
  return `m${id}`;
}

/**
 * @param {string} name
 * @returns {number | undefined} undefined if it is not the name of a socket
 */
function idOfSocket(name) {
  const id = Number(SOCKET.exec(name)?.[1]);
  return isId(id) ? id : undefined;
}

/** @param {LeaderRecord} leader */
function leaderName({ id, pid }) {
  return `leader-${id}-${pid}`;
}

/**
 * @param {string} name
 * @returns {LeaderRecord | undefined} undefined if it is not the name of a leader's file
 */
function leaderOf(name) {
  const [id, pid] = LEADER.exec(name)?.slice(1).map(Number) ?? [];
  return isId(id) ? { id, pid } : undefined;
}

module.exports = {
  pathOfGroup,
  newId,
  isId,
  socketName,
  idOfSocket,
  leaderName,
  leaderOf,
};
