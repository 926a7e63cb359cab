import { ConfigError } from '../../http/config';
import { type Following, followFiles } from '../../http/watched-file';

interface FleetSecretOptions extends Omit<Following, 'clock'> {
  /** The path of the file. */
  readonly file: string;
  /** Called with the secrets of a changed file. */
  readonly onChange: (secrets: readonly string[]) => void;
}

const VARIABLE = 'PACKAGERDRMAPI_FLEET_SECRET_FILE';
const MAX_SECRETS = 10;
const MIN_CHARACTERS = 32;
const MAX_CHARACTERS = 1000;

/**
 * Reads the file of the fleet's secrets, and again when it changes. A file that can't be used while the service runs is
 * logged, and the secrets stay.
 * @throws ConfigError when it can't be used at the start.
 */
export function openFleetSecret({ file, log, intervalMs, onChange }: FleetSecretOptions) {
  let secrets: readonly string[] = [];
  let isOpen = false;
  const take = ([bytes = Buffer.alloc(0)]: readonly Buffer[]) => {
    const read = parseSecrets(bytes);
    const isChange = isOpen && read.join('\n') !== secrets.join('\n');
    secrets = read;
    log.info('fleet secret read', { file, count: read.length });
    if (isChange) onChange(read);
  };
  const { close } = followFiles([[VARIABLE, file]], {
    log,
    intervalMs,
    message: 'the file of the fleet secret cannot be used; the previous secrets stay in use',
    fields: { file },
    openMessage: 'every user of this machine can read the secret of the fleet',
    take,
  });
  isOpen = true;
  /** Those in force: the first seals, all open. */
  return { secrets: () => secrets, close };
}

/** @throws ConfigError with every fault at once; none quotes a secret. */
function parseSecrets(bytes: Buffer): readonly string[] {
  const lines = bytes
    .toString('utf8')
    .replace(/^\ufeff/, '')
    .split(/\r\n|\r|\n/)
    .map((text, index) => ({ text, number: index + 1 }))
    .filter(({ text }) => text.trim() !== '' && !text.startsWith('#'));
  const faults = lines.flatMap(({ text, number }, index) => {
    const first = lines.slice(0, index).find((other) => other.text === text);
    const why = first ? `is the same secret as line ${first.number}` : secretFault(text);
    return why === undefined ? [] : [`line ${number}: ${why}`];
  });
  if (lines.length === 0)
    faults.push('holds no secret: write one on each line, the same for all sidecars: openssl rand -hex 32');
  if (lines.length > MAX_SECRETS)
    faults.push(`holds ${lines.length} secrets; ${MAX_SECRETS} are allowed: remove the old ones`);
  if (faults.length > 0) throw new ConfigError(faults);
  return lines.map(({ text }) => text);
}

function secretFault(text: string): string | undefined {
  if (!/^[\x21-\x7e]*$/.test(text)) return 'must be printable ASCII without spaces';
  if (text.length < MIN_CHARACTERS)
    return `must have at least ${MIN_CHARACTERS} characters: openssl rand -hex 32`;
  if (text.length > MAX_CHARACTERS) return `must have at most ${MAX_CHARACTERS} characters`;
  return undefined;
}
