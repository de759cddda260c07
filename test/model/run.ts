// The program behind `npm run model [-- --short] [-- <config name>…]`. It explores the configurations one after the
// other and prints what it found. The last line is `<n> states`.
import { EXHAUSTIVE, PROCESSES, SHORT } from './configs.js';
import { explore, minimised, narrate, textOf } from './explore.js';
import { exploreProcesses } from './processes.js';

const args = process.argv.slice(2);
const short = args.includes('--short');
const wanted = args.filter((arg) => !arg.startsWith('--'));
const chosen = [...(short ? SHORT : EXHAUSTIVE)].filter(({ cfg }) => wanted.length === 0 || wanted.includes(cfg.name));
let total = 0;
for (const { cfg, limits, bounded } of chosen) {
  const started = Date.now();
  const result = explore(cfg, {
    ...limits,
    progress: (states, moves, stack) => {
      const s = (Date.now() - started) / 1000;
      process.stdout.write(
        `  ${cfg.name}: ${states} states, ${moves} moves, ${Math.round(states / s)} states/s, stack ` +
          `${stack}, ${Math.round(process.memoryUsage().rss / 2 ** 20)} MiB\n`,
      );
    },
  });
  total += result.states;
  const s = ((Date.now() - started) / 1000).toFixed(1);
  process.stdout.write(
    `${cfg.name}: ${result.states} states ${result.complete ? '(all)' : '(not all)'}, ` +
      `${result.moves} moves, deepest ${result.deepest}, ` +
      `${result.livenessChecks} liveness runs, ${s} s; N=${cfg.nodes} terms=${cfg.terms} ` +
      `heights=${cfg.heights} twins=${cfg.twins} lists=${cfg.otherLists ? 'any' : 'one'} resizes=${cfg.resizes} wipes=${cfg.wipes} damages=${cfg.damages} ` +
      `repairs=${cfg.repairs} fixes=${cfg.fixes} window=${cfg.window} rollbacks=${cfg.rollbacks} ` +
      `expiries=${cfg.expiries} raises=${cfg.raises} strays=${cfg.strays} ` +
      `giveUps=${cfg.giveUps}${bounded ? `; bounded: ${bounded}` : ''}\n`,
  );
  if (result.finding) {
    const shortest = minimised(cfg, result.finding);
    process.stdout.write(
      `VIOLATION in ${cfg.name}\n${narrate(cfg, shortest)}\n\n${textOf(shortest.trace)}\n${total} states\n`,
    );
    process.exit(1);
  }
}
for (const { name, cfg, bounded } of short
  ? []
  : PROCESSES.filter((one) => wanted.length === 0 || wanted.includes(one.name))) {
  const started = Date.now();
  const { states, moves, why, trace } = await exploreProcesses(cfg, {
    progress: (seen, made) => process.stdout.write(`  ${name}: ${seen} states, ${made} moves\n`),
  });
  total += states;
  process.stdout.write(
    `${name}: ${states} states (all), ${moves} moves, ${((Date.now() - started) / 1000).toFixed(1)} ` +
      `s; bounded: ${bounded}\n`,
  );
  if (why !== '') {
    process.stdout.write(`VIOLATION in ${name}: ${why}\n${trace.join('\n')}\n${total} states\n`);
    process.exit(1);
  }
}
process.stdout.write(`${total} states\n`);
