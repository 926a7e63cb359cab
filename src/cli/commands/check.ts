import type { CheckedInput } from '../../drm/check/check';
import { compareInputs, withoutAnswered } from '../../drm/check/compare';
import { isError } from '../../drm/finding';
import type { Output } from '../../terminal/output';
import { count, shown } from '../../terminal/text';
import { EXIT } from '../cli-error';
import type { CliContext } from '../context';
import { severitySummary, showFields, showFindings } from '../findings-text';
import type { Options } from '../options';
import { checkGiven, type FoundInput } from './check-inputs';

export async function check(
  context: CliContext,
  inputs: readonly string[],
  { reveal = false, stream = [] }: Options & { readonly stream?: readonly string[] },
): Promise<void> {
  const found = withoutAnswered(await checkGiven(context, inputs, stream, reveal));
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
  else if (isOne) showInput(out, 'This', only.result);
  else showAll(out, found, compared);
  const faults = [...found.flatMap(({ result }) => result.faults), ...compared.faults];
  const { text, style } = severitySummary(faults);
  out.note(isOne ? `${text.replace(/^n/, 'N')}.` : `${count(found.length, 'input')}: ${text}.`, style);
  if (faults.some(isError)) context.endWith(EXIT.failed);
}

type CheckResult = CheckedInput['result'];
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
  unknown: 'not recognized',
};

function showAll(out: Output, inputs: readonly FoundInput[], { compared, faults }: Compared): void {
  for (const { name, result, isOfFolder } of inputs) {
    if (isOfFolder && result.faults.length === 0) continue;
    if (isOfFolder) {
      out.write(`${out.style('bold', shown(name))}\n`);
      showFindings(out, result.faults);
    } else showInput(out, shown(name), result);
    out.write('\n');
  }
  if (compared.length + faults.length > 0) {
    const what = compared.map((aspect) => aspect.replaceAll('_', ' ')).join(', ');
    out.write(`${out.style('bold', `Compared: ${what}.`)}\n`);
    showFindings(out, faults);
    if (faults.length === 0) out.write('They agree.\n');
  } else if (inputs.some(({ isOfFolder }) => !isOfFolder)) {
    out.note('They have nothing in common that could be compared.');
  }
}

function showInput(out: Output, subject: string, { kind, fields, faults }: CheckResult): void {
  out.write(`${out.style('bold', `${subject} is ${titleOf(kind, fields)}.`)}\n`);
  showFields(out, fields);
  showFindings(out, faults);
}

function titleOf(kind: CheckResult['kind'], fields: CheckResult['fields']): string {
  const type = kind === 'manifest' && fields[0]?.name === 'type' ? fields[0].value : undefined;
  if (type === undefined) return KINDS[kind];
  return `${/^[AEFHILMNORSX][A-Z]/.test(type) ? 'an' : 'a'} ${type}`;
}
