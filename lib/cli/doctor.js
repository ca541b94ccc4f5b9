'use strict';

// `prom-client-cluster doctor`: what is installed in a project, and whether this machine has what clusters
// and groups need.

const fs = require('node:fs');
const path = require('node:path');
const { installedCopies, ancestors } = require('./installed-copies');
const { findUndefinedLabels } = require('./undefined-labels');
const { placesFor } = require('../spool/places');
const { pathOfGroup } = require('../cluster/group/group-names');
const { environmentVariable } = require('../options/environment');
const { PACKAGE_VERSION } = require('../options/package-version');
const { textOf } = require('../options/thrown');

const OWN_NAME = 'prom-client-cluster';
const TARGET = `npm:${OWN_NAME}@^${PACKAGE_VERSION}`;
const OLDEST_NODE = 20;
/** Package names under which other clients are installed. */
const NAMES = ['prom-client', '@prometheus-io/client'];
const LONGEST_GROUP_NAME = 'x'.repeat(32);
const MAX_LINES = 20;

const INSTALL = `npm install prom-client@npm:${OWN_NAME}`;

/** @typedef {import('./installed-copies').Copy} Copy */
/** @typedef {{state: 'ok' | 'note' | 'todo', text: string}} Finding */

/**
 * @param {string} directory in which the command was called
 * @param {string[]} paths of dashboards and rules; default: what is below the directory
 * @param {(text: string) => void} write
 * @returns {number} exit status: 1 if something is to be done
 */
function doctor(directory, paths, write) {
  const project = projectOf(fs.realpathSync(directory));
  const copies = installedCopies(project);
  const others = othersOf(copies);
  const findings = [
    ...aboutCopies(project, copies, others),
    aboutNode(),
    aboutDirectory(),
    aboutSockets(),
    ...aboutDashboards(directory, paths),
  ];
  for (const { state, text } of findings) write(`${state.padEnd(4)}  ${text}`);
  if (others.length > 0) write(steps());
  const count = findings.filter(({ state }) => state === 'todo').length;
  write(count === 0 ? '\nNothing is to be done.' : `\nTo be done: ${count}`);
  return count === 0 ? 0 : 1;
}

/**
 * @param {string} directory
 * @returns {string} the nearest directory with a package.json
 */
function projectOf(directory) {
  return ancestors(directory).find(each => fs.existsSync(path.join(each, 'package.json'))) ?? directory;
}

/**
 * @param {Copy[]} copies
 * @returns {Copy[]} those that this library should replace: other clients, and further copies of one name
 */
function othersOf(copies) {
  const seen = new Set();
  return copies.filter(({ name, alias }) => name !== OWN_NAME || seen.size === seen.add(alias).size);
}

/**
 * @param {string} project
 * @param {Copy[]} copies
 * @param {Copy[]} others
 * @returns {Finding[]}
 */
function aboutCopies(project, copies, others) {
  if (ancestors(project).some(each => fs.existsSync(path.join(each, '.pnp.cjs')))) {
    const text = "Yarn's Plug'n'Play keeps no packages in node_modules: see `yarn why prom-client`";
    return [{ state: 'note', text }];
  }
  const findings = copies.map(copy => {
    const where = path.relative(project, copy.directory) || copy.directory;
    const text = `${copy.name} ${copy.version} in ${where}, used by ${usersOf(project, copy)}`;
    return { state: /** @type {Finding['state']} */ (others.includes(copy) ? 'todo' : 'ok'), text };
  });
  const own = copies.filter(copy => !others.includes(copy));
  if (own.length === 0) {
    const text = `${OWN_NAME} is not installed here (in a workspace, call \`doctor\` in its packages): ${INSTALL}`;
    findings.push({ state: 'todo', text });
  }
  if (own.length > 1) {
    const text =
      'These are two copies of this library, with a registry each. The page of a cluster has both; one ' +
      'process merges them: docs/migration.md';
    findings.push({ state: 'note', text });
  }
  return findings;
}

/**
 * @param {string} project
 * @param {Copy} copy
 */
