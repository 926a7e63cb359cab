import { X509Certificate } from 'node:crypto';
import { formatUuid } from '../bytes';
import { chooseKeys, SIGNED } from '../cpix/choose';
import {
  byKeyId,
  type CpixDocument,
  type CpixRule,
  type CpixSystem,
  type CpixValue,
  FAIRPLAY_SYSTEM_ID,
  plainKey,
  schemeName,
  THE_DOCUMENT,
} from '../cpix/document';
import { sealingFault } from '../cpix/encryption';
import { cpixKeyFile } from '../cpix/key-file';
import { readCpix } from '../cpix/read';
import { isForSound } from '../cpix/usage-rules';
import { checkValues, IV_IS_KEY_ID } from '../cross-check';
import { type Finding, finding } from '../finding';
import { PLAYREADY_SYSTEM_ID } from '../playready';
import { WIDEVINE_SYSTEM_ID } from '../widevine';
import { describeSystem, namesOf, type PlacedKey } from './cpix-systems';
import { reportNoSystem } from './part-values';
import type { Report } from './report';
import { keyIdField } from './values';

/** Up to this number of fields, the signalling of each system is shown; beyond it, systems without a fault are only named. */
const DETAILED = 280;

/** Shows a CPIX document, and reports the parts that its key file without a choice does not have. */
export function checkCpix(report: Report, input: Buffer | string): void {
  const document = describeCpix(report, input);
  if (!document || document.keys.every(({ value }) => !value)) return;
  // No key file is made of it before that is corrected.
  if (report.findings.some(({ severity }) => severity === 'error')) return;
  const chosen = chooseKeys(document, {});
  if (!chosen.ok) {
    // Of several keys one is chosen for each key file: nothing is lost.
    for (const { code, description } of chosen.faults.filter((fault) => fault.code !== 'cpix_choice'))
      report.warning(code, THE_DOCUMENT, `${description}${FOR_OTHERS}`);
    return;
  }
  const made = cpixKeyFile(document, chosen.value, {});
  const ofLines = made.ok ? made.findings.filter(({ code }) => code === 'playready_header_reduced') : [];
  const isNew = ({ code }: Finding) => !report.findings.some((known) => known.code === code);
  report.add(...[...chosen.value.findings, ...ofLines].filter(isNew));
}

const FOR_OTHERS =
  '. That is for a key file; packager-drm export writes the keys for other packagers without one';

/** Encrypted values are not opened. Returns the document if it is readable. */
export function describeCpix(report: Report, input: Buffer | string): CpixDocument | undefined {
  const read = readCpix(input);
  if (!read.ok) {
    report.problem(THE_DOCUMENT, read.problem);
    return undefined;
  }
  const document = read.value;
  const { id: documentId, version, contentId, keys, periods, systems, isSigned } = document;
  report.field('version', version);
  report.field('id', documentId);
  report.field('content_id', contentId);
  if (isSigned) {
    report.field('signature', 'present');
    report.add(SIGNED);
  }
  const isRequest = keys.length > 0 && keys.every(({ value }) => value === undefined);
  if (keys.length === 0)
    report.error('no_keys', THE_DOCUMENT, 'has no ContentKey; ask for a document with keys');
  if (isRequest) {
    report.warning(
      'request_document',
      THE_DOCUMENT,
      'is a request for keys; check what the provider answers',
    );
    if (version !== undefined && !/^\s*2(?:\.[0-4])?\s*$/.test(version))
      report.warning('unknown_version', 'version', 'is not 2.0 to 2.4; key servers refuse it');
  }
  const rulesOf = byKeyId(document.rules);
  const systemsOf = byKeyId(systems);
  const placed = keys.map((key, index) => {
    const id = formatUuid(key.keyId);
    const at = keys.length > 1 ? `key[${index}]` : 'key';
    return { ...key, id, at, rules: rulesOf.get(id) ?? [], systems: systemsOf.get(id) ?? [] };
  });
  const keyOf = new Map(placed.map((key) => [key.id, key]));
  const periodIds = new Set(periods.map(({ id }) => id));
  // Only keys with a value are chosen.
  const isChosen = chooseKeys(document, {}).ok;
  for (const key of placed) {
    describeKey(report, key, isRequest);
    // Without the key of sound alone, a key file is whole.
    const severity = isChosen || isForSound(key.rules) ? 'warning' : 'error';
    if (!key.value && !isRequest) report.add(finding(severity, 'missing', `${key.at}.value`, NO_VALUE));
    describeRules(report, key.at, key.rules, periodIds);
  }
  periods.forEach(({ id: name, index }, at) => {
    report.field(`period[${at}]`, name ?? '', index === undefined ? undefined : `index ${index}`);
  });
  describeDeliveries(report, document);
  for (const key of placed) claimKey(report, key, key.systems, systems.length > 0);
  for (const system of systems) {
    const key = keyOf.get(formatUuid(system.keyId));
    if (!key) continue;
    const part = describeSystem(system, key, isRequest);
    const isRoom = report.fields.length + part.fields.length + systems.length <= DETAILED;
    report.take(part, isRoom || part.findings.length > 0 ? undefined : 1);
  }
  if (keys.length > 0 && systems.length === 0) reportNoSystem(report, THE_DOCUMENT);
  else for (const key of placed) if (key.systems.length === 0) reportNoSystem(report, key.at);
  return document;
}

