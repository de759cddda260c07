// Keeps the lane registry in the memory of the nodes (docs/PROTOCOL.md section 2): gives a member what it lacks, and a
// member that lost its memory the whole registry. Such a member counts again from then on.
import { mergeLanes, missingFrom, type LaneEntry, type Lanes } from './entries.js';
import { noteOn, readRegistry, requireQuorum, surveyRegistry, type Registry, type RegistryNodes } from './registry.js';

export interface Kept {
  registry: Registry;
  /** How many entries were written, by node. A node that remembers again may have lacked none. */
  written: ReadonlyMap<string, number>;
}

/**
 * Reads the registry, and gives each member what it lacks. `own`: what this process has read before. An entry is never
 * taken back, so what the nodes lack of it was deleted by hand.
 */
export async function keepRegistry(at: RegistryNodes, own: Lanes = new Map()): Promise<Kept> {
  const first = await readRegistry(at);
  if (allRemember(first)) return { registry: first, written: await give(at, first, first, own) };
  // A memory that had forgotten is filled with what a quorum says after that was seen. What counted before it was lost
  // is read from the others. What counts after it was lost is stored by a quorum of others.
  const registry = await readRegistry(at);
  const written = await give(at, first, registry, own);
  return { registry: allRemember(registry) ? registry : await readRegistry(at), written };
}

/** Every member answers, and remembers. */
export function remembersWhole(registry: Registry): boolean {
  return registry.silent.length === 0 && allRemember(registry);
}

function allRemember({ answers }: Registry): boolean {
  return [...answers.values()].every(({ remembers }) => remembers);
}

async function give(
  { limitMs }: RegistryNodes,
  before: Registry,
  { answers, version, lanes, possible }: Registry,
  own: Lanes,
): Promise<Map<string, number>> {
  const written = new Map<string, number>();
  await Promise.all(
    [...answers].map(async ([id, { port, incarnation, remembers, lanes: has }]) => {
      const entries = missingFrom(has, mergeLanes([remembers ? lanes : possible, own]));
      if (remembers ? entries.length === 0 : before.answers.get(id)?.incarnation !== incarnation) return;
      const fills = remembers ? {} : { fills: incarnation };
      if ((await noteOn(port, entries, { version, ...fills, limitMs })) === '') written.set(id, entries.length);
    }),
  );
  return written;
}

/**
 * An operator says that the list was lost, or never begun: the members remember from now on what they hold together.
 * Throws as `readRegistry` does while fewer than q answer.
 */
export async function adoptRegistry(at: RegistryNodes): Promise<Registry> {
  const found = await surveyRegistry(at);
  const { answers, version } = found;
  const all: LaneEntry[] = [...mergeLanes([...answers.values()].map(({ lanes }) => lanes)).values()];
  if (answers.size * 2 > found.members)
    await Promise.all(
      [...answers.values()].map(({ port, incarnation }) =>
        noteOn(port, all, { version, fills: incarnation, limitMs: at.limitMs }),
      ),
    );
  return requireQuorum(await surveyRegistry(at));
}
