// What does each fault do, and how does it end? It ends by itself after its time, or when everything is healed,
// whichever comes first.
import { parseConfiguration, type Configuration } from '../../src/core/protocol/configuration.js';
import { quorumOf } from '../../src/core/protocol/quorum.js';
import { sequencerOf, type NodeCall } from '../../src/core/protocol/types.js';
import { cloneNodeState, emptyNodeState, MemoryServer } from '../support/memory-node.js';
import { Play } from './acts.js';
import type { NodeOp } from './history.js';
import { areLocksStuck, Operator } from './operator.js';
import type { SimProcess } from './process.js';
import type { Prng } from './random.js';
import type { Fault } from './scenario.js';
import type { Servers } from './servers.js';
import { WALL_START, type SimClock } from './sim-clock.js';
import { Link, QUIET, runOn, SimNode, type Wire } from './wire.js';

export interface Faulty {
  clock: SimClock;
  wire: Wire;
  servers: Servers;
  /** For each node: the server that operators know it by. */
  nodes: SimNode[];
  processes: SimProcess[];
  prng: Prng;
  note(text: string): void;
  startAgain(who: SimProcess, ms: number): void;
  trouble(who: string, kind: 'bug' | 'fatal-error', text: string): void;
  operators: Operator[];
  /** From now on every configuration names this server for the node. */
  replaced(id: string, successor: SimNode): void;
  /** Makes a server reachable for everybody. It may become a member. */
  joined(node: SimNode): void;
  /** Ends the faults that are still active. */
  ends: (() => void)[];
}

