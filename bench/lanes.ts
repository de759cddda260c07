// Many lanes on the same three servers: what does a lane cost when there are a thousand? Lanes take turns, one commit
// each. Three other cases are measured in the same rounds. First, as many lanes on servers of their own: their sum is
// the goal. Second, one lane that has the servers to itself. Third, bare SETs by as many connections to as many keys:
// the price that a server and a processor pay for many rarely used things, whoever uses them. One process leads all
// lanes, without the engine. The cost of a sequencer process, once per lane, is in `startup` (`seq run`, idle).
import { Connection, send } from '../src/core/redis/connection.js';
import { parseNodeUrl } from '../src/core/redis/url.js';
import { nowAndThen } from './harness/progress.js';
import { rowOf, spread, type Spread } from './harness/statistics.js';
import { atMost, type Bench } from './harness/words.js';
import { Lane, Servers, someOf } from './support/lane.js';

const KB = 1024;
const RETAINED = 10;
/** Most lanes with three servers each. More processes than this show nothing new. */
const SEPARATE = 100;
const STARTED_AT_ONCE = 25;
const LIMIT_MS = 10_000;
const IDLE_MS = 1000;

interface Side {
  name: string;
  /** How many lanes, or connections, take turns. */
  count: number;
  /** Operations in a row before the next lane's turn. */
  stay: number;
  servers: readonly Servers[];
  work(at: number): Promise<void>;
}

/** Per round: the ms of each operation, and the µs that the processors of all its servers spend on one. */
interface Taken {
  ms: number[][];
  cpuUs: number[];
}

export const bench: Bench = {
  title: '1, 10, 100, 1,000 lanes on the same three servers, against lanes on servers of their own',
  limitS: 90,
  fullLimitS: 400,
  async run(on) {
    const counts = on.pick([1, 10, 100, 1000], [1, 10, 100]);
    const [rounds, perRound] = [on.pick(20, 8), on.pick(500, 200)];
    const data = Buffer.alloc(KB, 7);
    const lanes: Lane[] = [];
    const alone: { servers: Servers; lane: Lane }[] = [];
    const bare: Connection[][] = [];
    const shared = await Servers.start(3, 'none', ['--maxclients', '20000']);
    try {
      const before = await memoryMb(shared);
      while (lanes.length < counts.at(-1)!) {
        lanes.push(
          ...(await Promise.all(
            upTo(Math.min(50, counts.at(-1)! - lanes.length), (at) =>
              new Lane(shared, `lane-${lanes.length + at}`, RETAINED, data).begin(),
            ),
          )),
        );
        if (lanes.length % 250 === 0) on.say(`${lanes.length} lanes begun`);
      }
      const perLaneKb = (((await memoryMb(shared)) - before) / lanes.length) * KB;
      while (alone.length < SEPARATE) {
        alone.push(
          ...(await Promise.all(
            upTo(STARTED_AT_ONCE, async () => {
              const servers = await Servers.start(3, 'none');
              return { servers, lane: await new Lane(servers, '', RETAINED, data).begin() };
            }),
          )),
        );
        on.say(`${alone.length} lanes begun on three servers each`);
      }
      bare.push(
        ...upTo(counts.at(-1)!, () => shared.all.map(({ url }) => new Connection({ address: parseNodeUrl(url) }))),
      );

      const lanesOf = (count: number, stay = 1): Side => ({
        name: `${many(count, 'lane')}${stay === 1 ? '' : `, ${stay} commits on each`}`,
        count,
        stay,
        servers: [shared],
        work: (at) => lanes[at]!.commit(),
      });
      const separate = (count: number): Side => ({
        name: `${many(count, 'lane')} on servers of their own`,
        count,
        stay: 1,
        servers: alone.slice(0, count).map(({ servers }) => servers),
        work: (at) => alone[at]!.lane.commit(),
      });
      const sets = (count: number): Side => ({
        name: `SET, ${many(count, 'connection')} and ${count === 1 ? 'key' : 'keys'}`,
        count,
        stay: 1,
        servers: [shared],
        work: (at) => set(bare[at]!, shared.quorum, `bare-${at}`, data),
      });
      const sides = [
        ...counts.map((count) => lanesOf(count)),
        lanesOf(100, 10),
        separate(10),
        separate(SEPARATE),
        ...counts.map(sets),
      ];
      const taken = await inTurns(sides, rounds, perRound, nowAndThen(on.say));

      const of = (side: Side): Taken => taken.get(side.name)!;
      on.table({
        title: 'Each in turn, 1 KB',
        unit: 'ms',
        rows: sides.map((side) =>
          rowOf(
            side.name,
            of(side).ms,
            of(side)
              .ms.flat()
              .reduce((sum, ms) => sum + ms, 0) / 1000,
          ),
        ),
      });
      on.table({
        title: 'Processor time of its servers together, each time',
        unit: 'µs',
        rows: sides.map((side) =>
          rowOf(
            side.name,
            of(side).cpuUs.map((us) => [us]),
            0,
          ),
        ),
      });
      const p50 = (a: Side, b: Side): Spread =>
        spread(of(a).ms.map((round, at) => rowOf('', [of(b).ms[at]!], 0).p50 / rowOf('', [round], 0).p50));
      const cpu = (a: Side, b: Side): Spread => spread(of(a).cpuUs.map((us, at) => of(b).cpuUs[at]! / us));
      for (const count of counts.slice(1)) {
        const apart = separate(Math.min(count, SEPARATE));
        on.ratio({
          id: `lanes.${count}.separate.p50`,
          what: `p50 of a commit, ${many(count, 'lane')} on the same three servers over ${apart.name}`,
          ...p50(apart, lanesOf(count)),
          goal: atMost(1.2),
          fullOnly: count > 100,
        });
        on.ratio({
          id: `lanes.${count}.separate.cpu`,
          what: `servers' processor time a commit, likewise`,
          ...cpu(apart, lanesOf(count)),
          goal: atMost(1.2),
          tolerance: 0.6,
          fullOnly: count > 100,
        });
      }
      for (const count of counts.filter((one) => one >= 100)) {
        on.ratio({
          id: `lanes.${count}.p50`,
          what: `p50 of a commit with ${many(count, 'lane')} in turn over 1 lane all the time`,
          ...p50(lanesOf(1), lanesOf(count)),
          goal: null,
          fullOnly: count > 100,
        });
        on.ratio({
          id: `lanes.${count}.cpu`,
          what: `servers' processor time a commit, likewise`,
          ...cpu(lanesOf(1), lanesOf(count)),
          goal: null,
          tolerance: 0.6,
          fullOnly: count > 100,
        });
        on.figure({
          what: `p50 of a SET by ${many(count, 'connection')} in turn over 1 connection all the time`,
          value: p50(sets(1), sets(count)).value,
          unit: '×',
        });
        on.figure({
          what: `servers' processor time a SET, likewise`,
          value: cpu(sets(1), sets(count)).value,
          unit: '×',
        });
      }
      on.figure({
        what: `memory a lane takes on a server, ${RETAINED} blocks of 1 KB retained, connections included`,
        value: perLaneKb,
        unit: 'KB',
      });
      on.note(
        `The goal compares two lanes: one among others on the same three servers, and one that has three ` +
          `servers to itself and is written to as rarely. ${SEPARATE} such lanes, ${SEPARATE * 3} servers, ` +
          `take turns as the others do. What servers do by themselves is measured while nobody asks, and ` +
          `left out.`,
      );
      on.note(
        'Lanes in turn cost more than 1 lane all the time. What one lane touches (its connection, its ' +
          "keys, the end of its stream) stays in the processor's nearest cache from commit to commit. What " +
          'a hundred lanes touch does not. Ten commits in a row on each lane cost what one lane does. Bare ' +
          'SETs by as many connections show it as well (the figures beside it). Lanes with servers to ' +
          'themselves pay for it too, and on one machine for the change of process.',
      );
    } finally {
      for (const connections of bare) for (const connection of connections) connection.close();
      await Promise.all([...lanes, ...alone.map(({ lane }) => lane)].map((lane) => lane.close()));
      await Promise.all([shared, ...alone.map(({ servers }) => servers)].map((servers) => servers.stop()));
    }
  },
};

