// Describes a height's verdict in one sentence (docs/FUEL.md). Pure. It says "bytes differ", never "fork": the payload
// is not decoded, and one block signed twice differs too. Counts refer to the configured nodes. Nodes that did not
// answer are named.
import type { FuelBlock, FuelVerdict } from './classify.js';

export function describeFuel(v: FuelVerdict): string {
  return [main(v), ...extras(v)].filter((part) => part !== '').join('; ');
}

function main(v: FuelVerdict): string {
  const [best] = v.blocks;
  const at = `height ${v.height}`;
  const share = best === undefined ? `0 of ${v.n}` : `${best.nodes.length} of ${v.n}`;
  const differ = `the bytes differ: ${list(v.blocks.map(blockText))}`;
  if (v.class === 'unknown') {
    if (v.n - v.silent.length < v.quorum)
      return `${at}: only ${v.n - v.silent.length} of ${v.n} nodes could be read, ${v.quorum} are needed to tell`;
    return `${at}: ${v.blocks.length > 1 ? differ : `${share} hold it`}; what the silent nodes hold decides`;
  }
  if (v.class === 'unwinnable-conflict') {
    return best !== undefined && best.nodes.length >= v.quorum
      ? `${at}: two blocks are each on a quorum, ${differ}: a person must decide`
      : `${at}: ${differ}; none can reach ${v.quorum} of ${v.n}: nothing is produced here until a person decides`;
  }
  if (v.class === 'winnable-conflict') {
    return (
      `${at}: ${differ}; ` +
      `${list(v.blocks.filter((block) => block.canWin).map((block) => short(block.digest)))} can still ` +
      `reach ${v.quorum} of ${v.n}`
    );
  }
  if (v.class === 'repairable')
    return `${at}: ${share} hold it, ${v.quorum} are needed, and ${list(v.empty)} can still take it`;
  if (v.committed === true) {
    const orphans = v.blocks.slice(1);
    const shadow = orphans.filter((block) => block.epoch > (best?.epoch ?? 0n));
    if (v.class === 'shadowed')
      return (
        `${at} is committed on ${share}, and the bytes differ on ${list(shadow.map(blockText))}, above ` +
        `the epoch ${best?.epoch} of the committed block: a reconciler may prefer it`
      );
    return (
      `${at} is committed on ` +
      `${share}${orphans.length === 0 ? '' : `; the bytes differ on ${list(orphans.map(blockText))}`}`
    );
  }
  if (v.class === 'trimmed') {
    return v.blocks.length === 0
      ? `${at} has left the streams`
      : `${at}: ${share} still hold ` +
          `it${v.trimmed.length === 0 ? '' : `, ${list(v.trimmed)} may have trimmed it`}: whether it was ` +
          'committed cannot be told any more';
  }
  return best === undefined ? `${at} is in no stream` : `${at}: ${share} hold it, and the others refuse it`;
}

function extras(v: FuelVerdict): string[] {
  const only = v.index.filter((one) => one.is === 'only in the stream').map((one) => one.node);
  const phantom = v.index.filter((one) => one.is === 'only in the index').map((one) => one.node);
  return [
    ...v.duplicates.map(
      (one) =>
        `${one.node} holds ${one.entries} entries here, ${one.same ? 'of the same bytes' : 'and their bytes differ'}`,
    ),
    only.length === 0 ? '' : `on ${list(only)} it is missing in the index: it could be written there again`,
    phantom.length === 0
      ? ''
      : `on ${list(phantom)} the index has it and the stream does not: writes are refused as HEIGHT_EXISTS`,
    v.silent.length === 0 || (v.class === 'unknown' && v.n - v.silent.length < v.quorum)
      ? ''
      : v.committed === null && v.class !== 'trimmed'
        ? `${list(v.silent)} did not answer and could make it committed`
        : `${list(v.silent)} did not answer`,
  ];
}

export function short(digest: string): string {
  return digest.slice(0, 12);
}

function blockText(block: FuelBlock): string {
  return `${short(block.digest)} on ${block.nodes.join(', ')} at epoch ${block.epoch}`;
}

/** `a`, `a and b`, `a, b and c`. */
function list(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}