export function startFault(world: Faulty, fault: Fault): void {
  const { clock, wire, note } = world;
  const process = 'process' in fault ? named(world, fault.process)[0] : undefined;
  const node = 'node' in fault ? serverOf(world, fault.node) : undefined;
  note(describeFault(fault));
  // The server of a planned member may not exist yet, or may never exist.
  if ('node' in fault && fault.kind !== 'resize' && fault.node !== '*' && node === undefined) return;
  switch (fault.kind) {
    case 'cut': {
      const links = linksOf(world, fault.process, fault.node);
      for (const link of links) {
        if (fault.direction !== 'replies') link.requestsCut++;
        if (fault.direction !== 'requests') link.repliesCut++;
      }
      return until(world, fault.forMs, () => {
        for (const link of links) {
          if (fault.direction !== 'replies') link.requestsCut--;
          if (fault.direction !== 'requests') link.repliesCut--;
          if (link.requestsCut > 0 || link.repliesCut > 0) continue;
          const held = link.held.splice(0);
          if (fault.late) for (const arrive of held) clock.after(world.prng.between(0, 20), arrive);
          if (fault.reset) link.reset();
        }
      });
    }
    case 'silent':
      node!.silent++;
      return until(world, fault.forMs, () => node!.wakeUp());
    case 'slow': {
      const links = linksOf(world, fault.process, fault.node);
      for (const link of links) link.slowMs += fault.ms;
      return until(world, fault.forMs, () => {
        for (const link of links) link.slowMs -= fault.ms;
      });
    }
    case 'noise': {
      const { drop, lost, twice, lateMs, delayMs } = fault;
      wire.noise = { drop, lost, twice, lateMs, delayMs };
      return until(world, fault.forMs, () => {
        wire.noise = QUIET;
      });
    }
    case 'pause':
      process!.pause();
      return until(world, fault.forMs, () => process!.resume());
    case 'crash': {
      if (!process!.up) return;
      process!.dieAfter(fault.afterCalls);
      // By then it has made enough calls to die. If it is paused, it is killed now.
      clock.after(1000, () => {
        process!.kill();
        // The only copy of blocks that the nodes have trimmed is kept: no system could survive its loss.
        const level = world.processes.some(
          (one) => one !== process && one.store.syncedHeight() + 2 >= process!.store.head().height,
        );
        if (fault.store === 'empty' && level) {
          process!.emptyStore();
          note(`the store of ${process!.id} is gone`);
        }
        world.startAgain(process!, fault.downMs);
      });
      return;
    }
    case 'stop': {
      const { sequencer } = process!;
      if (!sequencer) return;
      void sequencer.stop('SIGTERM', 'asked to stop').then(() => {
        if (process!.sequencer !== sequencer) return;
        process!.kill();
        world.startAgain(process!, fault.downMs);
      });
      return;
    }
    case 'disk':
      process!.setSync(fault.syncMs);
      return until(world, fault.forMs, () => process!.setSync(process!.plan.syncMs));
    case 'jump':
      node!.offsetMs += fault.ms;
      return;
    case 'wall':
      process!.wallOffsetMs += fault.ms;
      return;
    case 'corrupt': {
      if (!spared(world, node!)) return;
      const { state } = node!.server;
      const at = state.entries.length - 1 - fault.below;
      const entry = state.entries[at];
      if (entry) state.entries[at] = { ...entry, damage: 'its hash does not match its content' };
      return;
    }
    case 'hold':
      for (const one of world.nodes)
        operator(world, one, { script: 'set_hold', by: 'operator', reason: 'simulated', ttlMs: fault.ttlMs });
      return until(world, fault.clearMs, () => {
        for (const one of world.nodes) operator(world, one, { script: 'clear_hold' });
      });
    case 'stepdown': {
      const leader = world.processes.find((one) => one.sequencer?.status().role === 'leader');
      const epoch = leader?.sequencer?.status().epoch ?? 0;
      const request = {
        id: `q${Math.floor(clock.now())}`,
        kind: 'stepdown' as const,
        to: fault.to,
        plan: '',
        by: 'operator',
        reason: 'simulated',
        epoch,
      };
      for (const one of world.nodes) operator(world, one, { script: 'request_leader', request, ttlMs: 10_000 });
      return;
    }
    case 'raise': {
      const { state } = node!.server;
      const highestSeen = Math.max(...world.nodes.map((one) => one.server.state.epoch ?? 0));
      const value = (fault.ofHolder ? (state.epoch ?? 0) : highestSeen) + fault.by;
      operator(world, node!, {
        script: 'raise_epoch',
        value,
        highestSeen,
        mayDepose: true,
        ...(fault.ofHolder && state.lock ? { ofOwner: state.lock.owner } : {}),
      });
      return;
    }
    case 'revoke':
      for (const one of world.nodes) {
        const owner = one.server.state.lock?.owner;
        if (owner && (fault.node === '*' || fault.node === one.id))
          operator(world, one, { script: 'release_lock', owner });
      }
      return;
    case 'restart': {
      if (node!.down || !spared(world, node!)) return;
      node!.down = true;
      node!.waiting.length = 0;
      let back = false;
      return until(world, fault.downMs, () => {
        if (back) return;
        back = true;
        if (fault.keep !== 'all') node!.memory++;
        node!.server.restart(fault.keep);
        node!.down = false;
        // Each sequencer notices the restart at a different time.
        for (const link of node!.links)
          clock.after(world.prng.between(0, 30), () => {
            if (link.connectedTo !== node!.server.starts) link.reset();
          });
      });
    }
    case 'repair':
      new Operator(world, `op${world.operators.length + 1}`, { verb: 'repair' });
      return;
    case 'replace': {
      if (world.servers.isContested(node!.id) || !world.servers.isMember(node!.id)) return;
      if (!spared(world, node!) || world.operators.some((one) => !one.done)) return;
      const server = new MemoryServer(
        `${node!.id}.${wire.servers.size}`,
        () => WALL_START + clock.now() + node!.offsetMs,
        emptyNodeState(`run-${node!.id}-new${wire.servers.size}`),
      );
      server.starts = node!.server.starts + 1000; // so that no answer of one server is taken for the other's
      const successor = new SimNode(node!.id, server, `sim://${node!.id}.${wire.servers.size}`);
      successor.memory = node!.memory + 1000;
      wire.servers.set(successor.url, successor);
      if (fault.gone) {
        node!.down = true;
        for (const link of node!.links) link.reset();
      }
      new Operator(world, `op${world.operators.length + 1}`, {
        verb: 'replace',
        node: node!.id,
        successor,
        gone: fault.gone,
      });
      oldServerMayReturn(world, node!, fault.gone);
      return;
    }
    case 'power': {
      if (world.operators.some((one) => !one.done)) return; // a node may be moving to another server
      if (world.nodes.some(({ id }) => world.servers.isContested(id))) return;
      const sets = world.servers.configurations();
      if (new Set(sets.map(({ members }) => members.map(({ id }) => id).join())).size > 1) return;
      const members = world.nodes.filter(({ id }) => world.servers.isMember(id));
      const mayLose = members.length - quorumOf(members.length);
      let forgot = members.filter((one) => !one.intact).length;
      if (forgot > mayLose) return;
      const order = [...world.nodes].sort(() => world.prng.unit() - 0.5);
      const keeps = new Map(
        order.map((one) => {
          const loses = fault.lose > 0 && one.intact && forgot < mayLose && members.includes(one);
          if (loses) forgot++;
          return [one, loses ? world.prng.pick(['none', 1, 2, 3] as const) : ('all' as const)];
        }),
      );
      for (const one of world.nodes) {
        one.down = true;
        one.waiting.length = 0;
      }
      for (const one of world.processes) {
        // it goes on, or is still paused and wakes up after the recovery
        if (!one.up || world.prng.chance(0.4)) continue;
        if (world.prng.chance(0.5)) {
          one.pause();
          const ms = world.prng.between(fault.downMs, fault.downMs + fault.recoverAfterMs + 12_000);
          until(world, ms, () => one.resume());
        } else {
          one.kill();
          world.startAgain(one, world.prng.between(0, fault.downMs + 2000));
        }
      }
      return until(world, fault.downMs, () => {
        for (const one of world.nodes) {
          if (!one.down) continue;
          const keep = keeps.get(one)!;
          if (keep !== 'all') one.memory++;
          one.server.restart(keep);
          one.down = false;
          for (const link of one.links)
            clock.after(world.prng.between(0, 30), () => {
              if (link.connectedTo !== one.server.starts) link.reset();
            });
        }
        clock.after(fault.recoverAfterMs, () => {
          new Operator(world, `op${world.operators.length + 1}`, { verb: 'recover' });
        });
      });
    }
    case 'redirect': {
      const home = homeOf(world, fault.node);
      if (!mayBeContested(world, home)) return;
      const there = world.servers.other(home, fault.to);
      const forMs = Math.min(fault.forMs, wire.healAt - clock.now());
      world.servers.contest(home.id, forMs);
      const moved = named(world, fault.process);
      for (const one of moved) leadTo(world, one, home.id, there, fault.kept);
      return until(world, fault.forMs, () => {
        for (const one of moved) leadTo(world, one, home.id, null, false);
      });
    }
    case 'cut-on-begin': {
      const { node: id, others, forMs } = fault;
      const watch = (server: SimNode, { script, outcome }: NodeOp): void => {
        if (server.id !== id || !server.other || script !== 'begin_admission' || outcome !== 'accepted') return;
        wire.watching.delete(watch);
        for (const who of world.processes)
          if (who.links.some((link) => link.node === server))
            for (const other of others)
              startFault(world, {
                at: clock.now(),
                kind: 'cut',
                process: who.id,
                node: other,
                direction: 'requests',
                forMs,
                late: false,
                reset: false,
              });
      };
      wire.watching.add(watch);
      return until(world, fault.withinMs, () => wire.watching.delete(watch));
    }
    case 'resize': {
      const { change } = fault;
      const members = world.servers.members();
      if (members === null || world.operators.some((one) => one.resizes(fault.node))) return;
      if (members.includes(fault.node) === (change === 'add') || world.servers.isContested(fault.node)) return;
      if (change === 'remove' && members.length <= 2) return;
      const server = change === 'add' ? world.servers.toAdd(fault.node, world.nodes) : node!;
      if (change === 'add') {
        server.down = false;
        world.joined(server);
      }
      new Operator(world, `op${world.operators.length + 1}`, { verb: 'resize', change, server });
      return;
    }
    case 'cut-on-note': {
      const known = new Set([idsOf(world.servers.configurations()[0] ?? null)]);
      const watch = (_: SimNode, { script, outcome, config, owner }: NodeOp): void => {
        const ids = idsOf(parseConfiguration(config));
        if (script !== 'claim' || outcome !== 'accepted' || ids === '' || known.has(ids)) return;
        wire.watching.delete(watch);
        const maker = named(world, sequencerOf(owner))[0];
        if (fault.dies) {
          maker?.kill();
          return maker && world.startAgain(maker, fault.forMs);
        }
        for (const other of fault.others)
          startFault(world, {
            at: clock.now(),
            kind: 'cut',
            process: maker?.id ?? '*',
            node: other,
            direction: world.prng.pick(['both', 'requests', 'replies'] as const),
            forMs: fault.forMs,
            late: world.prng.chance(0.5),
            reset: false,
          });
      };
      wire.watching.add(watch);
      return until(world, fault.withinMs, () => wire.watching.delete(watch));
    }
    case 'edit-context': {
      const home = homeOf(world, fault.node);
      if (fault.list === 'elsewhere' && !mayBeContested(world, home)) return;
      if (!process!.up) return;
      const strangers = fault.list === 'more' ? ['r8', 'r9'] : [];
      if (fault.list === 'elsewhere') {
        world.servers.contest(home.id, Math.min(fault.forMs, wire.healAt - clock.now()));
        process!.elsewhere.set(home.id, world.servers.other(home, fault.to));
      } else
        process!.list = {
          only: fault.list === 'part' ? [home.id] : null,
          strangers: strangers.map((id) => new Link(process!.id, world.servers.stranger(id))),
          raced: fault.raced,
        };
      process!.kill();
      world.startAgain(process!, world.prng.between(0, 300));
      return until(world, fault.forMs, () => {
        process!.list = null;
        process!.elsewhere.delete(home.id);
        process!.kill();
        world.startAgain(process!, world.prng.between(0, 300));
      });
    }
    case 'clock-lie': {
      const { ms, whose } = fault;
      const one = world.processes.find(({ id }) => id === whose);
      const lie = (by: number): void => {
        if (one) one.wallOffsetMs += by;
        else for (const server of world.servers.of(whose)) server.offsetMs += by;
      };
      lie(ms);
      if (fault.forMs !== Infinity) until(world, fault.forMs, () => lie(-ms));
      world.ends.push(() => freeStuckLocks(world));
      return;
    }
    case 'rewind': {
      const copy = cloneNodeState(node!.server.state);
      const { memory } = node!;
      return void clock.after(fault.ageMs, () => {
        // A memory of a generation from before a recovery needs an operator.
        if (node!.server.state.record?.cluster !== copy.record?.cluster) return;
        if (wire.history.healedAt > 0 || node!.memory !== memory || node!.down || !spared(world, node!)) return;
        note(`${node!.url} is what it was ${fault.ageMs} ms ago`);
        node!.memory++;
        node!.server.rewind(copy);
        for (const link of node!.links) link.reset();
      });
    }
    case 'acts': {
      if (wire.play) return;
      const play = new Play(
        fault.acts,
        {
          nodes: world.nodes,
          processes: world.processes,
          note,
          over: () => {
            wire.play = null;
          },
          after: (ms, run) =>
            void clock.after(ms, () => {
              if (wire.play === play) run();
            }),
          kill: (who) => {
            who.kill();
            world.startAgain(who, 300);
          },
          raise: (one, by) => {
            const highestSeen = Math.max(...world.nodes.map(({ server }) => server.state.epoch ?? 0));
            operator(world, one, { script: 'raise_epoch', value: highestSeen + by, highestSeen, mayDepose: true });
          },
        },
        fault.longestMs,
      );
      wire.play = play;
      play.begin();
      return;
    }
    case 'wipe':
      if (!spared(world, node!)) return;
      node!.memory++;
      node!.server.wipe();
      return;
  }
}

