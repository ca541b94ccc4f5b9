'use strict';

// Finds which Prometheus clients are installed in a project, and which packages use them: for each package,
// the client that Node.js would resolve. Packages that nothing depends on, for example in the store of pnpm,
// do not count.

const fs = require('node:fs');
const path = require('node:path');

const CLIENTS = ['prom-client', '@prometheus-io/client', 'prom-client-cluster'];

/**
 * @typedef {object} Copy
 * @property {string} directory
 * @property {string} name of the package, whatever it is installed as
 * @property {string} version
 * @property {string} alias what it is installed as
 * @property {{name: string, version: string, range: string, directory: string}[]} users packages that find it
 */

/**
 * @param {string} project directory of the application
 * @returns {Copy[]} those of the application first
 */
function installedCopies(project) {
  /** @type {Map<string, Copy>} by directory */
  const copies = new Map();
  for (const directory of packagesOf(project)) {
    const manifest = manifestOf(directory);
    const ranges = {
      ...manifest.peerDependencies,
      ...manifest.optionalDependencies,
      ...manifest.dependencies,
    };
    if (directory === project) Object.assign(ranges, manifest.devDependencies);
    for (const alias of CLIENTS.filter(client => Object.hasOwn(ranges, client))) {
      const found = find(alias, directory);
      if (found === undefined) continue;
      const { name = alias, version = '' } = manifestOf(found);
      /** @type {Copy} */
      const copy = copies.get(found) ?? { directory: found, name, version, alias, users: [] };
      copies.set(found, copy);
      const range = ranges[alias];
      copy.users.push({ name: manifest.name ?? '', version: manifest.version ?? '', range, directory });
    }
  }
  return [...copies.values()];
}

/**
 * @param {string} project
 * @returns {Set<string>} directories of the application and of all packages that are installed for it,
 *   without symbolic links
 */
function packagesOf(project) {
  const packages = new Set([project]);
  const places = new Set(ancestors(project).map(directory => path.join(directory, 'node_modules')));
  // Sets grow while they are iterated over.
  for (const place of places) {
    for (const name of namesIn(place)) {
      const directory = realPath(path.join(place, name));
      if (directory === undefined) continue;
      packages.add(directory);
      places.add(path.join(directory, 'node_modules'));
      // With pnpm, the dependencies of a package are beside it.
      const around = ancestors(directory).find(each => path.basename(each) === 'node_modules');
      if (around !== undefined) places.add(around);
    }
  }
  return packages;
}

/**
 * @param {string} place a node_modules directory
 * @returns {string[]} names of packages
 */
function namesIn(place) {
  return listed(place).flatMap(({ name }) => {
    if (name.startsWith('.')) return [];
    return name.startsWith('@') ? listed(path.join(place, name)).map(each => `${name}/${each.name}`) : name;
  });
}

/**
 * @param {string} name of a package
 * @param {string} from directory of the package that depends on it
 * @returns {string | undefined} its directory
 */
function find(name, from) {
  for (const directory of ancestors(from)) {
    const found = realPath(path.join(directory, 'node_modules', name));
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * @param {string} directory absolute
 * @returns {string[]} itself, and those around it
 */
function ancestors(directory) {
  const parent = path.dirname(directory);
  return parent === directory ? [directory] : [directory, ...ancestors(parent)];
}

/**
 * @param {string} directory of a package
 * @returns {any} empty if it has none that can be read
 */
function manifestOf(directory) {
  return attempt(() => JSON.parse(fs.readFileSync(path.join(directory, 'package.json'), 'utf8'))) ?? {};
}

/**
 * @param {string} directory
 * @returns {import('node:fs').Dirent[]} none if it cannot be read
 */
function listed(directory) {
  return attempt(() => fs.readdirSync(directory, { withFileTypes: true })) ?? [];
}

/** @param {string} file */
function realPath(file) {
  return attempt(() => fs.realpathSync(file));
}

/**
 * @template T
 * @param {() => T} read
 * @returns {T | undefined} undefined if it throws
 */
function attempt(read) {
  try {
    return read();
  } catch {
    return undefined;
  }
}

module.exports = { installedCopies, ancestors, listed };
