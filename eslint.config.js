'use strict';

const js = require('@eslint/js');
const globals = require('globals');

const FS_PROMISES =
  'Node.js 20 aborts the process if a thread is terminated while such a call is pending: ' +
  'use the functions with a callback, or the synchronous ones';

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
    // Not in tests: they terminate no thread that does it.
    files: ['lib/**'],
    rules: {
      'no-restricted-syntax': [
        'error',
        ...[
          'CallExpression[callee.name="require"] > Literal[value=/^(node:)?fs.promises$/]',
          'ImportExpression > Literal[value=/^(node:)?fs.promises$/]',
          'MemberExpression[property.name="promises"]',
          'ObjectPattern > Property[key.name="promises"]',
        ].map(selector => ({ selector, message: FS_PROMISES })),
      ],
    },
  },
  {
    files: ['**/*.mjs', 'example/next/app/**', 'example/next/instrumentation.js'],
    languageOptions: { sourceType: 'module' },
    rules: { strict: 'off' },
  },
];