function idsOf(configuration: Configuration | null): string {
  return configuration?.members.map(({ id }) => id).join(' ') ?? '';
}

function homeOf(world: Faulty, id: string): SimNode {
  return world.nodes.find((one) => one.id === id)!;
}

/** One of the servers that answer for the id. */
function serverOf(world: Faulty, id: string): SimNode | undefined {
  return world.servers.isContested(id) ? world.prng.pick(world.servers.of(id)) : homeOf(world, id);
}

/**
 * Frees locks that live too long. Such a lock was set while its server's clock was ahead: once the clock is right, the
 * lock lives for hours. An operator who sees LOCK_STUCK runs `seq stepdown --revoke`.
 */
function freeStuckLocks(world: Faulty): void {
  if (areLocksStuck(world) && !world.operators.some((one) => one.revokes))
    new Operator(world, `op${world.operators.length + 1}`, { verb: 'revoke' });
}

/**
 * Whether another server may answer for this node now. It may take the node's vote, so it counts as a loss of memory.
 * It does not happen while an operator is at work, or after healing.
 */
function mayBeContested(world: Faulty, home: SimNode): boolean {
  const busy = world.operators.some((one) => !one.done) || world.wire.history.healedAt > 0;
  if (busy) world.note(`${home.id} stays where it is: an operator is at work`);
  return !busy && spared(world, home);
}

