'use strict';

// Installs the dependencies of package-lock.json if they are missing or the lock file has changed. So `npm
// test` and `npm run demo` work as the first command in a fresh clone.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const root = path.join(__dirname, '..');
const lockFile = path.join(root, 'package-lock.json');
const installedMark = path.join(root, 'node_modules', '.package-lock.json');

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
  const install = spawnSync(npm, ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: 'inherit',
    shell: process.platform === 'win32',
  });
  if (install.status === 0) {
    const now = new Date();
    fs.utimesSync(installedMark, now, now);
  }
  process.exitCode = install.status ?? 1;
}
