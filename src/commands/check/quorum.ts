import { CheckCommand, CHECK_FLAGS, MARGIN_FLAGS } from '../../cli/command/check-command.js';

export default class CheckQuorum extends CheckCommand {
  static override summary = 'Can enough nodes vote, and how many more may be lost';
  static override description =
    "Exits 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN. -o nagios is a plugin's line with perfdata, -o " +
    'prometheus text for a collector.';
  static override examples = [
    '<%= config.bin %> check quorum -o nagios',
    '<%= config.bin %> check quorum -o json --timeout 3s',
  ];
  static override flags = { ...CHECK_FLAGS, ...MARGIN_FLAGS };
  protected readonly what = 'quorum';
}
