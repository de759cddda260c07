// Small and quiet: what the compiler does not see and what the house rules forbid.
import tseslint from 'typescript-eslint';

// Rules that ask for types load the whole program, some ten seconds: `npm run check -- --fast` leaves them out.
const typed = {
  '@typescript-eslint/no-floating-promises': 'error',
  '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: false }],
  '@typescript-eslint/await-thenable': 'error',
};
const isFast = process.env.SEQ_LINT_FAST === '1';

export default tseslint.config(
  {
    ignores: [
      'dist/**',
      '.dist-*/**',
      '.dev/**',
      '.cache/**',
      'node_modules/**',
      'coverage/**',
      'examples/**',
      'bench/**',
      'test/model/**/*.cpp',
    ],
  },
  { linterOptions: { reportUnusedDisableDirectives: 'off' } },
  {
    files: ['src/**/*.{ts,tsx}'],
    extends: [tseslint.configs.base],
    languageOptions: { parserOptions: isFast ? {} : { projectService: true } },
    rules: {
      'no-console': 'error',
      'no-restricted-properties': [
        'error',
        {
          object: 'process',
          property: 'exit',
          message: 'set process.exitCode and return: process.exit loses piped output',
        },
      ],
      'no-restricted-syntax': [
        'error',
        { selector: "NewExpression[callee.name='Date'][arguments.length=0]", message: 'time is a port' },
      ],
      ...(isFast ? {} : typed),
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'no-var': 'error',
      'prefer-const': 'error',
      'no-fallthrough': 'error',
    },
  },
  {
    files: ['src/core/protocol/**/*.ts'],
    rules: {
      'no-restricted-globals': ['error', 'setTimeout', 'setInterval', 'process', 'performance'],
      'no-restricted-properties': [
        'error',
        { object: 'Math', property: 'random' },
        { object: 'Date', property: 'now' },
      ],
      'no-restricted-syntax': [
        'error',
        { selector: 'AwaitExpression', message: 'protocol/ is pure' },
        { selector: "NewExpression[callee.name='Date']", message: 'protocol/ is pure' },
      ],
    },
  },
  {
    files: ['src/cli/**/*.ts', 'src/commands/**/*.ts', 'src/lab/**/*.ts', 'src/tui/**/*.{ts,tsx}'],
    rules: { 'no-restricted-syntax': 'off' },
  },
  {
    files: ['scripts/**/*.mjs', 'bin/**/*.js'],
    rules: { 'no-var': 'error', 'prefer-const': 'error', eqeqeq: 'error' },
  },
);