function usersOf(project, { users }) {
  const texts = users.map(({ name, version, range, directory }) =>
    directory === project ? 'this application' : `${`${name} ${version}`.trim()} (needs ${range})`,
  );
  return texts.join(', ');
}

/** @returns {Finding} */
function aboutNode() {
  const isOldEnough = parseInt(process.versions.node, 10) >= OLDEST_NODE;
  return {
    state: isOldEnough ? 'ok' : 'todo',
    text: `Node.js ${process.versions.node}${isOldEnough ? '' : `: ${OLDEST_NODE} or later is needed`}`,
  };
}

/** @returns {Finding} about the directory of snapshot files */
function aboutDirectory() {
  const directory = environmentVariable('PROM_CLIENT_CLUSTER_DIRECTORY');
  const [first, ...rest] = placesFor(directory || undefined);
  const reason = whyNotWritable(first);
  if (reason === undefined) return { state: 'ok', text: `${first} is writable, for the files of a cluster` };
  const other = rest.find(place => whyNotWritable(place) === undefined);
  if (other !== undefined) return { state: 'note', text: `${reason}; a cluster uses ${other}` };
  const text = `${reason}. Scrapes of a cluster are slower without: name another one with the option \`directory\``;
  return { state: 'todo', text };
}

/**
 * @param {string} place
 * @returns {string | undefined} undefined if a directory can be created there
 */
function whyNotWritable(place) {
  try {
    fs.rmdirSync(fs.mkdtempSync(path.join(place, 'prom-client-doctor-')));
    return undefined;
  } catch (error) {
    return `no directory can be created in ${place} (${/** @type {any} */ (error).code ?? textOf(error)})`;
  }
}

/** @returns {Finding} about the sockets of groups */
function aboutSockets() {
  try {
    const name = environmentVariable('PROM_CLIENT_CLUSTER_GROUP')?.trim() || LONGEST_GROUP_NAME;
    const place = path.dirname(pathOfGroup(name) ?? '');
    if (path.isAbsolute(place) && whyNotWritable(place) === undefined)
      return { state: 'ok', text: `${place} has room for sockets of groups` };
    const limit = 'the path of a socket has at most 107 bytes on Linux, 103 on macOS';
    return { state: 'todo', text: `There is no directory for the sockets of groups: ${limit}. Set TMPDIR` };
  } catch (error) {
    return { state: 'todo', text: `PROM_CLIENT_CLUSTER_GROUP: ${textOf(error)}` };
  }
}

/**
 * @param {string} directory
 * @param {string[]} paths
 * @returns {Finding[]}
 */
function aboutDashboards(directory, paths) {
  const found = findUndefinedLabels(paths.length === 0 ? [directory] : paths);
  const list = found.slice(0, MAX_LINES).map(({ file, line, text }) => {
    const where = `${path.relative(directory, file) || file}:${line}`;
    return { state: /** @type {const} */ ('todo'), text: `${where} ${text}` };
  });
  if (list.length === 0) return [{ state: 'ok', text: 'No dashboard or rule has ="undefined"' }];
  const text =
    'The page of one process has label="undefined"; those of a cluster, group or threads have no such label: ' +
    'label=~"undefined|" matches both';
  return [...list, { state: 'note', text }];
}

/** @returns {string} how other copies are replaced */
function steps() {
  return `
One copy for all packages (in a workspace: in the package.json of its root):

1. ${INSTALL}

2. npm, in package.json:
${JSON.stringify({ overrides: linesFor('$prom-client') }, null, 2)}

   Yarn, in package.json:
${JSON.stringify({ resolutions: linesFor(TARGET) }, null, 2)}

   pnpm, in pnpm-workspace.yaml (up to version 9 below "pnpm" in package.json):
overrides:
${NAMES.map(name => `  '${name}': ${TARGET}`).join('\n')}

3. yarn install, or pnpm dedupe. npm install leaves what is installed as it is; with npm:
   npm install NAME, for each package above that is to be done
   or, if it is not in your package.json:
   rm -rf node_modules package-lock.json && npm install`;
}

/** @param {string} target */
function linesFor(target) {
  return Object.fromEntries(NAMES.map(name => [name, target]));
}

module.exports = { doctor };
