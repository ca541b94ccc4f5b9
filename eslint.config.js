'use strict';

const js = require('@eslint/js');
const globals = require('globals');

/** Syntax that lib/ does without, by reason. */
const RESTRICTED = {
  'Node.js 20 aborts the process if a thread is terminated while a call of fs.promises is pending: use the functions with a callback, or the synchronous ones':
    [
      'CallExpression[callee.name="require"] > Literal[value=/^(node:)?fs.promises$/]',
      'ImportExpression > Literal[value=/^(node:)?fs.promises$/]',
      'MemberExpression[property.name="promises"]',
      'ObjectPattern > Property[key.name="promises"]',
    ],
  'Deno throws if a program may not read the environment: use environmentVariable()': [
    ':matches(MemberExpression, VariableDeclarator) > MemberExpression[object.name="process"][property.name="env"]',
  ],
};

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
    files: ['lib/**'],
    ignores: ['lib/options/environment.js'],
    rules: {
      'no-restricted-syntax': [
        'error',
        ...Object.entries(RESTRICTED).flatMap(([message, selectors]) =>
          selectors.map(selector => ({ selector, message })),
        ),
      ],
    },
  },
  {
    files: ['**/*.mjs', 'example/next/app/**', 'example/next/instrumentation.js'],
    languageOptions: { sourceType: 'module' },
    rules: { strict: 'off' },
  },
];
