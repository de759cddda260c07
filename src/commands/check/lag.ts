import { CheckCommand, CHECK_FLAGS, LAG_FLAGS } from '../../cli/command/check-command.js';

export default class CheckLag extends CheckCommand {
  static override summary = 'Is a node or a sequencer behind the committed height';
  static override description =
    "Exits 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN. -o nagios is a plugin's line with perfdata, -o " +
    'prometheus text for a collector.';
  static override examples = [
    '<%= config.bin %> check lag -o nagios',
    '<%= config.bin %> check lag -o json --timeout 3s',
  ];
  static override flags = { ...CHECK_FLAGS, ...LAG_FLAGS };
  protected readonly what = 'lag';
}
