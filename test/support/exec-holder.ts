// A process that runs an exec child until it is killed. It reports on stdout when the child is ready. Arguments: the command.
import { systemClock } from '../../src/core/nodes/system-clock.js';
import { execProducer } from '../../src/core/produce/exec.js';

const [command, ...args] = process.argv.slice(2) as [string, ...string[]];
const producer = execProducer({
  command,
  args,
  clock: systemClock,
  chain: { head: () => ({ height: 0 }), get: () => undefined },
  maxBlockBytes: 4096,
  log: () => undefined,
});
setInterval(() => {
  if (producer.ready().ready) process.stdout.write('ready\n');
}, 20);