/** `there` = null: back to the server that operators know for the node. */
function leadTo(world: Faulty, who: SimProcess, id: string, there: SimNode | null, kept: boolean): void {
  if (there === null) who.elsewhere.delete(id);
  else who.elsewhere.set(id, there);
  who.links.find((link) => link.node.id === id)!.moveTo(there ?? homeOf(world, id), kept);
}

/**
 * The old server of a replaced node keeps running. If an operator said that it is gone, it may come back as it was. If
 * it was retired, it may lose all its memory, and then it does not know that it is retired.
 */
function oldServerMayReturn(world: Faulty, old: SimNode, gone: boolean): void {
  const { clock, prng, note } = world;
  if (!prng.chance(0.7)) return;
  clock.after(prng.between(0, 10_000), () => {
    const retired = old.server.state.record?.cluster.startsWith('retired:') === true;
    if (gone) {
      old.down = false;
      const kept = prng.pick(['everything', 'all', 'none'] as const);
      if (kept !== 'everything') old.server.restart(kept);
      note(`${old.url}, said to be gone, is back`);
    } else if (retired) {
      old.server.wipe();
      note(`${old.url} forgets that it is retired`);
    }
  });
}

/**
 * Whether the node may lose its memory. Below q nodes with intact memory, nothing automatic is safe (docs/PROTOCOL.md
 * section 8). A node that is about to be retired does not count among the q.
 */
