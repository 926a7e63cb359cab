import Builder from 'fast-xml-builder';
import { formatUuid } from '../bytes';
import { FAIRPLAY_KEY_FORMAT } from '../key-file';
import {
  CPIX_NAMESPACE,
  type CpixCipher,
  type CpixDelivery,
  type CpixDocument,
  type CpixKey,
  type CpixLimits,
  type CpixPeriod,
  type CpixRule,
  type CpixSystem,
  ENCRYPTION_NAMESPACE,
  PSKC_NAMESPACE,
  SIGNATURE_NAMESPACE,
  SPEKE_NAMESPACE,
  schemeName,
} from './document';

/** Element and attribute names (these behind an `@`) in the order to write; undefined is left out. */
interface Node {
  readonly [name: string]: Node | readonly Node[] | string | undefined;
}

/** Writes XML for `readCpix`, without signatures and unknown filters. SPEKE v1 has elements of its own. */
export function writeCpix(document: CpixDocument, isSpeke1 = false): string {
  const { id, contentId, version, deliveries, keys, systems, periods, rules } = document;
  const drmSystems = systems.map((system) => systemNode(system, isSpeke1));
  const isSealed = deliveries.length > 0 || keys.some(({ value }) => value?.kind === 'encrypted');
  const root: Node = {
    '@id': id,
    '@contentId': contentId,
    '@version': version,
    '@xmlns:cpix': CPIX_NAMESPACE,
    '@xmlns:pskc': PSKC_NAMESPACE,
    ...(isSealed && { '@xmlns:ds': SIGNATURE_NAMESPACE, '@xmlns:enc': ENCRYPTION_NAMESPACE }),
    ...(isSpeke1 && { '@xmlns:speke': SPEKE_NAMESPACE }),
    'cpix:DeliveryDataList': list('cpix:DeliveryData', deliveries.map(deliveryNode)),
    'cpix:ContentKeyList': list('cpix:ContentKey', keys.map(keyNode)),
    'cpix:DRMSystemList': list('cpix:DRMSystem', drmSystems),
    'cpix:ContentKeyPeriodList': list('cpix:ContentKeyPeriod', periods.map(attributesNode)),
    'cpix:ContentKeyUsageRuleList': list('cpix:ContentKeyUsageRule', rules.map(ruleNode)),
  };
  const form = { ignoreAttributes: false, attributeNamePrefix: '@', suppressEmptyNode: true, format: true };
  const builder = new Builder(form);
  // It would write undefined as an empty element; JSON leaves it out.
  const present: Node = JSON.parse(JSON.stringify({ 'cpix:CPIX': root }));
  return `<?xml version="1.0" encoding="UTF-8"?>\n${builder.build(present)}`;
}

function list(name: string, members: readonly Node[]): Node | undefined {
  return members.length === 0 ? undefined : { [name]: members };
}

function deliveryNode({ certificate, documentKeys, mac }: CpixDelivery): Node {
  return {
    'cpix:DeliveryKey': { 'ds:X509Data': certificate && { 'ds:X509Certificate': base64(certificate) } },
    // SPEKE asks with the certificate alone, and the provider adds the keys.
    ...(documentKeys.length > 0 && {
      'cpix:DocumentKey': documentKeys.map(({ algorithm, value, keyIds }) => ({
        '@Algorithm': algorithm || undefined,
        '@encryptsKey': keyIds.map(formatUuid).join(' ') || undefined,
        'cpix:Data': value && { 'pskc:Secret': { 'pskc:EncryptedValue': cipherNode(value) } },
      })),
    }),
    'cpix:MACMethod': mac && {
      '@Algorithm': mac.algorithm,
      'cpix:Key': mac.key && { 'pskc:EncryptedValue': cipherNode(mac.key) },
    },
  };
}

function cipherNode({ algorithm, digest, cipher }: CpixCipher): Node {
  const digestMethod = digest !== undefined && { 'ds:DigestMethod': { '@Algorithm': digest } };
  return {
    'enc:EncryptionMethod': algorithm === '' ? undefined : { '@Algorithm': algorithm, ...digestMethod },
    'enc:CipherData': { 'enc:CipherValue': base64(cipher) },
  };
}

function keyNode(key: CpixKey): Node {
  const { keyId, value, explicitIv } = key;
  const secret: Node | undefined =
    value?.kind === 'encrypted'
      ? { 'pskc:EncryptedValue': cipherNode(value), 'pskc:ValueMAC': value.mac && base64(value.mac) }
      : value && { 'pskc:PlainValue': base64(value.bytes) };
  return {
    '@kid': formatUuid(keyId),
    '@explicitIV': explicitIv && base64(explicitIv),
    '@commonEncryptionScheme': schemeName(key),
    'cpix:Data': secret && { 'pskc:Secret': secret },
  };
}

function systemNode(system: CpixSystem, isSpeke1: boolean): Node {
  const { systemId, keyId, asked } = system;
  /** The content of an element: its value in base64, nothing in a request. */
  const of = (signal: (typeof asked)[number]): string | undefined => {
    const value = system[signal];
    if (value === undefined) return asked.includes(signal) ? '' : undefined;
    return base64(typeof value === 'string' ? Buffer.from(value, 'utf8') : value);
  };
  const hls = (['hlsMedia', 'hlsMultivariant'] as const).flatMap((signal) => {
    const [playlist, text] = [signal === 'hlsMedia' ? 'media' : 'master', of(signal)];
    return text === undefined ? [] : [{ '@playlist': playlist, '#text': text }];
  });
  const hasKeyFormat = isSpeke1 && of('uriExtXKey') !== undefined;
  const format = (value: string) => (of('uriExtXKey') === '' ? '' : base64(Buffer.from(value)));
  return {
    '@kid': formatUuid(keyId),
    '@systemId': systemId,
    'cpix:PSSH': of('pssh'),
    'cpix:ContentProtectionData': of('contentProtectionData'),
    'cpix:URIExtXKey': of('uriExtXKey'),
    ...(hls.length > 0 && { 'cpix:HLSSignalingData': hls }),
    ...(!isSpeke1 && { 'cpix:SmoothStreamingProtectionHeaderData': of('protectionHeader') }),
    ...(hasKeyFormat && {
      'speke:KeyFormat': format(FAIRPLAY_KEY_FORMAT),
      'speke:KeyFormatVersions': format('1'),
    }),
    ...(isSpeke1 && { 'speke:ProtectionHeader': of('protectionHeader') }),
  };
}

function ruleNode({ keyId, intendedTrackType, ...rule }: CpixRule): Node {
  const { periods, labels, video, audio, isOfBitrates } = rule;
  return {
    '@kid': formatUuid(keyId),
    '@intendedTrackType': intendedTrackType,
    ...(periods.length > 0 && {
      'cpix:KeyPeriodFilter': periods.map((periodId) => ({ '@periodId': periodId })),
    }),
    ...(labels.length > 0 && { 'cpix:LabelFilter': labels.map((label) => ({ '@label': label })) }),
    'cpix:VideoFilter': video.map(attributesNode),
    'cpix:AudioFilter': audio.map(attributesNode),
    'cpix:BitrateFilter': isOfBitrates ? '' : undefined,
  };
}

function attributesNode(attributes: CpixPeriod | CpixLimits): Node {
  return Object.fromEntries(Object.entries(attributes).map(([name, value]) => [`@${name}`, value]));
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}
