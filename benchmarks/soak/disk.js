'use strict';

// A small disk of the soak's own, which it can fill.

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const SIZE = '64m';
const CHUNK = Buffer.alloc(2 ** 16);

/**
 * A directory for the snapshots, on a tmpfs where the system allows to mount one.
 *
 * @returns {{directory: string, isSmall: boolean, reason: string, fill: () => void, free: () => void, remove:
 *   () => void}}
 *   `reason` why there is no tmpfs
 */
function makeDisk() {
  const place = fs.mkdtempSync(path.join(os.tmpdir(), 'soak-'));
  const directory = path.join(place, 'snapshots');
  fs.mkdirSync(directory);
  let reason = '';
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${SIZE},mode=0700`, 'tmpfs', directory], {
      stdio: 'pipe',
    });
  } catch (error) {
    reason = `no tmpfs can be mounted: ${String(error.stderr ?? error.message).trim()}`;
  }
  const isSmall = reason === '';
  const filler = path.join(directory, 'filler');
  return {
    directory,
    isSmall,
    reason,
    fill() {
      const file = fs.openSync(filler, 'w');
      try {
        for (;;) fs.writeSync(file, CHUNK);
      } catch (error) {
        if (error.code !== 'ENOSPC') throw error;
      } finally {
        fs.closeSync(file);
      }
    },
    free: () => fs.rmSync(filler, { force: true }),
    remove() {
      if (isSmall) execFileSync('umount', ['--lazy', directory]);
      fs.rmSync(place, { recursive: true, force: true });
    },
  };
}

module.exports = { makeDisk };