function spared(world: Faulty, node: SimNode): boolean {
  const { operators, nodes } = world;
  const { enough, others } = world.servers.survives(nodes, node.id, {
    lost: nodes.flatMap(({ id }) => (operators.some((operator) => operator.replaces(id)) ? [id] : [])),
    leaving: nodes.flatMap(({ id }) => (operators.some((operator) => operator.resizes(id, 'remove')) ? [id] : [])),
    joining: nodes.flatMap((one) =>
      one.intact && operators.some((operator) => operator.resizes(one.id, 'add')) ? [one.id] : [],
    ),
  });
  if (!enough) world.note(`${node.id} is spared: only ${others} others remember`);
  return enough;
}

function operator(world: Faulty, node: SimNode, call: NodeCall): void {
  const cluster = node.server.state.record?.cluster ?? world.wire.identity.cluster;
  node.run(
    () =>
      void runOn(world.wire, node, call, false, {
        ...world.wire.identity,
        cluster: cluster.startsWith('retired:') ? world.wire.identity.cluster : cluster,
      }),
  );
}

function linksOf(world: Faulty, process: string, node: string): Link[] {
  return named(world, process).flatMap((one) => one.links.filter((link) => node === '*' || link.node.id === node));
}

/**
 * '@leader': whoever leads when the fault begins (the first process if nobody leads). '@others': all others. '*': all.
 */
function named(world: Faulty, process: string): SimProcess[] {
  const { processes } = world;
  if (process === '*') return processes;
  if (!process.startsWith('@')) return processes.filter((one) => one.id === process);
  const leader = processes.find((one) => one.sequencer?.status().role === 'leader') ?? processes[0]!;
  return process === '@leader' ? [leader] : processes.filter((one) => one !== leader);
}

function until(world: Faulty, ms: number, end: () => void): void {
  let ended = false;
  const once = (): void => {
    if (ended) return;
    ended = true;
    end();
  };
  world.ends.push(once);
  world.clock.after(ms, once);
}

