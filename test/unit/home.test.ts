// A user's own files: which folder each environment means, and folders that cannot be made. Never the current directory.
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { configPath } from '../../src/cli/config/file.js';
import { unknownVariables } from '../../src/cli/config/variables.js';
import { configHome, makeFolder, stateHome } from '../../src/core/home.js';
import { labDirectory } from '../../src/lab/state.js';

const own = userInfo().homedir;

describe('home', () => {
  test.each([
    [{ HOME: '/h' }, '/h/.config', '/h/.local/state'],
    [{ HOME: '/h', XDG_CONFIG_HOME: '/c', XDG_STATE_HOME: '/s' }, '/c', '/s'],
    [{ HOME: '/h', XDG_CONFIG_HOME: 'c', XDG_STATE_HOME: './s' }, '/h/.config', '/h/.local/state'],
    [{ HOME: '/h', XDG_CONFIG_HOME: '', XDG_STATE_HOME: '.' }, '/h/.config', '/h/.local/state'],
    [{ HOME: '' }, `${own}/.config`, `${own}/.local/state`],
    [{ HOME: '.' }, `${own}/.config`, `${own}/.local/state`],
    [{ HOME: 'relative', XDG_CONFIG_HOME: '~' }, `${own}/.config`, `${own}/.local/state`],
    [{}, `${own}/.config`, `${own}/.local/state`],
  ])('home: %j → %s and %s', (env, config, state) => {
    expect([configHome(env), stateHome(env)]).toEqual([config, state]);
    expect(configPath(env)).toBe(join(config, 'seq', 'config.yaml'));
    expect(labDirectory(env)).toBe(join(state, 'seq', 'lab'));
    for (const path of [configPath(env), labDirectory(env)]) expect(isAbsolute(path)).toBe(true);
  });

  test('home: folders that cannot be made → an error at once; others are made with all above them', () => {
    const base = mkdtempSync(join(tmpdir(), 'seq-home-'));
    try {
      writeFileSync(join(base, 'file'), '');
      expect(() => makeFolder('/proc/nowhere/seq')).toThrow(/ENOENT/);
      expect(() => makeFolder(join(base, 'file', 'below'))).toThrow(/ENOTDIR|EEXIST/);
      makeFolder(join(base, 'a', 'b', 'c'), 0o700);
      makeFolder(join(base, 'a', 'b', 'c'), 0o700);
      expect(statSync(join(base, 'a', 'b', 'c')).mode & 0o777).toBe(0o700);
      expect(existsSync(join(base, 'file', 'below'))).toBe(false);
    } finally {
      rmSync(base, { recursive: true, force: true });
    }
  });
});

describe('variables', () => {
  test.each([
    ['SEQ_NODES', 'SEQ_NODE'],
    ['SEQ_NODETIMEOUT', 'SEQ_NODE_TIMEOUT'],
    ['SEQ_PASSWORDFILE', 'SEQ_PASSWORD_FILE'],
    ['SEQ_HTTP_TOKENFILE', 'SEQ_HTTP_TOKEN_FILE'],
    ['SEQ_LOGLEVEL', 'SEQ_LOG_LEVEL'],
  ])('variables: %s → named, with %s', (name, meant) => {
    expect(unknownVariables({ [name]: 'x' })).toEqual([`${name} is no setting and is ignored; did you mean ${meant}?`]);
  });

  test('variables: settings, and what Kubernetes sets beside a service named seq → not a word', () => {
    const env = Object.fromEntries(
      [
        'SEQ_NODE SEQ_NODE_TIMEOUT SEQ_CONFIG SEQ_PASSWORD SEQ_TLS_CA SEQ_STORE SEQ_HTTP SEQ_NO_INPUT SEQ_RETAIN_BLOCKS',
        'SEQ_SERVICE_HOST SEQ_SERVICE_PORT SEQ_SERVICE_PORT_HTTP SEQ_PORT SEQ_PORT_7070_TCP SEQ_PORT_7070_TCP_ADDR',
        'SEQ_A_SERVICE_HOST SEQ_A_PORT_7070_TCP_PROTO SEQ_A_PORT PATH SEQUENCE',
      ]
        .join(' ')
        .split(' ')
        .map((name) => [name, 'x']),
    );
    expect(unknownVariables(env)).toEqual([]);
  });
});
