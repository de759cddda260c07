// An export → Result. Pure. The names in `data` are a contract (schemas/stream.export.json).
import type { Exported } from '../../core/bundle/export.js';
import type { Result } from './result.js';
import { rangeData } from './range.js';

export function exportResult(
  { view, range, nodes }: Exported,
  file: { path: string; bytes: number; sha256: string; payloads: boolean },
): Result {
  const next = [`seq status --from-bundle ${file.path}`, `seq stream verify --from-bundle ${file.path}`];
  const silent = nodes.filter((node) => !node.answered);
  return {
    data: {
      ...file,
      cluster: view.cluster,
      range: rangeData(range),
      nodes,
      then: { verdict: view.verdict, reason: view.reason, reasonCode: view.reasonCode },
      next,
    },
    facts: [
      ['written', file.path],
      ['size', `${file.bytes} bytes`],
      ['sha256', file.sha256],
      ['heights', range === null ? 'none' : `${range.from} to ${range.to}`],
      ['payloads', file.payloads ? 'in it' : 'left out'],
      ['cluster then', `${view.verdict}: ${view.reason}`],
    ],
    tables: [
      {
        columns: [
          { key: 'node' },
          { key: 'answered' },
          { key: 'copies', align: 'right' },
          { key: 'damaged', align: 'right' },
        ],
        rows: nodes.map((node) => ({
          node: node.id,
          answered: node.answered ? 'yes' : 'no',
          copies: node.copies,
          damaged: node.damaged,
        })),
      },
    ],
    items: nodes,
    next,
    warnings: silent.map(({ id }) => `${id} did not answer: the bundle says so, and nothing else of it`),
    meta: { nodesAsked: view.configured, nodesAnswered: view.answered, quorum: view.quorum },
  };
}