/** The fault as one line for people. */
function describeFault(fault: Fault): string {
  const where = (process: string, node: string): string =>
    `${process === '*' ? 'every sequencer' : process} – ${node === '*' ? 'every node' : node}`;
  switch (fault.kind) {
    case 'cut':
      return (
        `cut ${where(fault.process, fault.node)} (${fault.direction}) for ${fault.forMs} ` +
        `ms${fault.late ? ', what was sent arrives afterwards' : ''}`
      );
    case 'silent':
      return `${fault.node} answers nothing for ${fault.forMs} ms, then runs what it took in`;
    case 'slow':
      return `${where(fault.process, fault.node)} slower by ${fault.ms} ms each way for ${fault.forMs} ms`;
    case 'noise':
      return (
        `noise for ${fault.forMs} ms: ${pct(fault.drop)} requests and ${pct(fault.lost)} replies lost, ` +
        `${pct(fault.twice)} sent twice up to ${fault.lateMs} ms later, delays up to ${fault.delayMs} ms`
      );
    case 'pause':
      return `${fault.process} is paused for ${fault.forMs} ms`;
    case 'crash':
      return (
        `${fault.process} dies at its ${fault.afterCalls}. call from now, back ${fault.downMs} ms ` +
        `later${fault.store === 'empty' ? ' with an empty store' : ''}`
      );
    case 'stop':
      return `${fault.process} is asked to stop, back ${fault.downMs} ms later`;
    case 'disk':
      return `the disk of ${fault.process} takes ${fault.syncMs} ms a sync for ${fault.forMs} ms`;
    case 'jump':
      return `the clock of ${fault.node} jumps by ${fault.ms} ms`;
    case 'wall':
      return `the wall clock of ${fault.process} jumps by ${fault.ms} ms`;
    case 'corrupt':
      return `an entry of ${fault.node}, ${fault.below} below its head, is damaged`;
    case 'hold':
      return `hold on all nodes, cleared after ${fault.clearMs} ms`;
    case 'stepdown':
      return `the leader is asked to step down${fault.to ? ` in favour of ${fault.to}` : ''}`;
    case 'raise':
      return (
        `the epoch of ${fault.node} is raised by ` + `${fault.by}${fault.ofHolder ? ' for the holder of its lock' : ''}`
      );
    case 'revoke':
      return `the lock on ${fault.node === '*' ? 'every node' : fault.node} is released by an operator`;
    case 'restart':
      return (
        `${fault.node} restarts (keeps ` +
        `${typeof fault.keep === 'number' ? `all but ${fault.keep} entries` : fault.keep}), down for ` +
        `${fault.downMs} ms`
      );
    case 'wipe':
      return `${fault.node} is flushed`;
    case 'repair':
      return 'an operator repairs';
    case 'replace':
      return `an operator puts another server in the place of ${fault.node}${fault.gone ? ', which is gone' : ''}`;
    case 'power':
      return (
        `power is cut for ${fault.downMs} ms${fault.lose > 0 ? ', some forget' : ''}; an operator ` +
        `recovers ${fault.recoverAfterMs} ms later`
      );
    case 'redirect':
      return (
        `${where(fault.process, fault.node)} leads to another server (${fault.to}) for ${fault.forMs} ms` +
        `${fault.kept ? ', open connections stay' : ''}`
      );
    case 'cut-on-begin':
      return `whoever begins to admit another server as ${fault.node} is cut from ${fault.others.join(', ')} at once`;
    case 'resize':
      return `an operator ${fault.change === 'add' ? 'adds' : 'removes'} ${fault.node}`;
    case 'cut-on-note':
      return (
        'whoever lets a node note other members ' +
        (fault.dies ? 'dies at once' : `is cut from ${fault.others.join(', ')} at once`)
      );
    case 'edit-context':
      return (
        `${fault.process} starts with an edited list for ${fault.forMs} ms: ` +
        `${fault.list === 'more' ? `two strangers${fault.raced ? ', unnoticed' : ''}` : fault.list === 'part' ? `${fault.node} only` : `another server (${fault.to}) for ${fault.node}`}`
      );
    case 'clock-lie':
      return (
        `the clock of ${fault.whose} is ${fault.ms / 3_600_000} h off ` +
        `${fault.forMs === Infinity ? 'for good' : `for ${fault.forMs} ms`}`
      );
    case 'rewind':
      return `${fault.node} is copied, to become that copy again ${fault.ageMs} ms later`;
    case 'acts':
      return `a play in ${fault.acts.length} acts`;
  }
}

function pct(share: number): string {
  return `${Math.round(share * 100)} %`;
}
