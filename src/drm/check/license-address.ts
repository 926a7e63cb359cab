import { addressSlips, checkLicenseUrl } from '../license-url';
import type { Report } from './report';

/** A part of a license address that may carry a secret: `token=…`, and `contentkey:…` of PlayReady's test server. */
const SECRET_PART = /((?:^|[?&;,(])[\w-]*(?:key|token|secret|passw|auth|sig)[\w-]*[:=])([^&;,)#]+)/gi;

/** Whether a text is one address, of the kinds that licenses are asked from. */
export function looksLikeAddress(text: string): boolean {
  return /^(?:skd|https?):\/\/[^\r\n]*$/i.test(text);
}

/** Checks a license address and shows it when it is one, with the note. */
export function checkAddress(
  report: Report,
  name: string,
  system: 'playready' | 'fairplay',
  text: string,
  note?: string,
): void {
  const checked = checkLicenseUrl(system)(text);
  if (!checked.ok) {
    report.error(codeOf(text, checked.fault), name, checked.fault);
    if (!/[?&;]/.test(text)) return;
  }
  for (const { severity, code, sentence } of addressSlips(system, text)) {
    // Of an address that is not valid, its form is told, and what would come back in the next one.
    if (checked.ok || severity === 'error') report[severity](code, name, sentence);
  }
  if (checked.ok) report.field(name, maskParts(report, text), note);
}

function codeOf(text: string, fault: string): string {
  if (text === '') return 'empty';
  if (/\s$|^\s/.test(text)) return 'white_space';
  if (!fault.includes('starts with')) return 'invalid_address';
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? 'wrong_scheme' : 'scheme_missing';
}

function maskParts(report: Report, address: string): string {
  for (const [, name = '', value = ''] of address.matchAll(SECRET_PART)) {
    if (!/key[_-]?id[:=]$/i.test(name)) report.secrets.add(value);
  }
  return address;
}
