// Which nodes does a command talk to? Those of the settings, those recorded in a bundle, or those of the other dialect.
// Nothing is loaded or opened before the command asks for it.
import type { Interfaces } from '@oclif/core';
import type { FuelCluster } from '../compose/fuel-nodes.js';
import type { Surroundings } from '../cluster/settings.js';
import type { Cluster } from '../compose/open-cluster.js';
import { asList, setting } from '../config/settings.js';
import type { Meta } from '../present/result.js';
import { usageError } from '../support/failure.js';

export interface OpenRequest {
  identity?: 'discover' | 'as-configured';
  members?: 'of-the-cluster' | 'as-listed';
  lane?: string;
}

/** What the nodes need from the command that opens them. */
export interface CommandSide {
  id: string;
  /** The flags that the command defines, whether given or not. */
  knownFlags: Interfaces.FlagInput;
  needsConfig: boolean;
  given(): Record<string, unknown>;
  signal: AbortSignal;
  step(doing: string): void;
  warning(text: string): void;
  onClose(closer: () => Promise<void>): void;
}

/** Commands that show a listed node which is no member as a row of its own. */
const SHOW_STRANGERS: readonly string[] = ['status', 'watch', 'node:list'];
/** These ask them who leads: two leaders of one cluster are critical. */
const ASK_STRANGERS = /^(doctor|wait|check:.*)$/;

export class CommandNodes {
  contextName: string | null = null;
  private around: Promise<Surroundings> | undefined;
  private counted: () => Partial<Pick<Meta, 'nodesAsked' | 'nodesAnswered' | 'quorum'>> = () => ({});

  constructor(private readonly command: CommandSide) {}

  /** For `meta` of the envelope. */
  counts(): Partial<Pick<Meta, 'nodesAsked' | 'nodesAnswered' | 'quorum'>> {
    return this.counted();
  }

  /** Config file, context, environment and flags together. `lane`: one of several named lanes. */
  async surroundings(lane?: string): Promise<Surroundings> {
    const given = this.command.given();
    if (lane !== undefined) {
      const { surroundings } = await import('../cluster/settings.js');
      return surroundings({ ...given, lane }, process.env);
    }
    this.around ??= import('../cluster/settings.js').then(async ({ surroundings }) => {
      const found = await surroundings(given, process.env, !this.command.needsConfig);
      this.contextName = found.sources.context?.name ?? null;
      return found;
    });
    return this.around;
  }

  async open(request: OpenRequest): Promise<Cluster> {
    const bundle = this.command.given()['from-bundle'] as string | undefined;
    const cluster = bundle === undefined ? await this.live(request) : await this.remembered(bundle);
    for (const { id, from, to } of cluster.readdressed)
      this.command.warning(`${id} is asked at ${to}: ${from} does not show the memory that counts as ${id}`);
    const counted = ASK_STRANGERS.test(this.command.id) ? 'it is not counted' : 'it is not asked and not counted';
    if (!SHOW_STRANGERS.includes(this.command.id))
      for (const { port } of cluster.strangers)
        this.command.warning(
          `${port.id} (${port.url}) is no member of cluster ${cluster.identity.cluster}, whose nodes are ` +
            `${cluster.nodes.map(({ id }) => id).join(', ')}: ${counted}`,
        );
    this.command.onClose(() => cluster.close());
    this.counted = () => ({
      nodesAsked: cluster.asked.length,
      nodesAnswered: cluster.answers(),
      quorum: cluster.quorum,
    });
    return cluster;
  }

  private async live({ lane, ...options }: OpenRequest): Promise<Cluster> {
    const [{ openCluster }, around] = await Promise.all([
      import('../compose/open-cluster.js'),
      this.surroundings(lane),
    ]);
    const { id, knownFlags, signal } = this.command;
    // A command that may change something must know which cluster the nodes belong to. A command that makes a cluster,
    // or makes it anew, finds that out by itself.
    const purpose = 'dry-run' in knownFlags ? ('act' as const) : ('read' as const);
    return openCluster(around, { ...options, ...(id.startsWith('cluster') ? {} : { purpose }), signal });
  }

  /** The same nodes as recorded in a file. Nothing is asked over the network. */
  private async remembered(path: string): Promise<Cluster> {
    const [{ openBundle }, around] = await Promise.all([import('../compose/bundle.js'), this.surroundings()]);
    this.command.step(`reading ${path}`);
    const { cluster, context, note } = await openBundle(path, {
      on: setting<string[] | null>(around.sources, 'on', asList, null).value,
      signal: this.command.signal,
    });
    this.contextName = context;
    this.command.warning(note);
    return cluster;
  }

  /** Null: the nodes hold this program's own keys. */
  async openFuel(): Promise<FuelCluster | null> {
    const given = this.command.given();
    if (given['from-bundle'] !== undefined) {
      if (given['dialect'] === 'fuel')
        throw usageError('--from-bundle and --dialect fuel do not go together', [
          'a bundle holds a cluster of seq: leave --dialect out',
        ]);
      return null;
    }
    const [{ openFuel }, around] = await Promise.all([import('../compose/fuel-nodes.js'), this.surroundings()]);
    const cluster = await openFuel(around);
    if (cluster === null) return null;
    this.command.onClose(() => cluster.close());
    this.counted = () => ({ nodesAsked: cluster.nodes.length, quorum: cluster.quorum });
    return cluster;
  }
}
