import { whyNoAnswer } from '../../http/get-request';
import { REMEDIES } from '../../provider/upstream';
import type { Output } from '../../terminal/output';
import { columns, shown } from '../../terminal/text';
import { findingText } from '../findings-text';
import type { ProviderTest, ShownCall, ShownKey, TestedProtocol } from './provider-test';

/** The result of a test for a person. */
export function showProviderTest(out: Output, test: ProviderTest): void {
  const { contentId, configured, tested, notTested, certificates } = test;
  out.write(`Content id ${shown(contentId)}; nothing is written.\n`);
  for (const each of tested) showProtocol(out, each, each.protocol === configured);
  for (const { protocol, why } of notTested)
    out.write(`\n${out.style('bold', protocol)} was not tested: ${why}.\n`);
  if (certificates.length > 0) out.write(`\n${out.style('bold', 'Certificates')}\n`);
  out.write(
    columns(
      certificates.map(({ of, ends, expired }) => [`  ${of}`, expired ? 'ended' : 'ends', ends.slice(0, 10)]),
    ),
  );
  out.write('\n');
  const usable = tested.filter((each) => each.usable).map(({ protocol }) => protocol);
  out.note(conclusion(test, usable), usable.includes(configured) ? 'green' : 'red');
}

function conclusion({ configured, notTested }: ProviderTest, usable: readonly string[]): string {
  if (usable.includes(configured)) return `The sidecar can provision with these settings (${configured}).`;
  const asks = `The sidecar asks by ${configured} with these settings`;
  const [other] = usable;
  if (other !== undefined)
    return `${asks}, but the provider answers ${other}: set PACKAGERDRMAPI_KEYPROVIDERPROTOCOL=${other}.`;
  const isUntested = notTested.some(({ protocol }) => protocol === configured);
  return isUntested ? `${asks}, which was not tested.` : 'The sidecar cannot provision with these settings.';
}

function showProtocol(
  out: Output,
  { protocol, calls, keyfile, faults }: TestedProtocol,
  isConfigured: boolean,
): void {
  const note = isConfigured ? ' (as the sidecar asks with these settings)' : '';
  out.write(`\n${out.style('bold', `${protocol}${note}`)}\n`);
  for (const [index, call] of calls.entries()) showCall(out, call, calls.slice(0, index));
  if (keyfile) {
    out.write('  key file\n');
    for (const key of keyfile.keys) out.write(`    ${keyText(key)}\n`);
    for (const address of keyfile.addresses) out.write(`    ${shown(address)}\n`);
  }
  for (const fault of faults)
    out.write(`  ${findingText(out, fault)} ${out.style('dim', `[${fault.code}]`)}\n`);
}

function showCall(out: Output, call: ShownCall, former: readonly ShownCall[]): void {
  const { method, url, headers, asks, status, failure, ms, contentType, location, text, keys } = call;
  const isRetry = former.some((other) => other.url === url && other.body === call.body);
  out.write(`  ${method} ${shown(url)}${isRetry ? ' again' : ''}\n`);
  const isRepeated = JSON.stringify(headers) === JSON.stringify(former.at(-1)?.headers);
  for (const [name, value] of isRepeated ? [] : Object.entries(headers))
    out.write(`    ${shown(name)}: ${shown(value)}\n`);
  for (const key of asks) out.write(`    asks for ${keyText(key)}\n`);
  const answer =
    status === null
      ? failureText(failure ?? 'ERROR')
      : [`${status}`, contentType ?? 'without a content-type'].map(shown).join(', ');
  out.write(`  ${out.style('bold', `→ ${answer}`)}, ${ms} ms\n`);
  if (location !== null) out.write(`    leads to ${shown(location)}\n`);
  if (text !== null) out.write(`    says: ${shown(text)}\n`);
  for (const key of keys) out.write(`    ${keyText(key)}\n`);
}

function failureText(code: string): string {
  if (code === 'ABORT_ERR') return 'cut, because another call failed';
  return `no answer: ${whyNoAnswer(code, REMEDIES)} (${code})`;
}

function keyText({ keyid, scheme, systems }: ShownKey): string {
  const parts = [keyid && `key ${keyid}`, scheme ?? 'no scheme', systems.join(', ') || 'no DRM system'];
  return shown(parts.filter(Boolean).join('; '));
}
