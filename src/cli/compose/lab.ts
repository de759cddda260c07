// What the lab needs from the rest of the program: bootstrap, a context of its own, and who leads. The lab itself
// imports no Redis client. Its nodes are named by hand here, so that no context, lane or secret of the user's own
// configuration can reach them.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { bootstrap } from '../../core/operate/bootstrap.js';
import { inspectCluster } from '../../core/view/inspect.js';
import type { ClusterView } from '../../core/view/cluster-view.js';
import { systemClock, systemRandom } from '../../core/nodes/system-clock.js';
import { EXIT, SeqError } from '../../core/errors.js';
import { find } from '../../lab/act.js';
import { urlOf } from '../../lab/plan.js';
import { openState, type LabState } from '../../lab/state.js';
import type { LabOutside, Recovered } from '../../lab/up.js';
import { configPath, readConfig, updateConfig } from '../config/file.js';
import { openCluster, openNode, type Cluster } from './open-cluster.js';
import { probeForRecovery, recoverAsPlanned, rejoin, type Confirming } from './recovery.js';
import { surroundings } from '../cluster/settings.js';

export const LAB_CONTEXT = 'lab';

/**
 * The servers started a moment ago and the machine may be busy. No leader waits for them yet, so a long limit does no
 * harm.
 */
const BEGIN_LIMIT_MS = 2000;

/** How the recovery of a kept lab is confirmed. */
export type LabConfirming = Omit<Confirming, 'signal'> & { step(doing: string): void; changed(nodes: string[]): void };

export function labOutside(directory: string, confirming: LabConfirming): LabOutside {
  return {
    recover: (nodes, stores, signal = new AbortController().signal) =>
      recoverLab(directory, nodes, stores, { ...confirming, signal }),
    bootstrap: async (nodes, signal) => {
      const node = nodes.map(({ id, url }) => `${id}=${url}`);
      const found = await openCluster(await surroundings({ node }, plainEnvironment(directory)), {
        members: 'as-listed',
        ...(signal === undefined ? {} : { signal }),
      });
      const cluster = found.identity.cluster || `${systemRandom.hex(8)}.1`;
      const opened = await Promise.all(
        found.addresses.map((address) => openNode(address, { ...found.identity, cluster })),
      );
      try {
        // The earlier run was interrupted after the last node's admission and before the lab recorded it: nothing is
        // left to do.
        if ((await inspectLab({ ...found, nodes: opened })).nodes.every((row) => row.admitted)) return;
        await bootstrap({
          nodes: opened,
          cluster,
          limitMs: Math.max(BEGIN_LIMIT_MS, found.nodeTimeoutMs),
          clock: systemClock,
          random: systemRandom,
          target: `-c ${LAB_CONTEXT}`,
          dryRun: false,
        });
      } finally {
        await Promise.all([found.close(), ...opened.map((each) => each.close())]);
      }
    },
    writeContext: async (nodes, sequencers) => {
      await updateConfig(configPath(), (config) => ({
        ...config,
        contexts: {
          ...config.contexts,
          [LAB_CONTEXT]: { nodes: nodes.map(({ id, url }) => ({ id, url })), sequencers },
        },
      }));
    },
  };
}

