'use strict';

// The Node.js binary for all measurements, from npm's package `node`: everybody who runs this has the same.

const { execFile } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { promisify } = require('node:util');

const MAJOR = 24;
const CACHE = path.join(__dirname, '..', '..', 'node_modules', '.cache', 'bench-article');
const TIMEOUT = 300_000;

/**
 * @param {string | undefined} wanted path of another binary
 * @returns {Promise<string>} path of a binary
 * @throws {Error} if there is none and it cannot be installed
 */
async function nodeBinary(wanted) {
  if (wanted !== undefined) return checked(path.resolve(wanted));
  if (process.version.startsWith(`v${MAJOR}.`)) return process.execPath;
  const binary = path.join(
    CACHE,
    'node_modules',
    'node',
    'bin',
    process.platform === 'win32' ? 'node.exe' : 'node',
  );
  if (!fs.existsSync(binary)) await install();
  return checked(binary);
}

async function install() {
  console.error(`Installing Node ${MAJOR} from npm (once) ...`);
  fs.mkdirSync(CACHE, { recursive: true });
  fs.writeFileSync(path.join(CACHE, 'package.json'), '{"name": "bench-article", "private": true}');
  const quiet = ['--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error'];
  const args = ['install', `node@${MAJOR}`, ...quiet];
  const options = { cwd: CACHE, timeout: TIMEOUT, shell: process.platform === 'win32' };
  try {
    await promisify(execFile)('npm', args, options);
  } catch (error) {
    throw new Error(
      `Node ${MAJOR} could not be installed by npm. Give the path of a binary with --node, or --node "${process.execPath}" for the one that runs this.`,
      { cause: error },
    );
  }
}

async function checked(binary) {
  try {
    const { stdout } = await promisify(execFile)(binary, ['--version']);
    if (/^v\d+\./.test(stdout)) return fs.realpathSync(binary);
  } catch (error) {
    throw new Error(`${binary} does not run`, { cause: error });
  }
  throw new Error(`${binary} is no Node.js`);
}

module.exports = { nodeBinary };
