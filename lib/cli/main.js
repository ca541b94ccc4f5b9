#!/usr/bin/env node
'use strict';

// The command prom-client-cluster. The library loads nothing of it.

const USAGE = `Usage:
  prom-client-cluster doctor [path ...]   checks what is installed in this project, its dashboards and rules
                                          (default: the JSON and YAML files below this directory), and the
                                          machine. Exit status 1 if something is to be done
  prom-client-cluster check <url>         checks a page of metrics as \`promtool check metrics\` does.
                                          Exit status 1 if it has problems, 2 if there is no page
`;

/** @type {Record<string, (args: string[], write: (text: string) => void) => number | Promise<number>>} */
const COMMANDS = {
  doctor: (paths, write) => require('./doctor').doctor(process.cwd(), paths, write),
  check: ([url], write) => require('./check').check(url, write),
};

/**
 * @param {string[]} args
 * @returns {Promise<number>} exit status
 */
async function main([name, ...args]) {
  if (['help', '--help', '-h'].includes(name)) {
    process.stdout.write(USAGE);
    return 0;
  }
  const isComplete = Object.hasOwn(COMMANDS, name ?? '') && (name !== 'check' || args.length === 1);
  if (isComplete && !args.some(arg => arg.startsWith('-')))
    return COMMANDS[name](args, text => void process.stdout.write(`${text}\n`));
  process.stderr.write(USAGE);
  return 2;
}

// `doctor | head` closes the pipe.
process.stdout.on('error', () => {});

main(process.argv.slice(2)).then(
  status => (process.exitCode = status),
  error => {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 2;
  },
);
