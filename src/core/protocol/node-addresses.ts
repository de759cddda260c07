// Where nodes are that were replaced (docs/PROTOCOL.md section 8, I13): a table of one line a node,
// `r3@17.0=redis://…`: which node, the epoch of the term that moved it, which of that term's moves it was, and
// where the node is since. Addresses hold no blanks. A line never goes back to a lower one.
import type { Epoch } from './types.js';

export interface Move {
  epoch: Epoch;
  turn: number;
  url: string;
}
export type MoveTable = ReadonlyMap<string, Move>;

export function parseMoves(text: string): MoveTable {
  const table = new Map<string, Move>();
  for (const line of text.split(' ')) {
    const [, node, epoch, turn, url] = /^([^@= ]+)@(\d{1,15})\.(\d{1,9})=(\S+)$/.exec(line) ?? [];
    if (node !== undefined) table.set(node, { epoch: Number(epoch), turn: Number(turn), url: url! });
  }
  return table;
}

export function movesText(table: MoveTable): string {
  return [...table]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([node, { epoch, turn, url }]) => `${node}@${epoch}.${turn}=${url}`)
    .join(' ');
}

export function isNewer(move: Move, than: Move | undefined): boolean {
  return than === undefined || move.epoch > than.epoch || (move.epoch === than.epoch && move.turn > than.turn);
}

/** The newest line of each node. */
export function mergeMoves(...texts: readonly string[]): string {
  const merged = new Map<string, Move>();
  for (const text of texts)
    for (const [node, move] of parseMoves(text)) if (isNewer(move, merged.get(node))) merged.set(node, move);
  return movesText(merged);
}

/** Whether `theirs` names a move that `mine` has not heard of. */
export function knowsMore(theirs: string, mine: string): boolean {
  const known = parseMoves(mine);
  return theirs !== mine && [...parseMoves(theirs)].some(([node, move]) => isNewer(move, known.get(node)));
}

/** Nodes that a person names at an address that they were moved away from, by what the records of all of them say. */
export function displaced(
  nodes: readonly { id: string; url: string; view: { moves: string } | null }[],
): { id: string; url: string; to: string }[] {
  const table = parseMoves(mergeMoves(...nodes.map(({ view }) => view?.moves ?? '')));
  return nodes.flatMap(({ id, url, view }) => {
    const move = table.get(id);
    // Under another name of the same server it still has its own line.
    return move && view && url !== move.url && isNewer(move, parseMoves(view.moves).get(id))
      ? [{ id, url, to: move.url }]
      : [];
  });
}
