// What is published works by itself: packed, installed into an empty folder, run from there.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { environment, newHome, root } from '../support/spawn-seq.js';

const npm = (args: string[], cwd: string) =>
  spawnSync('npm', args, {
    cwd,
    encoding: 'utf8',
    env: {
      ...process.env,
      NODE_ENV: '',
      npm_config_update_notifier: 'false',
      npm_config_fund: 'false',
      npm_config_audit: 'false',
    },
  });

/** What the program, the client, `man` and the links of README need, and nothing else. */
function expectContents(paths: string[], size: number): void {
  expect(size).toBeLessThanOrEqual(5 * 1024 * 1024);
  const { man, exports, bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    man: string[];
    exports: { '.': Record<string, string> };
    bin: Record<string, string>;
  };
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  const wanted = [
    ...[...readme.matchAll(/\]\(([^):#]+)(?:#[^)]*)?\)/g)].map(([, link]) => link!),
    ...man,
    ...Object.values(bin),
    ...Object.values(exports['.']),
    ...readdirSync(join(root, 'lua')).map((name) => `lua/${name}`),
    ...readdirSync(join(root, 'schemas')).map((name) => `schemas/${name}`),
    ...['oclif.manifest.json', 'package.json', 'LICENSE', 'CHANGELOG.md', 'examples/ledger.mjs', 'dist/commands.json'],
  ].map((path) => path.replace(/^\.\//, ''));
  const has = (path: string) => paths.some((one) => one === path || one.startsWith(`${path.replace(/\/$/, '')}/`));
  expect(wanted.filter((path) => !has(path))).toEqual([]);
  const known = /^(bin|dist|docs|examples|lua|man|schemas)\/|^(package\.json|oclif\.manifest\.json|[A-Z]+(\.md)?)$/;
  const unwanted = /\.map$|\.test\.|\.tsx?$|^bin\/dev|(^|\/)(src|test|scripts|bench|node_modules|\.[^/]+)(\/|$)/;
  expect(paths.filter((path) => !known.test(path) || (unwanted.test(path) && !path.endsWith('.d.ts')))).toEqual([]);
}

test('package: what is built may be run by other users, as far as the umask says', () => {
  const forOthers = 0o055 & ~process.umask();
  for (const path of ['dist', 'dist/cli', 'dist/cli/start', 'dist/help'])
    expect([path, statSync(join(root, path)).mode & 0o055]).toEqual([path, forOthers]);
});

test('package: packed and installed into an empty prefix → seq and seqctl work from there', () => {
  const folder = newHome();
  const packed = npm(['pack', '--ignore-scripts', '--json', '--pack-destination', folder], root);
  expect(packed.status, packed.stderr).toBe(0);
  const [{ files, size }] = JSON.parse(packed.stdout) as [{ files: { path: string }[]; size: number }];
  expectContents(
    files.map(({ path }) => path),
    size,
  );
  const archive = readdirSync(folder).find((name) => name.endsWith('.tgz')) as string;
  const prefix = join(folder, 'prefix');
  mkdirSync(prefix);
  writeFileSync(join(prefix, 'package.json'), '{"name":"empty","version":"1.0.0","private":true}');
  const installed = npm(['install', '--prefer-offline', join(folder, archive)], prefix);
  expect(installed.status, installed.stderr).toBe(0);

  const run = (program: string, args: string[]) =>
    spawnSync(join(prefix, 'node_modules', '.bin', program), args, {
      cwd: folder,
      encoding: 'utf8',
      env: environment(folder),
      timeout: 120_000,
    });
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  for (const program of ['seq', 'seqctl']) {
    expect(run(program, ['--version']).stdout).toContain(`seqctl/${version}`);
    expect(run(program, ['explain', 'NO_QUORUM']).stdout).toContain('NO_QUORUM');
    // Takes the whole path to a cluster: the scripts are found, the driver loads, and no node answers.
    expect(run(program, ['completion', 'ids', 'nodes', '--node', 'redis://127.0.0.1:1'])).toMatchObject({
      status: 0,
      stdout: 'n1\n',
    });
  }
  // npm puts its own folder first on PATH. `seq 1 3` must still reach the seq of coreutils.
  const handed = spawnSync('/bin/sh', ['-c', 'seq 1 3'], {
    cwd: folder,
    encoding: 'utf8',
    env: { ...environment(folder), PATH: `${join(prefix, 'node_modules', '.bin')}:${process.env['PATH']}` },
  });
  expect(handed.stdout).toBe('1\n2\n3\n');
}, 300_000);

test('clone: scripts use Node built-ins only until everything is installed', () => {
  const clone = newHome();
  for (const path of ['scripts', 'package.json', 'package-lock.json', 'bin'])
    cpSync(join(root, path), join(clone, path), { recursive: true });
  const empty = join(clone, 'path');
  mkdirSync(empty);
  symlinkSync(process.execPath, join(empty, 'node'));
  for (const script of ['test.mjs', 'lab.mjs', 'check.mjs', 'bootstrap.mjs']) {
    const { status, stderr } = spawnSync(process.execPath, [join(clone, 'scripts', script)], {
      cwd: clone,
      encoding: 'utf8',
      env: { PATH: empty, HOME: clone },
    });
    expect([script, status, stderr.includes('npm is not on PATH')]).toEqual([script, 1, true]);
    expect(stderr).not.toMatch(/ERR_MODULE_NOT_FOUND|at .*\.mjs/);
  }
});
