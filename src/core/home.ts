// Where are a user's own files? A path that is not absolute is ignored, as the XDG specification requires: it would
// mean another folder wherever a command is started. The folder of a config file must never be the current directory,
// because a config file names commands that are run.
import { mkdirSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';

/** A folder that cannot exist. */
const NOWHERE = '/nonexistent';

/** $XDG_CONFIG_HOME, by default ~/.config. */
export function configHome(env: NodeJS.ProcessEnv): string {
  return homeOf(env, 'XDG_CONFIG_HOME', '.config');
}

/** $XDG_STATE_HOME, by default ~/.local/state. */
export function stateHome(env: NodeJS.ProcessEnv): string {
  return homeOf(env, 'XDG_STATE_HOME', join('.local', 'state'));
}

function homeOf(env: NodeJS.ProcessEnv, variable: string, below: string): string {
  const named = env[variable] ?? '';
  if (isAbsolute(named)) return named;
  const home = env['HOME'] ?? '';
  return join(isAbsolute(home) ? home : homeOfUser(), below);
}

/** From the user database. A user that is not in it has no home. */
function homeOfUser(): string {
  try {
    const { homedir } = userInfo();
    return isAbsolute(homedir) ? homedir : NOWHERE;
  } catch {
    return NOWHERE;
  }
}

/**
 * Makes a folder and the folders above it. Node's own recursive mkdir never returns where the system says ENOENT for a
 * folder that cannot be made, as /proc does.
 */
export function makeFolder(path: string, mode = 0o777): void {
  const missing: string[] = [];
  for (let at = path; !isFolder(at); at = dirname(at)) {
    missing.push(at);
    if (dirname(at) === at) break;
  }
  for (const at of missing.reverse()) {
    try {
      mkdirSync(at, { mode });
    } catch (error) {
      // Another process made it meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || !isFolder(at)) throw error;
    }
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return false;
    throw error;
  }
}
