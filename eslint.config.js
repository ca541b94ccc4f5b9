'use strict';

const js = require('@eslint/js');
const globals = require('globals');

module.exports = [
  { ignores: ['node_modules/', 'test/package/programs/', 'benchmarks/results/', '**/*.d.ts'] },
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2023, sourceType: 'commonjs', globals: { ...globals.node } },
    rules: {
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'no-var': 'error',
      'prefer-const': 'error',
      'no-unused-vars': ['error', { caughtErrors: 'none', argsIgnorePattern: '^_' }],
      'no-underscore-dangle': 'off',
      'object-shorthand': 'error',
      strict: ['error', 'global'],
    },
  },
  {
    files: ['**/*.mjs', 'example/next/app/**', 'example/next/instrumentation.js'],
    languageOptions: { sourceType: 'module' },
    rules: { strict: 'off' },
  },
];