async function recoverLab(
  directory: string,
  nodes: { id: string; url: string }[],
  stores: { id: string; dir: string }[],
  confirming: LabConfirming & { signal: AbortSignal },
): Promise<Recovered> {
  const { signal } = confirming;
  const closers: (() => Promise<void>)[] = [];
  try {
    const found = await openCluster(
      await surroundings({ node: nodes.map(({ id, url }) => `${id}=${url}`) }, plainEnvironment(directory)),
      { signal },
    );
    closers.push(() => found.close());
    const probed = await probeForRecovery({
      // A sequencer that never wrote a store of its own has no evidence to give.
      found,
      peers: [],
      stores: stores.filter(({ dir }) => existsSync(join(dir, 'chain.mdb'))),
      command: confirming.command,
      insteadOf: () => [`seq status -c ${LAB_CONTEXT}`, 'seq lab down'],
      signal,
      onClose: (close) => {
        closers.push(close);
      },
      step: confirming.step,
      changed: confirming.changed,
    });
    const { decision, evidence } = probed;
    if (decision.outcome === 'plan') {
      const warning = await recoverAsPlanned(decision.plan, probed, confirming);
      return {
        cluster: decision.plan.cluster,
        head: decision.plan.top.height,
        warnings: warning === '' ? [] : [warning],
      };
    }
    await rejoin(probed);
    return {
      cluster: decision.cluster,
      head: Math.max(0, ...evidence.nodes.map(({ view }) => view?.head ?? 0)),
      warnings: [],
    };
  } finally {
    for (const close of closers.reverse()) await close();
  }
}

/** Removes the context if it is still this lab's. Another lab may have written it since. */
export async function removeLabContext(nodes: { url: string }[]): Promise<boolean> {
  const path = configPath();
  const ours = (urls: { url: string }[] | undefined): boolean =>
    urls !== undefined && urls.map(({ url }) => url).join() === nodes.map(({ url }) => url).join();
  if (!ours((await readConfig(path))?.contexts[LAB_CONTEXT]?.nodes)) return false;
  await updateConfig(path, (config) => {
    if (!ours(config.contexts[LAB_CONTEXT]?.nodes)) return config;
    const { [LAB_CONTEXT]: _gone, ...contexts } = config.contexts;
    const { current, ...rest } = config;
    return current === undefined || current === LAB_CONTEXT ? { ...rest, contexts } : { ...rest, current, contexts };
  });
  return true;
}

/** The lab's nodes, open; the caller closes them. */
export async function openLabCluster(directory: string, state: LabState, signal?: AbortSignal): Promise<Cluster> {
  const node = state.processes
    .filter((record) => record.kind === 'redis')
    .map((record) => `${record.name}=${urlOf(record)}`);
  return openCluster(await surroundings({ node }, plainEnvironment(directory)), signal === undefined ? {} : { signal });
}

export async function inspectLab(cluster: Pick<Cluster, 'nodes' | 'nodeTimeoutMs'>): Promise<ClusterView> {
  return inspectCluster({
    nodes: cluster.nodes,
    limitMs: cluster.nodeTimeoutMs,
    clock: systemClock,
    target: `-c ${LAB_CONTEXT}`,
  });
}

/**
 * `leader` → the sequencer that leads now according to the nodes. Any other name is returned unchanged. Throws SeqError
 * 75 when nobody leads, 69 when that cannot be determined.
 */
export async function resolveName(directory: string, name: string, signal?: AbortSignal): Promise<string> {
  if (name !== 'leader') return name;
  const state = openState(directory);
  const cluster = await openLabCluster(directory, state, signal);
  try {
    const view = await inspectLab(cluster);
    if (view.leader !== null) return find(state, view.leader.id).name;
    throw new SeqError({
      code: view.leaderKnown ? 'NO_LEADER' : 'LEADER_UNKNOWN',
      exit: view.leaderKnown ? EXIT.tryAgain : EXIT.noQuorum,
      message: view.leaderKnown
        ? 'nobody leads at the moment'
        : `who leads is unknown: ${view.answered} of ${view.configured} nodes answered`,
      why: view.reason,
      changed: 'nothing',
      next: ['seq status -c lab', 'seq lab status'],
      retryable: view.leaderKnown,
    });
  } finally {
    await cluster.close();
  }
}

/** No SEQ_* of the user but the place of the configuration, in which the lab's context stands. */
export function withoutSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('SEQ_') || name === 'SEQ_CONFIG'));
}

/** The environment of commands that the lab runs itself. It has none of the user's own SEQ_* and configuration. */
export function plainEnvironment(directory: string): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('SEQ_'));
  return { ...Object.fromEntries(kept), XDG_CONFIG_HOME: join(directory, 'no-config') };
}