function describeKey(report: Report, key: PlacedKey, isRequest: boolean): void {
  const { at, keyId, scheme, value, explicitIv } = key;
  keyIdField(report, `${at}.key_id`, keyId);
  report.field(`${at}.scheme`, scheme && schemeName(key), NOTES[scheme ?? '']);
  if (scheme === 'cens' || scheme === 'cbc1') {
    const sentence = `is ${schemeName(key)}, which key files have no lines for; ask the key provider for cenc or cbcs`;
    report.warning('unsupported_scheme', `${at}.scheme`, sentence);
  }
  describeValue(report, `${at}.value`, value, isRequest);
  if (explicitIv?.equals(keyId)) {
    report.field(`${at}.iv`, explicitIv.toString('base64'), 'the key id');
    report.warning('iv_is_key_id', `${at}.iv`, IV_IS_KEY_ID);
  } else if (explicitIv) report.secretField(`${at}.iv`, explicitIv.toString('base64'), '16 bytes');
  report.add(...checkValues({ keyId, contentKey: plainKey(key) }, { scheme: undefined, names: namesOf(at) }));
}

const NO_VALUE = 'is missing, although other keys have one; ask for it again, unless its tracks stay clear';

const NOTES: Readonly<Record<string, string>> = {
  cenc: 'AESCTR: for DASH',
  cbcs: 'AESCBC: a key file takes it for FairPlay alone',
};

function describeValue(report: Report, at: string, value: CpixValue | undefined, isRequest: boolean): void {
  if (value === undefined) {
    report.field(at, 'none', isRequest ? 'asked for' : undefined);
    return;
  }
  if (value.kind === 'plain') report.secretField(at, value.bytes.toString('base64'), '16 bytes, plain');
  else {
    const mac = value.mac ? 'with a MAC' : 'without a MAC';
    report.field(at, 'encrypted', `${shortName(value.algorithm)}, ${mac}; it is not opened here`);
  }
}

function shortName(algorithm: string): string {
  return /#([\w.-]{1,40})$/.exec(algorithm)?.[1] ?? 'no known algorithm';
}

function describeRules(
  report: Report,
  at: string,
  rules: readonly CpixRule[],
  periodIds: ReadonlySet<string | undefined>,
): void {
  rules.forEach((rule, index) => {
    const name = rules.length > 1 ? `${at}.use[${index}]` : `${at}.use`;
    report.field(name, useOf(rule));
    if (rule.unknownFilters.length > 0)
      report.warning('unknown_filter', name, 'has an unknown filter; choose a key by its id, not by track');
    if (!rule.periods.every((id) => periodIds.has(id)))
      report.warning('unknown_period', name, 'names a period that is not in the list of periods');
  });
}

function useOf({ intendedTrackType, labels, video, audio, isOfBitrates, ...rule }: CpixRule): string {
  const parts = [
    ...(intendedTrackType === undefined ? [] : [intendedTrackType]),
    ...labels.map((label) => `label ${label}`),
    ...(video.length > 0 ? ['video'] : []),
    ...(audio.length > 0 ? ['audio'] : []),
    ...(isOfBitrates ? ['some bit rates'] : []),
    ...rule.periods.map((period) => `period ${period}`),
    ...rule.unknownFilters.map((filter) => `${filter} (not known)`),
  ];
  return parts.join(', ').slice(0, 400) || 'all tracks';
}

function describeDeliveries(report: Report, document: CpixDocument): void {
  const { deliveries } = document;
  deliveries.forEach(({ certificate, documentKeys, mac }, index) => {
    const at = deliveries.length > 1 ? `recipient[${index}]` : 'recipient';
    describeCertificate(report, at, certificate);
    const [documentKey] = documentKeys;
    if (documentKey?.value)
      report.field(
        `${at}.document_key`,
        shortName(documentKey.algorithm),
        `encrypted by ${shortName(documentKey.value.algorithm)}`,
      );
    if (mac) report.field(`${at}.mac`, shortName(mac.algorithm));
  });
  const odd = sealingFault(document);
  if (odd) report.problem(THE_DOCUMENT, odd);
}

function describeCertificate(report: Report, at: string, certificate: Buffer | undefined): void {
  if (!certificate) return;
  try {
    const { subject, fingerprint256, validTo, publicKey } = new X509Certificate(certificate);
    const bits = publicKey.asymmetricKeyDetails?.modulusLength;
    const kind = (publicKey.asymmetricKeyType ?? '').toUpperCase();
    const name = (subject ?? '').replaceAll('\n', ', ').slice(0, 400);
    report.field(at, name, bits === undefined ? kind : `${kind}, ${bits} bits`);
    report.field(`${at}.fingerprint`, fingerprint256, 'SHA-256');
    report.field(`${at}.valid_until`, validTo);
  } catch {
    report.error('not_a_certificate', at, "has a certificate that can't be read; it must be DER in base64");
  }
}

function claimKey(report: Report, key: PlacedKey, systems: readonly CpixSystem[], hasSystems: boolean): void {
  const { at, keyId, scheme, explicitIv, ivFault } = key;
  const contentKey = plainKey(key);
  report.claim({ of: 'key', at: `${at}.value`, keyId, contentKey });
  const isFor = (...ids: string[]) => systems.some(({ systemId }) => ids.includes(systemId));
  if (isFor(FAIRPLAY_SYSTEM_ID)) {
    report.claim({ of: 'fairplay', at: `${at}.value`, key: contentKey });
    if (explicitIv) report.claim({ of: 'iv', at: `${at}.iv`, iv: explicitIv });
  } else if (ivFault !== undefined)
    report.warning('malformed_iv', `${at}.iv`, `${ivFault}; nothing needs it here`);
  if (hasSystems && !isFor(WIDEVINE_SYSTEM_ID, PLAYREADY_SYSTEM_ID)) return;
  // Without a scheme it may be either.
  for (const one of scheme === undefined ? (['cenc', 'cbcs'] as const) : [scheme])
    report.claim({ of: 'scheme', at: `${at}.scheme`, scheme: one });
}