/**
 * Runs rounds of all sides. The order changes each time, so that all sides meet the same machine. The first round warms
 * everything up.
 */
async function inTurns(
  sides: readonly Side[],
  rounds: number,
  perRound: number,
  say: (text: string) => void,
): Promise<Map<string, Taken>> {
  const taken = new Map<string, Taken>(sides.map(({ name }) => [name, { ms: [], cpuUs: [] }]));
  const idle = new Map<string, number>();
  for (const { name, servers } of sides) idle.set(name, await idleUsPerMs(servers));
  for (let round = -1; round < rounds; round += 1) {
    for (const { name, count, stay, servers, work } of round % 2 === 0 ? sides : [...sides].reverse()) {
      const operations = Math.max(perRound, round < 0 ? count * 2 : 0);
      const ms: number[] = [];
      // Asking has a cost too. So the same question is asked twice before and once after.
      const [first, second, startedAt] = [await processorUs(servers), await processorUs(servers), performance.now()];
      for (let i = 0; i < operations; i += 1) {
        // Spreads evenly over the whole set, wherever the last round stopped.
        const which = Math.floor(((round + 1) * operations + i) / stay) % count;
        const at = performance.now();
        await work(which);
        ms.push(performance.now() - at);
      }
      const tookMs = performance.now() - startedAt;
      say(`${name}: round ${round + 2} of ${rounds + 1}`);
      const spentUs = (await processorUs(servers)) - second - (second - first);
      if (round < 0) continue;
      const mine = taken.get(name)!;
      mine.ms.push(ms);
      mine.cpuUs.push((spentUs - idle.get(name)! * tookMs) / operations);
    }
  }
  return taken;
}

async function set(connections: readonly Connection[], quorum: number, key: string, data: Buffer): Promise<void> {
  await someOf(
    connections.map(async (connection) => {
      const answer = await connection.run(LIMIT_MS, (client) => send(client, 'set', [key, data]));
      if (!answer.answered) throw new Error(`SET: ${JSON.stringify(answer.reply)}`);
    }),
    quorum,
  );
}

async function processorUs(servers: readonly Servers[]): Promise<number> {
  const spent = await Promise.all(servers.map((one) => one.processorSeconds()));
  return spent.reduce((sum, one) => sum + one, 0) * 1e6;
}

async function idleUsPerMs(servers: readonly Servers[]): Promise<number> {
  const [first, second] = [await processorUs(servers), await processorUs(servers)];
  const startedAt = performance.now();
  await new Promise((done) => setTimeout(done, IDLE_MS));
  const us = (await processorUs(servers)) - second - (second - first);
  return Math.max(0, us) / (performance.now() - startedAt);
}

async function memoryMb(servers: Servers): Promise<number> {
  return (await servers.info('used_memory')).reduce((sum, one) => sum + one, 0) / servers.all.length / KB / KB;
}

function upTo<T>(count: number, make: (at: number) => T): T[] {
  return Array.from({ length: count }, (_, at) => make(at));
}

function many(count: number, what: string): string {
  return `${count.toLocaleString('en-US')} ${what}${count === 1 ? '' : 's'}`;
}
