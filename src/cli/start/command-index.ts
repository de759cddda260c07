// Finds the command in an index that the build made (scripts/build.mjs), and loads the framework with this command
// alone. The manifest is forty times as large, and running one command does not need it. Help, completion and unknown
// commands read the manifest. So does every command under SEQ_DISABLE=command-index.
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Config, Plugin } from '@oclif/core';

export interface Found {
  config: Config;
  id: string;
  rest: string[];
  /** Of all commands. */
  ids: string[];
}

/** The longest run of leading words that names a command or a topic. */
export function identify(words: string[], ids: readonly string[]): { id: string; rest: string[] } {
  let taken = 0;
  for (let length = 1; length <= words.length; length += 1) {
    if (words[length - 1]?.startsWith('-')) break;
    const id = words.slice(0, length).join(':');
    if (!ids.some((known) => known === id || known.startsWith(`${id}:`))) break;
    taken = length;
  }
  return { id: words.slice(0, taken).join(':'), rest: words.slice(taken) };
}

/** Null: the words are not a command, or there is no index of this version. */
export async function indexed(words: string[], folder: string): Promise<Found | null> {
  const root = resolve(folder);
  let pjson: Plugin['pjson'];
  let index: Plugin['manifest'];
  try {
    pjson = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Plugin['pjson'];
    index = JSON.parse(readFileSync(join(root, 'dist', 'commands.json'), 'utf8')) as Plugin['manifest'];
  } catch {
    return null;
  }
  const ids = Object.keys(index.commands);
  const { id, rest } = identify(words, ids);
  const one = Object.hasOwn(index.commands, id) ? index.commands[id] : undefined;
  if (one === undefined || index.version !== pjson.version) return null;
  const plugin = new Plugin({ root, pjson, isRoot: true });
  Object.assign(plugin, { _manifest: async () => ({ version: index.version, commands: { [id]: one } }) });
  await plugin.load();
  return { config: await Config.load({ root, pjson, plugins: new Map([[plugin.name, plugin]]) }), id, rest, ids };
}
