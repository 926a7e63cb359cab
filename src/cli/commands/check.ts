import type { CheckedInput } from '../../drm/check/check';
import { compareInputs, withoutAnswered } from '../../drm/check/compare';
import type { Output } from '../../terminal/output';
import { columns, count, shown } from '../../terminal/text';
import { EXIT } from '../cli-error';
import type { CliContext } from '../context';
import { checkGiven, type FoundInput } from './check-inputs';

export interface CheckOptions {
  readonly reveal?: boolean;
  readonly stream?: readonly string[];
}

/** `check`: decodes key material on this machine, names every fault with what to do, and holds inputs against each other. */
export async function check(
  context: CliContext,
  inputs: readonly string[],
  { reveal = false, stream = [] }: CheckOptions,
): Promise<void> {
  const found = withoutAnswered(await checkGiven(context, { inputs, streams: stream, reveal }));
  const [only] = found;
  const isOne = found.length === 1 && only !== undefined && !only.isOfFolder;
  const compared = isOne ? { compared: [], faults: [] } : compareInputs(found, { reveal });
  const { out } = context;
  if (out.json)
    out.document(
      isOne
        ? only.result
        : { inputs: found.map(({ name, result }) => ({ name, ...result })), comparison: compared },
    );
  else if (isOne) showOne(out, only);
  else showAll(out, found, compared);
  const faults = [...found.flatMap(({ result }) => result.faults), ...compared.faults];
  if (faults.some(({ severity }) => severity === 'error')) context.endWith(EXIT.failed);
}

type CheckResult = CheckedInput['result'];
type Fault = CheckResult['faults'][number];
type Compared = ReturnType<typeof compareInputs>;

const KINDS: Readonly<Record<CheckResult['kind'], string>> = {
  key_file: 'a key file',
  request: 'a body of the key-file API',
  pssh_box: 'a PSSH box',
  init_segment: 'an init segment',
  media_segment: 'a media segment',
  media_file: 'an mp4 file',
  widevine_pssh_data: 'Widevine PSSH data',
  playready_object: 'a PlayReady object',
  playready_header: 'a PlayReady header',
  key_id: 'a key id',
  manifest: 'a piece of a manifest or playlist',
  cpix: 'a CPIX document',
  license_address: 'a license address',
  unknown: 'nothing that is known',
};

/** Shows what one input is, what it decodes to and what is wrong with it. */
function showOne(out: Output, { result }: FoundInput): void {
  showInput(out, 'This', result);
  showFaults(out, result.faults);
  showSum(out, result.faults, '');
}

/** The same of several, and how they go together; of a folder's files only what is wrong with them. */
function showAll(out: Output, inputs: readonly FoundInput[], { compared, faults }: Compared): void {
  for (const { name, result, isOfFolder } of inputs) {
    if (isOfFolder && result.faults.length === 0) continue;
    if (isOfFolder) out.write(`${out.style('bold', shown(name))}\n`);
    else showInput(out, shown(name), result);
    showFaults(out, result.faults);
    out.write('\n');
  }
  if (compared.length + faults.length > 0) {
    const what = compared.map((aspect) => aspect.replaceAll('_', ' ')).join(', ');
    out.write(`${out.style('bold', `Compared: ${what}.`)}\n`);
    showFaults(out, faults);
    if (faults.length === 0) out.write('They agree.\n');
  } else if (inputs.some(({ isOfFolder }) => !isOfFolder)) {
    out.note('They have nothing in common that could be compared.');
  }
  showSum(
    out,
    [...inputs.flatMap(({ result }) => result.faults), ...faults],
    `${count(inputs.length, 'input')}: `,
  );
}

function showInput(out: Output, subject: string, { kind, fields }: CheckResult): void {
  out.write(`${out.style('bold', `${subject} is ${titleOf(kind, fields)}.`)}\n`);
  const rows = fields.map(({ name, value, note }) => [
    `  ${shown(name)}`,
    shown(value),
    note ? out.style('dim', shown(note)) : '',
  ]);
  out.write(columns(rows));
}

/** A whole manifest or playlist says of which kind it is. */
function titleOf(kind: CheckResult['kind'], fields: CheckResult['fields']): string {
  const type = kind === 'manifest' && fields[0]?.name === 'type' ? fields[0].value : undefined;
  if (type === undefined) return KINDS[kind];
  return `${/^[AEFHILMNORSX][A-Z]/.test(type) ? 'an' : 'a'} ${type}`;
}

function showFaults(out: Output, faults: readonly Fault[]): void {
  for (const { severity, description } of faults) {
    const style = severity === 'error' ? 'red' : 'yellow';
    out.write(`${out.style(style, `${severity}:`)} ${shown(description)}\n`);
  }
}

function showSum(out: Output, faults: readonly Fault[], of: string): void {
  const errors = faults.filter(({ severity }) => severity === 'error').length;
  const sum =
    faults.length === 0
      ? 'no faults'
      : `${count(errors, 'error')}, ${count(faults.length - errors, 'warning')}`;
  const sentence = of === '' ? sum.replace(/^n/, 'N') : of + sum;
  const style = errors > 0 ? 'red' : faults.length > 0 ? 'yellow' : 'green';
  out.note(out.noteStyle(style, `${sentence}.`));
}
