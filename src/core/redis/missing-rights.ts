// Which rights does this Redis user lack, and which command gives exactly them? Inside a script the server does not say
// which command it denied. Each right is tried by ACL DRYRUN, which runs nothing.
import { isErrorReply, send } from './connection.js';
import type { NodeKeys } from './keys.js';
import { text } from './replies.js';
import { channelsOf, keyPattern, rightsOf } from './rights.js';
import type { Wire } from './wire/wire.js';

export interface RightsAsked {
  keys: NodeKeys;
  channel: string;
  db: number;
  /** The user of the settings, where the server does not tell it. */
  user: string;
}

export interface MissingRights {
  user: string;
  /** `command: what the server says`. null: the server cannot tell. */
  denied: string[] | null;
  /** What `ACL SETUSER` must add, in its own words. */
  words: string[];
}

/** Before Redis 7.0 there is no DRYRUN, and the user may not be allowed to run it. */
export async function missingRights(client: Wire, asked: RightsAsked): Promise<MissingRights> {
  const named = await whoAmI(client);
  const user = named ?? asked.user;
  const denied = named === null ? null : await deniedOf(client, named, rightsOf(asked.keys, asked.channel));
  return { user, denied, words: denied === null ? [] : wordsOf(denied, asked) };
}

async function whoAmI(client: Wire): Promise<string | null> {
  try {
    return text(await send(client, 'acl', ['WHOAMI']));
  } catch (error) {
    if (isErrorReply(error)) return null;
    throw error;
  }
}

/** The rights that user `name` lacks. Null when the server does not tell. */
export async function deniedOf(
  client: Wire,
  name: string,
  rights: ReturnType<typeof rightsOf>,
): Promise<string[] | null> {
  const found = await Promise.all(
    rights.map(async ([command, ...args]) => {
      try {
        const reply = text(await send(client, 'acl', ['DRYRUN', name, ...command.split('|'), ...args]));
        return reply === 'OK' ? '' : `${command}: ${reply}`;
      } catch (error) {
        if (!isErrorReply(error)) throw error;
        // The command was renamed. Any other error means that DRYRUN itself is unknown or not allowed.
        return /Command '.*' not found/i.test(error.message)
          ? `${command}: the server does not know it (rename-command?)`
          : null;
      }
    }),
  );
  const told = found.filter((one) => one !== null);
  return told.length < found.length ? null : told.filter((one) => one !== '');
}

/** `info: … to run the 'info' command` → `+info`; a key → the pattern of the keys; a channel → the channels. */
function wordsOf(denied: readonly string[], { keys, channel, db }: Omit<RightsAsked, 'user'>): string[] {
  const words = denied.flatMap((one) => {
    if (one.includes('rename-command')) return [];
    if (/ (key|keys)\b/.test(one.slice(one.indexOf(':')))) return [keyPattern(keys)];
    if (/ channels?\b/.test(one.slice(one.indexOf(':')))) return channelsOf(channel, db);
    return [`+${one.slice(0, one.indexOf(':'))}`];
  });
  return [...new Set(words)];
}

/**
 * What the server itself says of a call that it denied: `… no permissions to run the 'ping' command`. Null inside a
 * script.
 */
export function wordsOfDenial(message: string, asked: Omit<RightsAsked, 'user'>): string[] | null {
  const command = /to run the '([^']+)' command/.exec(message)?.[1];
  if (command !== undefined) return [`+${command}`];
  if (/access one of the keys/.test(message)) return [keyPattern(asked.keys)];
  return /access one of the channels/.test(message) ? channelsOf(asked.channel, asked.db) : null;
}

/** One line for a shell: `|`, `~` and `&` mean something there. */
export function grantCommand(user: string, words: readonly string[]): string {
  return ['ACL SETUSER', ...[user, ...words].map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word}'`))].join(
    ' ',
  );
}

/** `user lim lacks +info +time`. */
export function lackText(user: string, words: readonly string[]): string {
  const shown = words.slice(0, 6).join(' ');
  return `user ${user} lacks ${shown}${words.length > 6 ? ` and ${words.length - 6} more rights` : ''}`;
}
