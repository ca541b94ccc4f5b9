'use strict';

// Installs the dependencies of a package-lock.json if they are missing or the lock file has changed. So `npm
// test` and `npm run demo` work as the first command in a fresh clone.
//   node scripts/ensure-dependencies.js [folder of the lock file, default: the root]

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const root = path.join(__dirname, '..', path.sep);
const folder = path.join(root, process.argv[2] ?? '');
const lockFile = path.join(folder, 'package-lock.json');
const installedMark = path.join(folder, 'node_modules', '.package-lock.json');

function isInstalled() {
  try {
    return fs.statSync(installedMark).mtimeMs >= fs.statSync(lockFile).mtimeMs;
  } catch {
    return false;
  }
}

if (!isInstalled()) {
  console.log('Installing development dependencies (once) ...');
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
  // `npm ci` refuses a lock file without the binaries for all other platforms, which not every registry has.
  // The root needs none.
  const command = folder === root ? ['ci'] : ['install', '--no-save'];
  const install = spawnSync(npm, [...command, '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: folder,
    stdio: 'inherit',
    shell: process.platform === 'win32',
  });
  if (install.status === 0) {
    const now = new Date();
    fs.utimesSync(installedMark, now, now);
  }
  process.exitCode = install.status ?? 1;
}
