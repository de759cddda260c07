import {
  CheckCommand,
  CHECK_FLAGS,
  DEPTH_FLAGS,
  LAG_FLAGS,
  MARGIN_FLAGS,
  NODES_FLAGS,
} from '../../cli/command/check-command.js';

export default class CheckAll extends CheckCommand {
  static override summary = 'All checks at once; the worst one decides';
  static override description =
    "Exits 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN. -o nagios is a plugin's line with perfdata, -o " +
    'prometheus text for a collector.';
  static override examples = [
    '<%= config.bin %> check all -o nagios',
    '<%= config.bin %> check all -o json --timeout 3s',
  ];
  static override flags = { ...CHECK_FLAGS, ...DEPTH_FLAGS, ...LAG_FLAGS, ...MARGIN_FLAGS, ...NODES_FLAGS };
  protected readonly what = 'all';
}
