// Many lanes on the same three servers: does a lane cost the same when there are a thousand? Commits go round the lanes; what is compared is one
// commit with 1 lane open and with 10, 100, 1,000: its latency, what the servers' processors spend on it, and the memory a lane takes.
// What a change of lane costs is told from what their number costs by a row that commits ten times on a lane before it goes to the next.
// One process leads them all, without the engine: what a sequencer process costs is in `startup` (`seq run`, idle), once per lane.
import { rowOf, spread } from './harness/statistics.js';
import { atMost, type Bench } from './harness/words.js';
import { Lane, Servers } from './support/lane.js';

const KB = 1024;
const RETAINED = 10;

export const bench: Bench = {
  title: '1, 10, 100, 1,000 lanes on the same three servers',
  limitS: 60,
  async run(on) {
    const counts = on.pick([1, 10, 100, 1000], [1, 10, 100]);
    const servers = await Servers.start(3, 'none', ['--maxclients', '20000']);
    const data = Buffer.alloc(KB, 7);
    const lanes: Lane[] = [];
    const [rounds, perRound] = [on.pick(20, 8), on.pick(200, 100)];
    /** Rows of the tables: so many lanes, so many commits in a row on each. */
    const sides = [...counts.map((count) => ({ count, stay: 1 })), { count: 100, stay: 10 }];
    const keyOf = (count: number, stay = 1): string => `${count}/${stay}`;
    const samples = new Map<string, number[][]>();
    const busy = new Map<string, number[]>();
    const spent = async (): Promise<number> => {
      const [user, system] = [await servers.info('used_cpu_user'), await servers.info('used_cpu_sys')];
      return [...user, ...system].reduce((sum, one) => sum + one, 0) * 1e6;
    };
    const memoryMb = async (): Promise<number> => (await servers.info('used_memory')).reduce((sum, one) => sum + one, 0) / 3 / KB / KB;
    try {
      const before = await memoryMb();
      while (lanes.length < counts.at(-1)!) {
        const more = Math.min(50, counts.at(-1)! - lanes.length);
        lanes.push(...await Promise.all(Array.from({ length: more }, (_, at) => new Lane(servers, `lane-${lanes.length + at}`, RETAINED, data).begin())));
        if (lanes.length % 250 === 0) on.say(`${lanes.length} lanes begun`);
      }
      const perLaneKb = ((await memoryMb() - before) / lanes.length) * KB;
      // The first round warms every lane up; sets of lanes in turn, so that all of them meet the same machine.
      for (let round = -1; round < rounds; round += 1) {
        for (const { count, stay } of round % 2 === 0 ? sides : [...sides].reverse()) {
          const mine: number[] = [];
          const cpuBefore = await spent();
          const commits = Math.max(perRound, round < 0 ? count : 0);
          for (let i = 0; i < commits; i += 1) {
            // Evenly over the whole set, wherever the last round stopped.
            const lane = lanes[Math.floor(((round + 1) * commits + i) / stay) % count]!;
            const at = performance.now();
            await lane.commit();
            mine.push(performance.now() - at);
          }
          const cpuUs = (await spent() - cpuBefore) / commits;
          if (round < 0) continue;
          const key = keyOf(count, stay);
          samples.set(key, [...(samples.get(key) ?? []), mine]);
          busy.set(key, [...(busy.get(key) ?? []), cpuUs]);
        }
      }
      const name = (count: number): string => `${count.toLocaleString('en-US')} ${count === 1 ? 'lane' : 'lanes'}`;
      const rows = sides.map(({ count, stay }) => ({ label: stay === 1 ? name(count) : `${name(count)}, ${stay} commits on each`, rounds: samples.get(keyOf(count, stay))!, cpu: busy.get(keyOf(count, stay))! }));
      on.table({ title: 'A commit of 1 KB, lanes in turn', unit: 'ms', rows: rows.map(({ label, rounds: own }) => rowOf(label, own, own.flat().reduce((sum, ms) => sum + ms, 0) / 1000)) });
      on.table({ title: 'Processor time of the three servers together, a commit', unit: 'µs', rows: rows.map(({ label, cpu }) => rowOf(label, cpu.map((us) => [us]), 0)) });
      const overOne = (count: number, of: typeof busy | null) => spread((of === null ? samples.get(keyOf(count))! : of.get(keyOf(count))!.map((us) => [us])).map((round, at) => {
        const one = of === null ? samples.get(keyOf(1))![at]! : [of.get(keyOf(1))![at]!];
        return rowOf('', [round], 0).p50 / rowOf('', [one], 0).p50;
      }));
      for (const count of counts.filter((many) => many >= 100)) {
        on.ratio({ id: `lanes.${count}.p50`, what: `p50 of a commit with ${name(count)} over 1 lane`, ...overOne(count, null), goal: atMost(1.2) });
        on.ratio({ id: `lanes.${count}.cpu`, what: `servers' processor time a commit with ${name(count)} over 1 lane`, ...overOne(count, busy), goal: atMost(1.2), tolerance: 0.6 });
      }
      on.figure({ what: `memory a lane takes on a server, ${RETAINED} blocks of 1 KB retained, connections included`, value: perLaneKb, unit: 'KB' });
    } finally {
      await Promise.all(lanes.map((lane) => lane.close()));
      await servers.stop();
    }
  },
};
