import { CheckCommand, CHECK_FLAGS, NODES_FLAGS } from '../../cli/command/check-command.js';

export default class CheckNodes extends CheckCommand {
  static override summary = 'Does every node answer, and is it admitted and in order';
  static override description =
    "Exits 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN. -o nagios is a plugin's line with perfdata, -o " +
    'prometheus text for a collector.';
  static override examples = [
    '<%= config.bin %> check nodes -o nagios',
    '<%= config.bin %> check nodes -o json --timeout 3s',
  ];
  static override flags = { ...CHECK_FLAGS, ...NODES_FLAGS };
  protected readonly what = 'nodes';
}
