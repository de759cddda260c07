// What `seq doctor` asks one server: INFO, the important settings, its clock, round trips, and every right by ACL
// DRYRUN (which runs nothing). A question that the server refuses is a finding too.
import type { NodeCheckup } from '../ports.js';
import { isErrorReply, send } from './connection.js';
import { list, parseInfo, text } from './replies.js';
import { deniedOf, grantCommand, missingRights, type RightsAsked } from './missing-rights.js';
import { aclRule, transactionRights } from './rights.js';
import type { Wire } from './wire/wire.js';

const SETTINGS = [
  'appendonly',
  'appendfsync',
  'save',
  'notify-keyspace-events',
  'min-replicas-to-write',
  'maxmemory-policy',
  'dir',
  'client-output-buffer-limit',
];
const PINGS = 20;

export async function checkUp(client: Wire, asked: RightsAsked): Promise<NodeCheckup> {
  const { keys, channel, db } = asked;
  const roundTripsMs: number[] = [];
  for (let i = 0; i < PINGS; i++) {
    const at = performance.now();
    await orNull(send(client, 'ping', []));
    roundTripsMs.push(performance.now() - at);
  }
  const before = Date.now();
  const time = await orNull(send(client, 'time', []));
  const after = Date.now();
  const clockMs =
    time === null
      ? 0
      : Math.round(Number(text(list(time)[0])) * 1000 + Number(text(list(time)[1])) / 1000 - (before + after) / 2);
  const rights = await missingRights(client, asked);
  const { user, denied } = rights;
  return {
    info: parseInfo(text((await orNull(send(client, 'info', []))) ?? '')),
    config: await settings(client),
    user,
    denied,
    grant: rights.words.length === 0 ? '' : grantCommand(user, rights.words),
    scriptsOnly: denied === null ? [] : ((await deniedOf(client, user, transactionRights(keys))) ?? []),
    roundTripsMs,
    clockMs,
    aclRule: aclRule(user === 'default' ? 'seq' : user, keys, channel, db),
  };
}

async function settings(client: Wire): Promise<Record<string, string> | null> {
  const found: Record<string, string> = {};
  for (const setting of SETTINGS) {
    const reply = await orNull(send(client, 'config', ['GET', setting]));
    if (reply === null) return null;
    const [, value] = list(reply);
    if (value !== undefined) found[setting] = text(value);
  }
  return found;
}

async function orNull(reply: Promise<unknown>): Promise<unknown> {
  try {
    return await reply;
  } catch (error) {
    if (isErrorReply(error)) return null;
    throw error;
  }
}
