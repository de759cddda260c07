// A node's refusal as a sentence, for logs, errors and the reasons why a term ends.
import type { Refused } from './types.js';

export function refusalText(reply: Refused): string {
  const d = reply.detail;
  switch (reply.reason) {
    case 'LOCK_HELD':
      return `LOCK_HELD by ${d.holder ?? '?'} for ${d.pttlMs ?? '?'} ms`;
    case 'HELD':
      return `HELD by ${d.by ?? '?'}: ${d.why ?? ''}`;
    case 'HANDOVER':
      return `HANDOVER to ${d.to ?? '?'}`;
    case 'EPOCH_MOVED':
      return `EPOCH_MOVED to ${d.epoch ?? '?'}`;
    case 'FENCING_ERROR':
      return d.check === 'epoch'
        ? `FENCING_ERROR: its epoch is ${d.epoch ?? '?'}`
        : `FENCING_ERROR: its lock is ${d.holder ? `held by ${d.holder}` : 'free'}`;
    case 'HEIGHT_EXISTS':
      return `HEIGHT_EXISTS: ${d.hash?.slice(0, 8) ?? '?'} at epoch ${d.epoch ?? '?'}`;
    case 'GAP':
      return `GAP: its head is ${d.head ?? '?'}`;
    case 'PARENT_MISMATCH':
      return `PARENT_MISMATCH: its head is ${d.hash?.slice(0, 8) ?? '?'} at epoch ${d.epoch ?? '?'}`;
    case 'TRIMMED':
      return `TRIMMED: its floor is ${d.floor ?? '?'}`;
    case 'NOT_ADMITTED':
      return `NOT_ADMITTED: ${d.why ?? '?'}`;
    case 'WRONG_CLUSTER':
      return `WRONG_CLUSTER: it is ${d.actual ?? '?'}`;
    case 'CONFIG_STALE':
      return d.why === 'other'
        ? `CONFIG_STALE: it knows another configuration of the same version: ${d.actual ?? '?'}`
        : `CONFIG_STALE: it knows a later configuration: ${d.actual || 'none'}`;
    case 'NOT_MEMBER':
      return `NOT_MEMBER: its memory ${d.actual || '?'} is not the one that counts`;
    default:
      // A server's own message often begins with the word.
      if (d.message?.startsWith(`${reply.reason} `)) return d.message;
      return d.message ? `${reply.reason}: ${d.message}` : reply.reason;
  }
}
