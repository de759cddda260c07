import { CheckCommand, CHECK_FLAGS } from '../../cli/command/check-command.js';

export default class CheckEpoch extends CheckCommand {
  static override summary = "Do the nodes' epochs agree with the leader's";
  static override description =
    "Exits 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN. -o nagios is a plugin's line with perfdata, -o " +
    'prometheus text for a collector.';
  static override examples = [
    '<%= config.bin %> check epoch -o nagios',
    '<%= config.bin %> check epoch -o json --timeout 3s',
  ];
  static override flags = { ...CHECK_FLAGS };
  protected readonly what = 'epoch';
}
