import { schemeName, type WidevinePsshData } from '../widevine';
import { nameOfKeyId, widevineSlips } from '../widevine-slips';
import { showKeyId } from './block';
import { textOrHex } from './byte-text';
import type { Report } from './report';

/** Shows what Widevine PSSH data says, field by field, and what is wrong with it by itself. `at` begins each name. */
export function describeWidevineData(report: Report, at: string, data: WidevinePsshData): void {
  const { algorithm, contentId, protectionScheme } = data;
  const show = (name: string, value: string | number | undefined, note?: string) => {
    if (value !== undefined) report.field(`${at}${name}`, String(value), note);
  };
  show('algorithm', algorithm === undefined ? undefined : (ALGORITHMS[algorithm] ?? algorithm));
  data.keyIds.forEach((keyId, index) => {
    const name = `${at}${nameOfKeyId(data, index)}`;
    showKeyId(report, name, keyId);
    report.claim({ of: 'box', at: name, keyId });
  });
  show('provider', data.provider);
  if (contentId) {
    const { value, note } = textOrHex(contentId);
    show('content_id', value, note);
    report.claim({ of: 'content_id', at: `${at}content_id`, contentId });
  }
  show('track_type', data.trackType);
  show('policy', data.policy);
  show('crypto_period_index', data.cryptoPeriodIndex);
  show('grouped_license', data.groupedLicense && `${data.groupedLicense.length} bytes`);
  if (protectionScheme !== undefined) {
    const name = schemeName(protectionScheme);
    show('protection_scheme', name ?? protectionScheme, name && `uint32 ${protectionScheme}`);
  }
  show('crypto_period_seconds', data.cryptoPeriodSeconds);
  for (const slip of widevineSlips(data)) {
    const whole = at === '' ? 'The data' : at.slice(0, -1);
    report[slip.severity](slip.code, slip.at === '' ? whole : `${at}${slip.at}`, slip.sentence);
  }
}

const ALGORITHMS: Readonly<Record<number, string>> = { 0: 'UNENCRYPTED', 1: 'AESCTR' };
