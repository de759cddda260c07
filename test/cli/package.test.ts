// What is published works by itself: packed, installed into an empty folder, run from there.
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
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

test('package: what is built may be run by other users, as far as the umask says', () => {
  const forOthers = 0o055 & ~process.umask();
  for (const path of ['dist', 'dist/cli', 'dist/cli/start'])
    expect([path, statSync(join(root, path)).mode & 0o055]).toEqual([path, forOthers]);
});

test('package: packed and installed into an empty prefix → seq and seqctl work from there', () => {
  const folder = newHome();
  const packed = npm(['pack', '--ignore-scripts', '--json', '--pack-destination', folder], root);
  expect(packed.status, packed.stderr).toBe(0);
  const archive = readdirSync(folder).find((name) => name.endsWith('.tgz')) as string;
  const prefix = join(folder, 'prefix');
  mkdirSync(prefix);
  writeFileSync(join(prefix, 'package.json'), '{"name":"empty","version":"1.0.0","private":true}');
  const installed = npm(['install', '--prefer-offline', join(folder, archive)], prefix);
  expect(installed.status, installed.stderr).toBe(0);

  const own = join(prefix, 'node_modules', 'seqctl');
  for (const path of [
    'lua/write_block.lua',
    'schemas/envelope.json',
    'oclif.manifest.json',
    'dist/cli/start/main.js',
    'LICENSE',
    'CHANGELOG.md',
  ])
    expect(existsSync(join(own, path)), path).toBe(true);
  for (const path of ['src', 'test', 'scripts']) expect(existsSync(join(own, path)), path).toBe(false);

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
