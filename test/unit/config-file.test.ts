// The lock of the config file: writers take turns, nothing is lost, and a dead writer's lock stops nobody.
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { readConfig, updateConfig } from '../../src/cli/config/file.js';

const folder = mkdtempSync(join(tmpdir(), 'seq-config-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const names = Array.from({ length: 10 }, (_, at) => `c${at}`);
const add = (path: string, name: string) =>
  updateConfig(path, (config) => ({
    ...config,
    contexts: { ...config.contexts, [name]: { nodes: [{ url: 'redis://127.0.0.1:1' }] } },
  }));

/** The pid of a process that has ended. */
const deadPid = (): number => spawnSync(process.execPath, ['--version']).pid;

describe('config file', () => {
  test.each([
    [null, 0o600],
    [0o640, 0o640],
    [0o600, 0o600],
  ])('config: mode %o before a change → %o after it', async (before, after) => {
    const path = join(folder, `mode-${before}`, 'config.yaml');
    if (before !== null) {
      await add(path, 'first');
      chmodSync(path, before);
    }
    await add(path, 'second');
    expect(statSync(path).mode & 0o777).toBe(after);
  });
});

describe('config lock', () => {
  test.each([
    ['no lock', () => null],
    ['the lock of a dead writer', () => `${deadPid()} 0123456789abcdef\n`],
    ['the lock of a dead writer of an earlier version', () => `${deadPid()}\n`],
  ])(
    'config: ten writers at once, %s before → every change is in the file, nothing else is left',
    async (_, before) => {
      for (let round = 0; round < 3; round++) {
        const own = join(folder, `${_.length}-${round}`);
        const path = join(own, 'config.yaml');
        await add(path, 'first');
        const lock = before();
        if (lock !== null) writeFileSync(`${path}.lock`, lock);
        await Promise.all(names.map((name) => add(path, name)));
        expect(Object.keys((await readConfig(path))!.contexts).sort()).toEqual([...names, 'first']);
        expect(readdirSync(own)).toEqual(['config.yaml']);
      }
    },
  );

  test('config: a writer whose lock was taken away → writes nothing of its own, and does its change again', async () => {
    const path = join(folder, 'taken', 'config.yaml');
    await add(path, 'first');
    let tries = 0;
    await updateConfig(path, (config) => {
      tries += 1;
      if (tries === 1) rmSync(`${path}.lock`);
      return {
        ...config,
        contexts: { ...config.contexts, [`try${tries}`]: { nodes: [{ url: 'redis://127.0.0.1:1' }] } },
      };
    });
    expect(Object.keys((await readConfig(path))!.contexts).sort()).toEqual(['first', 'try2']);
    expect(readdirSync(join(folder, 'taken'))).toEqual(['config.yaml']);
  });
});
