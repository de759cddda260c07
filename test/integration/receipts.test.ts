// A receipt is a fencing token (docs/HTTP.md): whoever answers, the epoch of a later answer is not lower. Over HTTP, on
// real servers and processes.
import { expect, test } from 'vitest';
import { endAllAfterEach, initialise, redis, start, until } from '../support/live-sequencers.js';

endAllAfterEach();

test('a repeated key is answered by the next leader, and by the one after it → its epoch only grows', async () => {
  const nodes = { r1: await redis(), r2: await redis(), r3: await redis() };
  await initialise(nodes);
  const a = await start('a', nodes);
  await until('a to lead', a.leads);
  const first = await until('the first receipt', () => a.submit('paid once'));
  const b = await start('b', nodes);
  const c = await start('c', nodes);
  await until('b to have the block', () => b.block(first.height));
  a.child.kill('SIGKILL');
  const leader = await until('b or c to lead', async () => ((await b.leads()) ? b : (await c.leads()) ? c : undefined));
  const second = await until('the second receipt', () => leader.submit('paid once'));
  leader.child.kill('SIGKILL');
  const last = leader === b ? c : b;
  await until('the last one to lead', last.leads);
  const third = await until('the third receipt', () => last.submit('paid once'));
  expect([second, third].map(({ height, index }) => ({ height, index }))).toEqual(
    [first, first].map(({ height, index }) => ({ height, index })),
  );
  const epochs = [first, second, third].map(({ epoch }) => epoch);
  expect(epochs).toEqual([...epochs].sort((x, y) => x - y));
  expect(new Set(epochs).size, 'three leaders').toBe(3);
}, 180_000);
